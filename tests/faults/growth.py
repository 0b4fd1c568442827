"""Gives readers of the web ever longer input of few tokens, and looks at the processor time.

    WORD*                    one token again and again, alone, in a sample or behind it
    WORD* OTHER*             what is opened and not closed
    (WORD OTHER)*            what is opened and closed
    sample*                  a sample again and again

A reader whose time grows with the square of its input takes 64 times as long for 8 times as much,
where it should take 8 times. What takes less than `QUICK` a byte is not looked at again: that is
what most input takes, and it is measured once.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from minutch.errors import MinutchError
from tests.faults.readers import Reader

QUICK: Final = 4e-6
"""Seconds a byte that no input needs to answer for."""
SLOW: Final = 60e-6
"""Seconds a byte that nothing may take."""
TIMES: Final = 8
MOST: Final = 24
"""How much longer so many times the input may take."""
SHORT: Final = 0.004
"""Seconds that are too few to compare with."""


class Family(NamedTuple):
    """Input that can be had in any length."""

    name: str
    before: bytes
    parts: tuple[bytes, ...]
    """Each is repeated, one behind the other, in equal lengths."""

    def of(self, size: int) -> bytes:
        """About so many bytes."""
        each = max(0, size - len(self.before)) // len(self.parts)
        return self.before + b"".join(part * (each // len(part)) for part in self.parts)


def families(reader: Reader) -> list[Family]:
    """All of a reader, what once failed first."""
    words = reader.words
    samples = [sample for sample in reader.samples() if sample]
    found = [Family("once", b"", (once,)) for once in reader.once if once]
    for word in words:
        found.append(Family(f"{word!r}*", b"", (word,)))
        for number, sample in enumerate(samples[:2]):
            found.append(Family(f"in {number}: {word!r}*", sample[: len(sample) // 2], (word,)))
            found.append(Family(f"behind {number}: {word!r}*", sample, (word,)))
    for word in words:
        for other in words:
            if word != other:
                found.append(Family(f"({word!r} {other!r})*", b"", (word + other,)))
                found.append(Family(f"{word!r}* {other!r}*", b"", (word, other)))
    return found + [Family(f"sample {n}*", b"", (one,)) for n, one in enumerate(samples)]


def too_slow(reader: Reader, size: int, most: int, seed: int = 1) -> Iterator[str]:
    """Yields what is wrong with `most` of the families, those first that once failed and those of
    one token, others by the seed.
    """
    size = min(size, reader.most)
    known = families(reader)
    first = [one for one in known if len(one.parts) == 1 and one.name.endswith("*")][: most // 2]
    others = [one for one in known if one not in first]
    random.Random(seed).shuffle(others)
    once = [one for one in known if one.name == "once"]
    for sample in reader.samples():
        seconds(reader, sample)  # what is loaded and compiled at the first call
    for family in [*once, *first, *others[: max(0, most - len(first))]]:
        long = family.of(size)
        took = seconds(reader, long)
        if took <= max(SHORT, QUICK * len(long)):
            continue
        took = min(took, seconds(reader, long), seconds(reader, long))
        short = family.of(size // TIMES)
        before = max(min(seconds(reader, short) for _ in range(3)), SHORT)
        if took > MOST * before or took > SLOW * len(long) + 1:
            yield (
                f"{family.name}: {len(long)} bytes took {took:.2f} s, {len(short)} took"
                f" {before:.3f} s"
            )


def seconds(reader: Reader, data: bytes) -> float:
    """Returns the processor time of one reading."""
    gc.disable()
    before = time.process_time()
    try:
        with suppress(MinutchError, *reader.errors):
            reader.read(data)
        return time.process_time() - before
    finally:
        gc.enable()
