import pytest

from foresail.scope.go_yaml import load, resolved


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("true", "true"),
        ("FALSE", "false"),
        ("yes", None),
        ("on", None),
        ("3", "3"),
        ("-3", "-3"),
        ("0", "0"),
        ("1_000", "1000"),
        ("010", "8"),
        ("0o10", "8"),
        ("08", "8"),
        ("0x1F", "31"),
        ("0b11", "3"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("1.50", "1.5"),
        ("1.0", "1"),
        (".5", "0.5"),
        ("1e3", "1000"),
        ("123456.5", "123456.5"),
        ("1000000.0", "1e+06"),
        ("1234567.5", "1.2345675e+06"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("1e400", None),
        (".inf", ".inf"),
        (".NaN", ".nan"),
        ("1:30", None),
        ("2024-1-2", "2024-01-02T00:00:00Z"),
        ("2024-13-01", None),
        ("1.2.3", None),
        ("gold", None),
        ("10Gi,20Gi", None),
    ],
)
def test_a_plain_scalar_is_written_as_go_writes_it(text: str, written: str | None) -> None:
    assert resolved(text) == written


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))]
    with pytest.raises(ValueError, match="more than 100000 values"):
        load("\n".join(lines))


def test_merges_that_multiply_are_refused_before_they_are_expanded() -> None:
    lines = ["a0: &a0 {k: v}", *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 30))]
    with pytest.raises(ValueError, match="more than 100000 values"):
        load("\n".join(lines))


def test_an_anchor_that_contains_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="contains itself"):
        load(f"a: &a [{', '.join(['*a'] * 300)}]")


def test_a_merge_adds_keys() -> None:
    assert load("base: &base {a: x}\nmore: {<<: *base, b: y}")["more"] == {"a": "x", "b": "y"}
    assert load("") is None
    assert load("a: 1\n---\nb: 2") == {"a": "1"}
