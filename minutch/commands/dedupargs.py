"""Reads the options that `dedup` and `readdb -duplicates` share."""

from __future__ import annotations

from minutch.commands.arguments import Arguments, fail


def criteria(arguments: Arguments, usage: str) -> list[str]:
    """Returns the criteria of -compareOrder. Raises UsageError."""
    from minutch.cycle.crawldb import duplicates

    order: str = arguments.get("-compareOrder", duplicates.DEFAULT_ORDER)
    if not all(name in order for name in duplicates.REQUIRED):
        fail("DeduplicationJob: compareOrder must contain score, fetchTime and urlLength.", usage)
    return order.split(",")


def near_bits(arguments: Arguments, usage: str) -> int | None:
    """Returns the bits of -near; None if it was not given. Raises UsageError."""
    if arguments["-near"] is None:
        return None
    from minutch.cycle.crawldb import duplicates

    bits: int = (*arguments["-near"], duplicates.DEFAULT_BITS)[0]
    if not 0 <= bits <= duplicates.MOST_BITS:
        fail(f"-near: expected 0 to {duplicates.MOST_BITS} bits, found {bits}", usage)
    return bits
