"""Float.toString of JDK 17 for whole arrays: `javahash.float_to_string` with all numbers taken
apart side by side.

Only what fits into 64 bits is done so, which is what scores are; the other numbers go through
`float_to_string`. A property test holds both together.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from minutch.hadoop.formats.javahash import float_layout, float_to_string

Longs = npt.NDArray[np.int64]

_BITS: Final = 23
_PRECISION: Final = 24
# Up to here FloatingDecimal's sizes are exact.
_POWERS: Final = np.array([5**n for n in range(27)], np.int64)
_SIZES: Final = np.array([0, *((5**n).bit_length() for n in range(1, 27))], np.int64)
_MOST_DIGITS: Final = 19  # of a long


def float_texts(values: npt.NDArray[np.float32]) -> list[str]:
    """Returns the text of each number."""
    bits = values.view(np.int32).astype(np.int64)
    exponent, fraction = (bits >> _BITS) - 127, (bits & (1 << _BITS) - 1) | 1 << _BITS
    zeros = _trailing_zeros(fraction)
    width = _PRECISION - zeros
    below_point = np.maximum(0, width - exponent - 1)
    # No zeros or subnormals, no infinities or NaN, no whole numbers.
    usual = (bits >> _BITS > 0) & (bits >> _BITS < 255) & (below_point > 0)
    numbers = _Numbers(fraction >> zeros, width, below_point, exponent, fraction)
    usual &= numbers.fits
    texts: list[str] = [""] * len(values)
    for row, (number, count, point) in zip(
        np.flatnonzero(usual), numbers.digits(usual), strict=True
    ):
        texts[row] = float_layout(str(number).zfill(count), point)
    for row in np.flatnonzero(~usual):
        texts[row] = float_to_string(float(values[row]))
    return texts


def _trailing_zeros(numbers: Longs) -> Longs:
    """Returns the number of trailing zero bits."""
    lowest = (numbers & -numbers).astype(np.float64)  # a power of two, which frexp tells exactly
    return np.frexp(lowest)[1].astype(np.int64) - 1


class _Numbers:
    """odd * 2**(exponent - width + 1) as rest / scale * 10**ten; `margin` is half the distance to
    the next number.
    """

    def __init__(
        self, odd: Longs, width: Longs, below_point: Longs, exponent: Longs, fraction: Longs
    ) -> None:
        mantissa = fraction / (1 << _BITS)
        guess = (mantissa - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981
        self._ten: Longs = np.floor(guess).astype(np.int64)
        rest5, scale5 = np.maximum(0, -self._ten), np.maximum(0, self._ten)
        scale2 = scale5 + below_point
        rest2 = rest5 + below_point + exponent
        margin2 = rest2 - _PRECISION - (width == 1)
        rest2 = rest2 - (width - 1)
        shared = np.minimum(rest2, scale2)
        shared = shared + np.minimum(0, margin2 - shared)
        rest2, scale2, margin2 = rest2 - shared, scale2 - shared, margin2 - shared
        size = _size_of_5
        widest = np.maximum(width + rest2 + size(rest5), scale2 + 1 + size(scale5 + 1))
        self.fits = (widest < 64) & (rest5 < len(_POWERS)) & (scale5 < len(_POWERS) - 1)
        """True for those that fit into 64 bits."""
        self._short = widest < 32
        with np.errstate(over="ignore"):
            # Shifts beyond 63 are undefined; numbers that would need them don't fit.
            self._rest = odd * _power(rest5) << np.minimum(rest2, 63)
            self._scale = _power(scale5) << np.minimum(scale2, 63)
            self._margin = _power(rest5) << np.minimum(margin2, 63)

    def digits(self, chosen: npt.NDArray[np.bool_]) -> list[tuple[int, int, int]]:
        """Returns for each chosen number its digits as one integer, the count of digits, and the
        position of the decimal point.
        """
        for name in ("_ten", "_short", "_rest", "_scale", "_margin"):
            setattr(self, name, getattr(self, name)[chosen])
        number, low, high = self._next()
        count = np.ones(len(number), np.int64)
        dropped = (number == 0) & ~high  # the guess was one too large
        count -= dropped
        self._ten = self._ten - dropped
        # Printed with an exponent: at least two digits.
        beyond = (self._ten < -3) | (self._ten >= 8)
        low &= ~beyond
        high &= ~beyond
        last = number.copy()
        for _ in range(_MOST_DIGITS):
            going = ~(low | high)
            if not going.any():
                break
            digit, more_low, more_high = self._next(going)
            number = np.where(going, number * 10 + digit, number)
            last = np.where(going, digit, last)
            count += going
            low, high = low | (going & more_low), high | (going & more_high)
        left = 10 * self._scale - self._rest
        rounds = high & (~low | (self._rest > left) | ((self._rest == left) & (last % 2 == 1)))
        number = number + rounds
        carried = number == 10**count
        point = self._ten + carried + 1
        number = np.where(carried, number // 10, number)
        return list(zip(number.tolist(), count.tolist(), point.tolist(), strict=True))

    def _next(self, going: npt.NDArray[np.bool_] | None = None) -> tuple[Any, Any, Any]:
        """Returns the next digit, and whether stopping there is within the margin on each side."""
        digit, rest = np.divmod(self._rest, self._scale)
        rest, margin = rest * 10, self._wrapped(self._margin * 10)
        low, high = rest < margin, self._wrapped(rest + margin) > 10 * self._scale
        over = margin <= 0
        if going is None:
            self._rest, self._margin = rest, margin
        else:
            self._rest, self._margin = (
                np.where(going, rest, self._rest),
                np.where(going, margin, self._margin),
            )
        return digit, low | over, high | over

    def _wrapped(self, numbers: Longs) -> Longs:
        """Numbers as Java's ints or longs hold them."""
        return np.where(self._short, numbers.astype(np.int32).astype(np.int64), numbers)


def _power(of: Longs) -> Longs:
    return _POWERS[np.minimum(of, len(_POWERS) - 1)]


def _size_of_5(power: Longs) -> Longs:
    """Returns the size by which FloatingDecimal judges 5**power: exact up to 26, then three bits
    each.
    """
    return np.where(power < len(_SIZES), _SIZES[np.minimum(power, len(_SIZES) - 1)], 3 * power)
