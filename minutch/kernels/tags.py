"""The flags of elements by their names, for the kernel `markup`."""

from __future__ import annotations

from enum import IntEnum


class Tag(IntEnum):
    """A property that an element has by its name; a name's flags are a sum of these."""

    VOID = 1 << 0
    """It has no content: br, img and their like."""
    RAW = 1 << 1
    """It contains text alone: script, style, textarea and their like."""
    FORMATTING = 1 << 2
    """It is opened again in later blocks until it is closed: b, i, font and their like."""
    CLOSES_P = 1 << 3
    """It closes a p that is open."""
    IS_P = 1 << 4
    """It is a p."""
    ITEM = 1 << 5
    """It is an li."""
    TERM = 1 << 6
    """It is a dd or dt."""
    HEADING = 1 << 7
    """It is an h1 to h6."""
    OPTION = 1 << 8
    """It is an option or optgroup: closes an option."""
    CELL = 1 << 9
    """It is a td, th or caption."""
    ROW_OF_TABLE = 1 << 10
    """It is a tr."""
    SECTION = 1 << 11
    """It is a tbody, thead, tfoot or colgroup."""
    TABLE = 1 << 12
    """It is a table or template."""
    BARRIER = 1 << 13
    """It hides what is outside from the tags inside, which close nothing there."""
    SPECIAL = 1 << 14
    """It is one of the standard's special elements."""
    ONCE = 1 << 15
    """It is html, head or body: the attributes of all such tags add up on one element."""
    ALONE = 1 << 16
    """It is an a or nobr, never open within itself."""
    LAST = 1 << 17
    """It is plaintext, after which there are no tags."""
    VALUE = 1 << 18
    """It is an option, which an option or optgroup closes."""
    FRAMES = 1 << 19
    """It is a frameset, in which nothing is text alone."""
    MARKER = 1 << 20
    """It takes the formatting elements inside off the list when it ends."""
    PLAIN = 1 << 21
    """It is an address, div or p: the special elements through which an li closes another."""
    LEAVES = 1 << 22
    """It ends what is foreign."""
    RUBY = 1 << 23
    """It is an rb, rp, rt or rtc."""
    FORM = 1 << 24
    """It is a form."""
    SVG = 1 << 25
    """It is an svg, or inside of one."""
    MATH = 1 << 26
    """It is a math, or inside of one."""
    IN_SVG = 1 << 27
    """It holds HTML again inside of an svg."""
    IN_MATH = 1 << 28
    """It holds HTML again inside of a math."""
