"""Java's hash codes, the order of its HashMap, and its printing of numbers and dates.

They decide bytes and partitions in Nutch's files: a MapWritable is written in HashMap order, a URL
lies in the part that its Text's hash code says, a dump prints a score as Float.toString does.

Numbers are printed as JDK 17 prints them (FloatingDecimal). That is not always the shortest form
that reads back equal, which came with JDK 19.
"""

from __future__ import annotations

import math
import re
import struct
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import mul
from sys import byteorder

_MASK = 0xFFFF_FFFF
_FLOAT = struct.Struct(">f")
_DOUBLE = struct.Struct(">d")
_SPAN = 1024
_POWERS = tuple(pow(31, i, 1 << 32) for i in range(_SPAN, -1, -1))
"""31**i mod 2**32, from the highest: of as many units as are hashed at a time."""
_FLOAT_TEXT = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?|0[xX][0-9a-fA-F.]+[pP][+-]?\d+)",
    re.ASCII,
)
_BLANKS = "".join(map(chr, range(0x21)))
_DAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY_MS = 86_400_000
_FIRST_GREGORIAN_DAY = -141_427  # 15 October 1582; the days before are Julian


def int32(value: int) -> int:
    """`value` as Java's int keeps it: the low 32 bits, signed."""
    value &= _MASK
    return value - (1 << 32) if value & 0x8000_0000 else value


def int64(value: int) -> int:
    """`value` as Java's long keeps it: the low 64 bits, signed."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def float32(value: float) -> float:
    """`value` rounded to 32 bits, as a cast to Java's float; too large becomes an infinity."""
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


# Hash codes


def _polynomial(units: Sequence[int], start: int) -> int:
    """`start`, then `hash = 31 * hash + unit` for each unit, in 32 bits."""
    for at in range(0, len(units), _SPAN):
        span = units[at : at + _SPAN]
        first = _SPAN - len(span)
        # The sum of products is added up in C.
        start = start * _POWERS[first] + sum(map(mul, span, _POWERS[first + 1 :])) & _MASK
    return int32(start)


def string_hash(value: str) -> int:
    """String.hashCode, over UTF-16 units."""
    if value.isascii():
        return _polynomial(value.encode("ascii"), 0)
    units = array("H", value.encode("utf-16-be", "surrogatepass"))
    if byteorder == "little":
        units.byteswap()  # to the machine's order
    return _polynomial(units, 0)


def text_hash(data: bytes) -> int:
    """Text.hashCode (WritableComparator.hashBytes) of a Text's UTF-8 bytes without their length."""
    return _polynomial(data if data.isascii() else memoryview(data).cast("b"), 1)


def partition(data: bytes, parts: int) -> int:
    """HashPartitioner: the part, from 0 to `parts - 1`, of the Text with these UTF-8 bytes."""
    return (text_hash(data) & 0x7FFF_FFFF) % parts


_TREEIFY, _MIN_TREE_CAPACITY = 8, 64  # HashMap.TREEIFY_THRESHOLD, MIN_TREEIFY_CAPACITY


def hash_map_order(hashes: Iterable[int], capacity: int = 16) -> list[int]:
    """Returns the order in which a java.util.HashMap iterates: indexes into `hashes`, given in
    order of insertion.

    The keys must differ. `capacity` is that of the first table, a power of two. The table doubles
    beyond three quarters and, while it is below 64, when a bucket grows beyond 8. Larger tables
    turn such a bucket into a tree, which may iterate in another order; that is not followed.
    """
    mixed = [(h & _MASK) ^ (h & _MASK) >> 16 for h in hashes]  # HashMap.hash
    buckets: dict[int, int] = {}
    for size, value in enumerate(mixed, 1):
        bucket = value & capacity - 1
        buckets[bucket] = buckets.get(bucket, 0) + 1
        grow = buckets[bucket] > _TREEIFY and capacity < _MIN_TREE_CAPACITY
        # Once for a long bucket, and once more if the table is three quarters full.
        for _ in range(grow + (4 * size > 3 * capacity << grow)):
            capacity *= 2
            buckets = {}
            for earlier in mixed[:size]:
                bucket = earlier & capacity - 1
                buckets[bucket] = buckets.get(bucket, 0) + 1
    # Stable: within a bucket by insertion.
    return sorted(range(len(mixed)), key=lambda i: mixed[i] & capacity - 1)


_LONGEST_KEPT = 512  # characters: long keys would stay in memory


def names_order(names: tuple[str, ...]) -> tuple[int, ...]:
    """`hash_map_order` of a HashMap<String, …>; kept for short keys, as metadata's names recur."""
    return (
        _kept_names_order(names) if sum(map(len, names)) <= _LONGEST_KEPT else _names_order(names)
    )


def _names_order(names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(hash_map_order([string_hash(name) for name in names]))


_kept_names_order = lru_cache(maxsize=4096)(_names_order)


def property_names_order(names: Sequence[str]) -> list[str]:
    """Returns the order in which java.util.Properties.propertyNames gives distinct names that were
    put in this order.

    It copies the ConcurrentHashMap that holds them into a Hashtable (11 buckets, growing), which is
    walked backwards.
    """
    # A ConcurrentHashMap grows when three quarters are reached.
    capacity = 16 if len(names) < 12 else 32
    order = [names[i] for i in hash_map_order([string_hash(name) for name in names], capacity)]
    table: list[list[str]] = [[] for _ in range(11)]
    for count, name in enumerate(order):
        # Hashtable.rehash: from three quarters on, to 2 n + 1 buckets.
        if count >= len(table) * 3 // 4:
            walked = [earlier for bucket in reversed(table) for earlier in bucket]
            table = [[] for _ in range(2 * len(table) + 1)]
            for earlier in walked:
                _bucket(table, earlier).insert(0, earlier)
        _bucket(table, name).insert(0, name)
    return [name for bucket in reversed(table) for name in bucket]


def _bucket(table: list[list[str]], name: str) -> list[str]:
    return table[(string_hash(name) & 0x7FFF_FFFF) % len(table)]


# Numbers

_FRACTION_BITS = 52


def float_to_string(value: float) -> str:
    """Float.toString of JDK 17; `value` is rounded to 32 bits first."""
    return _float_text(_FLOAT.pack(float32(value)))


@lru_cache(maxsize=4096)
def _float_text(packed: bytes) -> str:
    """Returns the text of a 32-bit float. Kept, since most pages share a few scores; by its bits,
    as -0.0 equals 0.0.
    """
    (value,) = _FLOAT.unpack(packed)
    bits = int.from_bytes(_FLOAT.pack(abs(value)), "big") if not math.isnan(value) else 0
    exponent, fraction = bits >> 23, (bits & 0x7F_FFFF) << 29
    return _to_string(value, exponent, fraction, 127, 24)


def parse_float(text: str) -> float:
    """Float.parseFloat, before it is rounded to 32 bits. Raises ValueError."""
    text = text.strip(_BLANKS)
    if not _FLOAT_TEXT.fullmatch(text):
        raise ValueError(text)
    if "x" in text.lower():
        return float.fromhex(text)
    return float(text.rstrip("fFdD") if text[-1] in "fFdD" else text)


def double_to_string(value: float) -> str:
    """Double.toString of JDK 17."""
    bits = int.from_bytes(_DOUBLE.pack(abs(value)), "big") if not math.isnan(value) else 0
    return _to_string(value, bits >> 52, bits & (1 << 52) - 1, 1023, 53)


def _to_string(value: float, exponent: int, fraction: int, bias: int, precision: int) -> str:
    """Prints a number; `exponent` as stored, `fraction` as the 52 bits after the point."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return sign + "Infinity"
    if value == 0:
        return sign + "0.0"
    if exponent:
        fraction |= 1 << _FRACTION_BITS
    else:  # subnormal: shift its first bit to the front
        shift = _FRACTION_BITS + 1 - fraction.bit_length()
        fraction <<= shift
        exponent = 1 - shift
        precision -= shift
    digits, point = _decimal(fraction, exponent - bias, precision)
    return sign + float_layout(digits, point)


def float_layout(digits: str, point: int) -> str:
    """0.`digits` times ten to the `point`: plain from 0.001 to 10 million, or with an exponent."""
    if 0 < point < 8:
        return f"{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _decimal(fraction: int, exponent: int, precision: int) -> tuple[str, int]:
    """Returns the digits of `fraction * 2**(exponent - 52)` and the place of the decimal point.

    `fraction` has 53 bits, the first one set; the lowest `53 - precision` don't count.
    """
    zeros = (fraction & -fraction).bit_length() - 1
    width = _FRACTION_BITS + 1 - zeros
    below_point = max(0, width - exponent - 1)
    if -21 <= exponent <= 62 and below_point == 0:  # FloatingDecimal prints it as a long
        return _integer(fraction << exponent >> _FRACTION_BITS, exponent, precision)
    ten = _estimate(fraction, exponent)
    return _generate(fraction >> zeros, width, below_point, exponent, precision=precision, ten=ten)


def _integer(value: int, exponent: int, precision: int) -> tuple[str, int]:
    """Whole numbers keep their digits, but for those below the precision, which round half up."""
    dropped = 0
    if exponent > precision:
        beyond = exponent - precision - 1
        dropped = int(beyond * math.log10(2)) if beyond > 1 else 0
    if dropped:
        value = (value + 10**dropped // 2) // 10**dropped
    digits = str(value)
    return digits.rstrip("0"), len(digits) + dropped


def _estimate(fraction: int, exponent: int) -> int:
    """floor(log10) by a tangent at 1.5, which may be one too large."""
    mantissa = fraction / (1 << _FRACTION_BITS)  # FloatingDecimal.estimateDecExp
    return math.floor((mantissa - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981)


def _bits_of_5(power: int) -> int:
    """Returns the size by which FloatingDecimal judges 5**power: exact up to 26, then three bits
    each.
    """
    return 0 if power == 0 else (5**power).bit_length() if power < 27 else 3 * power


def _generate(
    odd: int, width: int, below_point: int, exponent: int, *, precision: int, ten: int
) -> tuple[str, int]:
    """Digits of `odd * 2**(exponent - width + 1)` by Steele and White, until they are within half a
    unit.

    The quirks are FloatingDecimal's: the upper test is strict only where the numbers fit into an
    int or a long, which then wrap; and numbers that are printed with an exponent get at least two
    digits.
    """
    remainder = _Remainder(odd, width, below_point, exponent, precision=precision, ten=ten)
    digit, low, high = remainder.next_digit()
    digits = [digit]
    if digit == 0 and not high:  # the estimate was one too large
        digits.clear()
        ten -= 1
    if not -3 <= ten < 8:
        low = high = False
    while not (low or high):
        digit, low, high = remainder.next_digit()
        digits.append(digit)
    text = "".join(map(str, digits))
    if high and (not low or remainder.rounds_up(digits[-1])):
        carried = str(int(text) + 1).zfill(len(text))
        ten += len(carried) > len(text)
        text = carried[: len(text)]
    return text, ten + 1


class _Remainder:
    """The remainder of a number while its digits are taken off: value = rest / scale * 10**ten.

    `margin` is half the distance to the next number, in the same scale; below a power of two, where
    the next number is nearer, it is halved for both sides.
    """

    def __init__(
        self, odd: int, width: int, below_point: int, exponent: int, *, precision: int, ten: int
    ) -> None:
        rest5, scale5 = max(0, -ten), max(0, ten)
        scale2 = scale5 + below_point
        rest2 = rest5 + below_point + exponent
        margin2 = rest2 - precision - (width == 1)
        rest2 -= width - 1
        shared = min(rest2, scale2)
        shared += min(0, margin2 - shared)  # no power of two may become negative
        rest2, scale2, margin2 = rest2 - shared, scale2 - shared, margin2 - shared
        widest = max(width + rest2 + _bits_of_5(rest5), scale2 + 1 + _bits_of_5(scale5 + 1))
        self._wrap = int32 if widest < 32 else int64 if widest < 64 else None
        self._rest = odd * 5**rest5 << rest2
        self._scale = 5**scale5 << scale2
        self._margin = 5**rest5 << margin2

    def next_digit(self) -> tuple[int, bool, bool]:
        """Returns the next digit, and whether stopping there is within the margin on each side."""
        digit, rest = divmod(self._rest, self._scale)
        tens = 10 * self._scale
        self._rest = rest = 10 * rest
        self._margin *= 10
        if self._wrap is None:
            return digit, rest < self._margin, rest + self._margin >= tens
        self._margin = self._wrap(self._margin)
        if self._margin <= 0:  # it has wrapped
            return digit, True, True
        return digit, rest < self._margin, self._wrap(rest + self._margin) > tens

    def rounds_up(self, digit: int) -> bool:
        """Returns whether the rest is above half a unit of the last digit, or half and odd."""
        twice, tens = 2 * self._rest, 10 * self._scale
        return twice > tens or (twice == tens and digit % 2 == 1)


# Dates


def date_to_string(ms: int) -> str:
    """java.util.Date.toString in the time zone UTC; `ms` since 1970, any 64-bit value."""
    year, month, day, second = date_fields(ms)
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{_DAYS[ms // _DAY_MS % 7]} {_MONTHS[month - 1]} {day:02} {clock} UTC {year}"


def date_time_to_string(ms: int, between: str = " ") -> str:
    """SimpleDateFormat("yyyy-MM-dd HH:mm:ss") in UTC; `between` stands between date and time."""
    year, month, day, second = date_fields(ms)
    time = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{year:04}-{month:02}-{day:02}{between}{time}"


def date_fields(ms: int) -> tuple[int, int, int, int]:
    """Year, month, day and second of the day in UTC, in Java's calendar: Julian before 15 October
    1582.

    Years before the first have no sign: 1 stands for 1 BC, too.
    """
    day, rest = divmod(ms, _DAY_MS)
    year, month, of_month = _civil(day)
    return 1 - year if year <= 0 else year, month, of_month, rest // 1000


def _civil(day: int) -> tuple[int, int, int]:
    """Year, month and day of a day counted from 1970-01-01. Inside, years begin on 1 March."""
    if day >= _FIRST_GREGORIAN_DAY:
        era, day = divmod(day + 719_468, 146_097)
        in_era = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
        year, day = in_era + 400 * era, day - (365 * in_era + in_era // 4 - in_era // 100)
    else:
        era, day = divmod(day + 719_470, 1461)
        in_era = (day - day // 1460) // 365
        year, day = in_era + 4 * era, day - 365 * in_era
    month = (5 * day + 2) // 153
    of_month = day - (153 * month + 2) // 5 + 1
    return (year + 1, month - 9, of_month) if month >= 10 else (year, month + 3, of_month)
