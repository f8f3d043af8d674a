import pytest

from foresail.scope.globs import matches


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("shop", "shop", True),
        ("shop", "shops", False),
        ("shop-*", "shop-", True),
        ("*.apps", "deployments.apps", True),
        ("*", "", True),
        ("shop-?", "shop-1", True),
        ("shop-?", "shop-", False),
        ("team-[ab]", "team-b", True),
        ("team-[ab]", "team-c", False),
        ("team-[a-c]", "team-b", True),
        ("team-[!a-c]", "team-b", False),
        ("{dev,test}-x", "test-x", True),
        ("*ab*b", "ab", False),
        ("*ab*b", "abb", True),
        ("a*b*c", "axbxbc", True),
        ("a.b", "axb", False),
        ("[", "[", False),
    ],
)
def test_a_pattern_matches_whole_names_as_velero_does(pattern: str, name: str, expected: bool) -> None:
    assert matches([pattern], name) == expected


def test_a_malformed_pattern_ends_the_search_as_in_velero() -> None:
    assert not matches(["[", "shop"], "shop")


def test_many_stars_do_not_take_exponential_time() -> None:
    assert not matches(["*" * 60 + "b"], "a" * 2000)
    assert not matches(["*a" * 200 + "*b"], "a" * 2000)
