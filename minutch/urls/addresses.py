"""IP addresses in text form, as the JDK reads them (sun.net.util.IPAddressUtil)."""

from __future__ import annotations

import re


def is_ipv6(text: str) -> bool:
    """An IPv6 address in text form, with an optional scope after `%`, as the JDK reads one.

    A quirk of the JDK: a group may have any number of leading zeros.
    """
    address, percent, scope = text.partition("%")
    if percent and not scope:
        return False
    head, dots, tail = address.partition("::")
    if tail.startswith(":") or "::" in tail:
        return False
    before = _groups(head, last=not dots)
    after = _groups(tail, last=True)
    if before is None or after is None:
        return False
    return before + after < 8 if dots else before == 8


def _groups(text: str, *, last: bool) -> int | None:
    """How many 16-bit groups colon-separated `text` has (a trailing IPv4 address is two), None if it isn't such."""
    if not text:
        return 0
    fields = text.split(":")
    count = len(fields)
    if last and "." in fields[-1]:
        if not is_ipv4(fields.pop()):
            return None
        count += 1
    return count if all(_is_group(field) for field in fields) else None


def _is_group(field: str) -> bool:
    return re.fullmatch(r"0*[0-9A-Fa-f]{1,4}", field) is not None


def is_ipv4(text: str) -> bool:
    """Four decimal numbers up to 255 in at most 15 characters (IPAddressUtil)."""
    fields = text.split(".")
    return len(text) <= 15 and len(fields) == 4 and all(re.fullmatch(r"[0-9]+", f) and int(f) < 256 for f in fields)
