import time

import pytest

from foresail.scope.globs import compiled, is_plain, matches
from foresail.scope.namespaces import namespace_filter


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
        ("{a,b*}c", "bxc", True),
        ("{a,b*}c", "ac", True),
        ("{a,b*}c", "axc", False),
        ("{a,{b,c}d}e", "cde", True),
        ("{a,{b,c}d}e", "ce", False),
        ("a{,b}", "a", True),
        ("a{,b}", "ab", True),
        ("a{,b}", "abb", False),
        ("{[!a],?b}*", "xyz", True),
        ("{[!a],?b}*", "ax", False),
        ("*{a,ab}*c", "xabxc", True),
        ("a,b", "a,b", True),
        ("a}", "a}", True),
        ("{a,b", "a", False),
        ("{a\\,b}", "a,b", True),
        ("{*}", "", True),
    ],
)
def test_a_pattern_matches_whole_names_as_velero_does(pattern: str, name: str, expected: bool) -> None:
    assert matches([pattern], name) == expected


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("configmaps", "configmaps", True),
        ("*", "configmaps", True),
        ("*", "deployments.apps", False),
        ("**", "deployments.apps", True),
        ("*.apps", "deployments.apps", True),
        ("**s*", "deployments.apps", True),
        ("deployments.*", "deployments.apps.example", False),
        ("*.*", "deployments.apps.example", False),
        ("*.**", "deployments.apps.example", True),
        ("{deployments,statefulsets}.apps", "statefulsets.apps", True),
        ("{deployments,statefulsets}.apps", "daemonsets.apps", False),
        ("{*,**}x", "a.x", True),
        ("[cd]*", "configmaps", True),
        ("[!cd]*", "configmaps", False),
        ("[!cd]apps", ".apps", True),
        ("pod?", "pods", True),
        ("?apps", ".apps", False),
        ("a,b", "a,b", True),
    ],
)
def test_a_star_stops_at_a_separator(pattern: str, name: str, expected: bool) -> None:
    is_match = compiled(pattern, ".")
    assert is_match is not None
    assert is_match(name) == expected


def test_a_malformed_pattern_ends_the_search_as_in_velero() -> None:
    assert not matches(["[", "shop"], "shop")


def test_many_stars_do_not_take_exponential_time() -> None:
    assert not matches(["*" * 60 + "b"], "a" * 2000)
    assert not matches(["*a" * 200 + "*b"], "a" * 2000)
    is_match = compiled("*a" * 200 + "*b", ".")
    assert is_match is not None
    assert not is_match("a" * 200)


@pytest.mark.timed
@pytest.mark.parametrize(
    "pattern",
    ["{" + "*a" * 12 + "}b", "{*,*a}" * 12 + "b", "*{a,a}" * 14, "{" * 3000 + "*a" + "}" * 3000 + "b"],
    ids=["stars in braces", "braces of stars", "stars before braces", "deep braces"],
)
def test_braces_do_not_take_exponential_time(pattern: str) -> None:
    before = time.process_time()
    assert not matches([pattern], "a" * 40 + "c")
    assert time.process_time() - before < 0.5


@pytest.mark.parametrize("pattern", ["team-a", "team.a", "", "{a,b}", "a*", "a?", "[a]", "a\\b", "a|b", "!a"])
def test_a_plain_pattern_matches_itself_only(pattern: str) -> None:
    names = ("team-a", "teamxa", "a", "b", "", "ab", "a|b")
    found = [name for name in names if matches([pattern], name)]
    assert found == [name for name in names if name == pattern] or not is_plain(pattern)


def test_namespaces_with_plain_names_are_covered_as_by_patterns() -> None:
    existing = frozenset({"a", "b", "c", "team-a"})
    for includes, excludes in ((("a", "gone"), ()), (("a", "b"), ("b",)), (("team-a",), ("c", "gone")), (("",), ())):
        found = namespace_filter(includes, excludes, existing)
        assert found.covered(existing) == {each for each in existing if found.listed(each)}
