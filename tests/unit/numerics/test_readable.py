"""Numbers as people read them. tests/browser/test_look.py compares them with those of the report."""

import pytest

from condshap.numerics.readable import estimate, feature_value, fixed, interval, number, places_of, tick_texts, typed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (66530.0, "66,530"), (-4101.0, "−4,101"), (-0.0, "0"), (0.123456, "0.1235"), (1234567.0, "1,234,567"),
        (9.99996, "10"), (99999.5, "100,000"), (2.4246e10, "24,246,000,000"), (2.42461e10 + 0.5, "2.425 × 10¹⁰"),
        (9.9996e-5, "1 × 10⁻⁴"), (-2.5e-7, "−2.5 × 10⁻⁷"), (float("-inf"), "−∞"), (float("nan"), "unknown"),
    ],
)  # fmt: skip
def test_single_numbers_are_plain_as_long_as_that_is_short(value, text):
    assert number(value) == text


def test_values_of_features_stay_as_they_are():
    assert [feature_value(x) for x in (2023.0, -1999.0, 12345.0, 0.5, float("nan"))] == [
        "2023", "−1999", "12,345", "0.5", "missing",
    ]  # fmt: skip
    assert feature_value(123456789012.0) == "123,456,789,012", "an account number has all of its digits"


def test_digits_end_with_the_second_one_of_the_error():
    assert estimate(66533.0, 4100.0) == "66,500"
    assert estimate(0.91837, 0.0124) == "0.918"
    assert estimate(8.7226e9, 7.6e8) == "8.72 × 10⁹"
    assert estimate(3.14159, 0.0) == estimate(3.14159, float("nan")) == "3.142"
    assert interval(-2.31, 12.7, 1.4) == "−2.3 to 12.7"


def test_numbers_side_by_side_share_their_decimals_and_errors_of_0_do_not_count():
    assert places_of([66533.0, 12.0], [4100.0, 0.0]) == -2
    assert places_of([1.5, 0.25], [0.0, 0.0]) == 2
    assert [fixed(x, 1, signed=True) for x in (12.34, -0.04, 0.04)] == ["+12.3", "0.0", "0.0"]


def test_ticks_have_no_offset_and_years_no_separator():
    assert tick_texts([1e7, 2e7]) == ["10,000,000", "20,000,000"]
    assert tick_texts([1900.0, 1950.0], of_feature=True) == ["1900", "1950"]
    assert tick_texts([1200.0, 1400.0]) == ["1,200", "1,400"], "as in the numbers beside"
    assert tick_texts([10_000_000.05]) == ["10,000,000.05"], "the only tick of an axis stands where it says"
    assert tick_texts([1_000_000.0, 1_000_000.5]) == ["1,000,000.0", "1,000,000.5"]
    assert tick_texts([-0.2, -0.1, 1e-18]) == ["−0.2", "−0.1", "0.0"]
    assert tick_texts([]) == []


def test_terminals_get_letters_that_all_of_them_have():
    for value in (-4101.5, 2.5e-7, -6.02e23):
        text = typed(number(value))
        assert text.isascii()
        assert float(text.replace(",", "")) == pytest.approx(value, rel=1e-3)
