"""Numbers -> texts that people can read: the one rule of terminal, notebook, report and plots.

Digits follow the standard error: a value is written to the second digit of its error, and never with more than the digits
asked for. Thousands have separators, large and small numbers powers of ten, and what rounds to 0 has no sign. Numbers side
by side share their decimals. `reporting/assets/numbers.js` has the same functions for the page, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from math import isfinite, isinf, isnan

MINUS = "−"
_LARGE, _SMALL = 1e9, 1e-4  # from here on, and below, powers of ten say more than zeros
_WHOLE = 1e15  # below it, whole numbers are exact, with all their digits
_YEARS = 10_000  # values of features below it have no separators: a year stays a year
_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TYPED = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")


def number(value: float, digits: int = 4) -> str:
    """One number: whole ones with all their digits, others with at most `digits` significant ones.

    >>> number(66530.2), number(-0.0), number(0.12345), number(2.5e-7)
    ('66,530', '0', '0.1235', '2.5 × 10⁻⁷')
    """
    value = float(value)
    size = abs(value)
    if not isfinite(value):
        return _not_finite(value)
    if size == round(size) and size < _WHOLE:
        return _sign(value) + f"{size:,.0f}" if size else "0"
    if not _SMALL <= size < _LARGE:
        return _sign(value) + _power(size, digits)
    text = _rounded(size, max(0, digits - 1 - _exponent(size)))
    return _sign(value) + (text.rstrip("0").rstrip(".") if "." in text else text)


def feature_value(value: float, digits: int = 4) -> str:
    """Value of a feature, as it is: like `number`, but whole numbers below 10,000, such as years, have no separator.

    >>> feature_value(2023), feature_value(66530), feature_value(float("nan"))
    ('2023', '66,530', 'missing')
    """
    if isnan(value):
        return "missing"
    is_year = value == round(value) and abs(value) < _YEARS if isfinite(value) else False
    return number(value, digits).replace(",", "") if is_year else number(value, digits)


def places_of(values: Iterable[float], errors: Iterable[float] = (), digits: int = 3) -> int | None:
    """Decimals that numbers side by side share; below 0 for tens, hundreds, ...; None for powers of ten.

    `digits` significant ones of the largest number, but none behind the second digit of the smallest standard error that is
    not 0.

    >>> places_of([1.234, -0.5]), places_of([66533.0, 12.0], [4100.0, 900.0]), places_of([2.4e10])
    (2, -1, None)
    """
    largest = max((abs(float(x)) for x in values if isfinite(x)), default=0.0)
    if largest == 0:
        return 0
    if not _SMALL <= largest < _LARGE:
        return None
    by_size = max(0, digits - 1 - _exponent(largest))
    smallest = min((float(x) for x in errors if isfinite(x) and x > 0), default=0.0)
    return min(by_size, 1 - _exponent(smallest)) if smallest else by_size


def fixed(value: float, places: int | None, *, signed: bool = False, digits: int = 3) -> str:
    """A number with the given decimals, see `places_of`; what rounds to 0 has no sign.

    >>> fixed(66533.0, -2, signed=True), fixed(-0.001, 2), fixed(-2.41e10, None)
    ('+66,500', '0.00', '−2.41 × 10¹⁰')
    """
    value = float(value)
    if not isfinite(value):
        return _not_finite(value)
    size = abs(value)
    text = _rounded(size, places) if places is not None else _power(size, digits, strip=False) if size else "0"
    if not text.strip("0.,"):
        return text
    return (MINUS if value < 0 else "+" if signed else "") + text


def estimate(value: float, std_error: float, digits: int = 4) -> str:
    """A number with as many digits as its standard error allows; at most `digits` where the error is not known.

    >>> estimate(0.91837, 0.124), estimate(66533.0, 4100.0), estimate(8.72e9, 7.6e8), estimate(0.91837, float("nan"))
    ('0.92', '66,500', '8.72 × 10⁹', '0.9184')
    """
    return _estimates([float(value)], float(std_error), digits)[0]


def interval(low: float, high: float, std_error: float, digits: int = 4) -> str:
    """Both ends of an interval with the digits that the standard error allows.

    >>> interval(0.66812, 1.16, 0.124)
    '0.67 to 1.16'
    """
    return " to ".join(_estimates([float(low), float(high)], float(std_error), digits))


def _estimates(values: list[float], std_error: float, digits: int) -> list[str]:
    places = places_of(values, [std_error], digits)
    if places is None and isfinite(std_error) and std_error > 0:  # the same with powers of ten
        allowed = _exponent(max(map(abs, values))) - _exponent(std_error) + 2
        digits = max(1, min(digits, allowed))
    return [fixed(value, places, digits=digits) for value in values]


def tick_texts(ticks: Iterable[float], *, of_feature: bool = False) -> list[str]:
    """Round numbers of an axis, with the decimals that they need and no offset; years stay years on that of a feature.

    >>> tick_texts([-250000.0, 0.0, 250000.0]), tick_texts([0.0, 2.5]), tick_texts([0.0, 1e10])
    (['−250,000', '0', '250,000'], ['0.0', '2.5'], ['0', '1 × 10¹⁰'])
    >>> tick_texts([1000.0, 2000.0]), tick_texts([1000.0, 2000.0], of_feature=True)
    (['1,000', '2,000'], ['1000', '2000'])
    """
    found = [float(tick) for tick in ticks]
    largest = max(map(abs, found), default=0.0)
    if largest and not _SMALL <= largest < _LARGE:
        return [MINUS * (tick < 0) + _power(abs(tick), 4) if abs(tick) > 1e-9 * largest else "0" for tick in found]
    step = min(
        (b - a for a, b in pairwise(found) if b > a), default=1e-6 * largest or 1.0
    )  # a single tick is exact, too
    enough = (places for places in range(12) if all(abs(x - round(x, places)) < 1e-3 * step for x in found))
    places = next(enough, 12)
    texts = [fixed(tick, places) for tick in found]
    return [text.replace(",", "") for text in texts] if of_feature and largest < _YEARS else texts


def typed(text: str) -> str:
    """The same text in the letters of every terminal.

    >>> typed("−2.41 × 10⁻⁷")
    '-2.41e-7'
    """
    return text.replace(" × 10", "e").translate(_TYPED) if " × 10" in text else text.replace(MINUS, "-")


def _not_finite(value: float) -> str:
    return _sign(value) + "∞" if isinf(value) else "unknown"


def _sign(value: float) -> str:
    return MINUS if value < 0 else ""


def _exponent(size: float) -> int:
    return Decimal(size).adjusted()


def _round(size: float, places: int) -> Decimal:
    return Decimal(size).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def _rounded(size: float, places: int) -> str:
    return f"{_round(size, places):,.{max(0, places)}f}"


def _power(size: float, digits: int, *, strip: bool = True) -> str:
    power = _round(size, digits - 1 - _exponent(size)).adjusted()  # of 9.996, rounded to 10.0, 1
    found = _round(size, digits - 1 - power)
    mantissa = f"{found.scaleb(-power):f}"
    mantissa = mantissa.rstrip("0").rstrip(".") if strip and "." in mantissa else mantissa
    return f"{mantissa} × 10{str(power).translate(_DIGITS)}"
