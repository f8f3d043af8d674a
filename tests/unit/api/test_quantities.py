from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.api.quantities import LARGEST, quantity, text_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("250m", Fraction(1, 4)),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("1Ki", 1024),
        ("2Gi", 2 * 1024**3),
        ("1k", 1000),
        ("3M", 3_000_000),
        ("1e3", 1000),
        ("1E3", 1000),
        ("5e-1", Fraction(1, 2)),
        ("100n", Fraction(1, 10_000_000)),
        ("1E", 10**18),
    ],
)
def test_a_quantity_is_read_exactly(text: str, value: Fraction) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize("text", ["", "one", "1 Gi", "1gi", "--1", "1e", "0x1", "1mm"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        quantity(text)


@pytest.mark.parametrize(("value", "text"), [(Fraction(2), "2"), (Fraction(1, 4), "250m"), (Fraction(1, 3), "334m")])
def test_a_quantity_is_written_whole_or_in_thousandths_rounded_up(value: Fraction, text: str) -> None:
    assert text_of(value) == text


@given(st.fractions() | st.integers(-(10**40), 10**40).map(Fraction))
def test_whatever_is_written_is_read_again(value: Fraction) -> None:
    rounded = Fraction(-(-value.numerator * 1000 // value.denominator), 1000)
    assert quantity(text_of(value)) == max(-LARGEST, min(rounded, LARGEST))


@pytest.mark.parametrize("text", ["9E", "16Ei", "9e99", "9223372036854775807", "1" * 24])
def test_a_large_quantity_is_at_most_what_the_api_server_counts(text: str) -> None:
    assert quantity(text) <= LARGEST
    assert quantity(text_of(quantity(text) * 7)) == LARGEST
