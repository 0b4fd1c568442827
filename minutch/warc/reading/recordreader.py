"""Reads the records of archives, one after the other, whatever has happened to the file.

    reader = RecordReader(source, WARC, name)
    for record in reader: ...
    reader.damages                    how many places were passed over; each is said with its offset

    record  :=  head  block  blank lines        (`recordheads` says what a head is)

A record counts if its head is whole, its block as long as the head says, and blank lines, the next
record, or the end follow; or if its block has the digest that the head names; or if it is an HTTP
answer that says itself how long it is, and that fits; or if the next record begins a few bytes
before or after the end that the head says, as in ClueWeb. Everything else is damage: the next
record is sought, from behind the head on. A block is kept up to `most` bytes, the rest is passed
over, so memory is bounded whatever a head says.
"""

from __future__ import annotations

import binascii
import hashlib
import logging
import re
from base64 import b32decode
from collections.abc import Iterator
from typing import Final

from minutch.warc.reading.bytesource import ByteSource, RecordPosition
from minutch.warc.reading.recordheads import Grammar

log = logging.getLogger(__name__)

MOST_BLOCK: Final = 1 << 27
"""Bytes of a block that are kept, where the reader says nothing else."""
MOST_SAID: Final = 100
"""Damaged places of a file that the log names one by one."""
_BLANK: Final = re.compile(rb"[\r\n \t]+")
_LAST_LINES: Final = re.compile(rb"(?:\r?\n){1,2}\Z")
_NEAR: Final = 32
"""Bytes by which a head may be wrong about its block, if another record begins there."""
_OVERLAP: Final = 1 << 14
_LONGEST_ANSWER_HEAD: Final = 1 << 16
_ANSWER_HEAD: Final = re.compile(
    rb"HTTP/[0-9.]{1,8}[ \t]+[0-9]{3}[^\n]*\n(?:[^\r\n][^\n]*\n)*\r?\n"
)
_CONTENT_LENGTH: Final = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*([0-9]{1,15})[ \t]*\r?$")
_DIGESTS: Final = {"sha1": 20, "sha256": 32, "md5": 16, "sha512": 64}


class Record:
    """One record. `block` is cut short at the reader's limit; `length` is what its head says."""

    __slots__ = ("_fields", "block", "grammar", "head", "length", "place")

    def __init__(
        self, grammar: Grammar, head: bytes, block: bytes, length: int, place: RecordPosition
    ) -> None:
        self.grammar, self.head = grammar, head
        self._fields: dict[str, str] | None = None
        self.block, self.length, self.place = block, length, place

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the head, by lower-case name."""
        if self._fields is None:
            self._fields = self.grammar.fields(self.head)
        return self._fields

    @property
    def is_cut(self) -> bool:
        """True if the block was longer than the reader keeps."""
        return len(self.block) < self.length

    def with_block(self, block: bytes) -> Record:
        """Returns the same record with another block, which is all of it."""
        return Record(self.grammar, self.head, block, len(block), self.place)


class RecordReader:
    """The records of one archive."""

    def __init__(
        self, source: ByteSource, grammar: Grammar, name: str, *, most: int = MOST_BLOCK
    ) -> None:
        """`most`: bytes of a block that are kept."""
        self._source, self._grammar, self._name, self._most = source, grammar, name, most
        self.damages = 0
        self._said = False
        """What ended this member is said already, with the record that it ended."""

    def __iter__(self) -> Iterator[Record]:
        while True:
            # Most members are one whole record: one look, and no window that moves.
            record = self._whole_member()
            if record is None:
                if not self._to_record():
                    break
                record = self._record()
            if record is not None:
                yield record
        if self.damages > MOST_SAID:
            log.warning("%s: %d more damaged places", self._name, self.damages - MOST_SAID)

    @property
    def end(self) -> int | None:
        """The offset behind the last record; None where its member goes on."""
        return self._source.end

    def at(self, place: RecordPosition) -> Record | None:
        """Returns the record at a place where there was one; None if it is not there any more."""
        self._source.go_to(place)
        return self._record() if self._is_start() else None

    def _damaged(self, place: RecordPosition | None, what: str) -> None:
        self.damages += 1
        if self.damages <= MOST_SAID:
            log.warning("%s: damaged at offset %s: %s", self._name, place, what)

    def _whole_member(self) -> Record | None:
        """The record that is all of the next member, as most are; None if it is not that simple."""
        source, grammar = self._source, self._grammar
        if source.at < len(source.window) or not source.next_whole():
            return None
        data = source.window
        end = grammar.end.search(data, 0, grammar.longest)
        if end is None or not grammar.start.match(data):
            return None
        at = end.end()
        try:
            head = data[:at]
            length = grammar.length(head)
        except ValueError:
            return None
        if (
            # Anything else goes the way that looks for damage.
            len(data) - at - length != len(grammar.tail)
            or length > self._most
            or not data.endswith(grammar.tail)
        ):
            return None
        source.at = len(data)
        return Record(grammar, head, data[at : at + length], length, source.member())

    # -- where records begin -----------------------------------------------------------------------

    def _to_record(self) -> bool:
        """Goes to the next record; False at the end of the file."""
        source = self._source
        while True:
            self._pass_blank()
            if source.at >= len(source.window):
                if not self._next_member():
                    return False
            elif self._is_start():
                return True
            elif self._pass_zeros():
                self._damaged(source.place(), "no record begins here")
                self._seek_start()

    def _next_member(self) -> bool:
        source = self._source
        if source.damage and not self._said:
            self._damaged(source.place(), source.damage)
        self._said = False
        source.gap = None
        found = source.next_member()
        if source.gap is not None:
            self._damaged(source.gap, "no gzip member")
        return found

    def _pass_blank(self) -> None:
        """Passes blank lines, at a member's end to its last byte, so that its checksum counts."""
        source = self._source
        while True:
            blank = _BLANK.match(source.window, source.at)
            if blank is not None:
                source.at = blank.end()
            if source.at < len(source.window) or not source.more():
                return

    def _pass_zeros(self) -> bool:
        """Passes zeros; False if they go on to the end: some disks leave them, without damage."""
        source = self._source
        while True:
            rest = source.window[source.at :].lstrip(b"\0")
            source.at = len(source.window) - len(rest)
            if rest or not source.more():
                return bool(rest)

    def _more(self) -> bool:
        """More of what may belong to one record."""
        return self._source.more() or self._source.joins()

    def _is_start(self) -> bool:
        source = self._source
        while not (found := self._grammar.start.match(source.window, source.at)):
            # A first line has fewer bytes: what does not match by now will not.
            if len(source.window) - source.at >= _OVERLAP or not self._more():
                return False
        return found is not None

    def _seek_start(self) -> None:
        """Goes to where the next record may begin, here or later, or to the end of the member."""
        source, seek = self._source, self._grammar.seek
        while True:
            found = seek.search(source.window, source.at)
            if found:
                source.at = found.start()
                return
            # A beginning may lie across the end of the window.
            source.at = max(source.at, len(source.window) - _OVERLAP)
            if not self._more():
                source.at = len(source.window)
                return

    # -- one record --------------------------------------------------------------------------------

    def _record(self) -> Record | None:
        """Returns the record that begins here; None, and the damage is said, if it is not whole."""
        source = self._source
        source.keep()
        place = source.place()
        raw = self._head()
        if raw is None:
            self._damaged(place, source.damage or "no end of the record's head")
            self._said = bool(source.damage)
            # Or the same place would be tried again.
            source.at += 1
            self._pass_headless()
            self._seek_start()
            return None
        try:
            length = self._grammar.length(raw)
        except ValueError as exc:
            self._damaged(place, str(exc))
            source.at += len(raw)
            self._seek_start()
            return None
        behind_head = source.place()
        source.at += len(raw)
        block, found = self._block(length)
        record = Record(self._grammar, raw, block, length, place)
        wrong = self._wrong(record, found)
        if not wrong:
            return record
        self._said = bool(source.damage)
        if _has_digest(record):
            self._damaged(place, f"{wrong}; the record is kept, its digest is right")
            return record
        mended, why = None, ""
        if not source.damage:
            mended = self._mended(record, behind_head, len(raw))
            why = "; the answer in it is whole and kept" if mended is not None else ""
        if mended is None and not source.damage:
            mended = self._up_to_next(record, found, behind_head, len(raw))
            why = "; it is kept up to the next one, which begins near there" if mended else ""
        self._damaged(place, f"{wrong}{why}")
        if source.damage:
            source.at = len(source.window)
        return mended

    def _head(self) -> bytes | None:
        source, begin = self._source, 0
        while True:
            found = self._grammar.end.search(
                source.window, source.at + begin, source.at + self._grammar.longest
            )
            if found:
                return source.window[source.at : found.end()]
            have = len(source.window) - source.at
            if have > self._grammar.longest:
                return None
            # The end of a head may lie across two reads; what was searched is not searched again.
            begin = max(0, have - 4)
            if not self._more():
                return None

    def _pass_headless(self) -> None:
        """Goes to the first place whose head, if one begins there, can end: to try each line that
        looks like a beginning took 25 s a megabyte.
        """
        source, grammar = self._source, self._grammar
        while True:
            found = grammar.end.search(source.window, source.at)
            if found is not None:
                source.at = max(source.at, found.end() - grammar.longest)
                return
            source.at = max(source.at, len(source.window) - grammar.longest)
            if not self._more():
                source.at = len(source.window)
                return

    def _block(self, length: int) -> tuple[bytes, int]:
        """Returns the block up to the limit, and how many bytes of it are there."""
        source = self._source
        at, end = source.at, source.at + length
        if end <= len(source.window) and length <= self._most:
            source.at = end
            return source.window[at:end], length
        pieces: list[bytes] = []
        left = min(length, self._most)
        while True:
            piece = source.window[source.at : source.at + left]
            pieces.append(piece)
            source.at += len(piece)
            left -= len(piece)
            if not left or not self._more():
                break
        found = sum(map(len, pieces))
        # Beyond the limit bytes are counted, not kept.
        while not left and found < length:
            found += source.skip(length - found)
            if found < length and not source.joins():
                break
        return b"".join(pieces), found

    def _wrong(self, record: Record, found: int) -> str:
        """Returns what is wrong with a record that was read; empty if nothing is."""
        source = self._source
        if found < record.length:
            return (
                f"{source.damage or 'the record ends early'}: expected {record.length} bytes, found"
                f" {found}"
            )
        has_tail = self._has_tail()
        self._pass_blank()
        if source.at < len(source.window):
            return (
                ""
                if has_tail or self._is_start()
                else f"what follows {record.length} bytes is no record"
            )
        return source.damage

    def _has_tail(self) -> bool:
        source, tail = self._source, self._grammar.tail
        while len(source.window) - source.at < len(tail):
            if not self._more():
                return False
        return source.window.startswith(tail, source.at)

    def _mended(self, record: Record, behind_head: RecordPosition, size: int) -> Record | None:
        """Returns the record as long as the HTTP answer in it says; else None, at the next record
        after its head.
        """
        source = self._source
        source.go_to(behind_head)
        source.skip(size)
        while len(source.window) - source.at < _LONGEST_ANSWER_HEAD and self._more():
            pass
        length = _answer_length(source.window, source.at)
        if length is not None and length <= self._most and length != record.length:
            start = source.place()
            block, found = self._block(length)
            mended = record.with_block(block)
            if found == length and not self._wrong(mended, found):
                return mended
            source.go_to(start)
            source.more()
        return None

    def _up_to_next(
        self, record: Record, found: int, behind_head: RecordPosition, size: int
    ) -> Record | None:
        """Returns the record up to the next one, or to the end of its member or file, if that is
        near the end that its head says; else None, at the next record after its head.
        """
        source, least = self._source, max(0, record.length - _NEAR)
        length = found if found < record.length else 0
        if not length:
            source.go_to(behind_head)
            source.skip(size + least)
            while len(source.window) - source.at < 3 * _NEAR and self._more():
                pass
            start = self._grammar.seek.search(source.window, source.at, source.at + 3 * _NEAR)
            length = least + (len(source.window) if start is None else start.start()) - source.at
        source.go_to(behind_head)
        source.skip(size)
        if least <= length <= min(self._most, record.length + _NEAR):
            behind = source.place()
            mended = record.with_block(_LAST_LINES.sub(b"", self._block(length)[0]))
            if "warc-block-digest" not in record.fields or _has_digest(mended):
                return mended
            source.go_to(behind)
            source.more()
        self._seek_start()
        return None


def _answer_length(data: bytes, at: int) -> int | None:
    """Returns the length of the HTTP answer at `at` by its Content-Length; None if it has none."""
    head = _ANSWER_HEAD.match(data, at)
    length = None if head is None else _CONTENT_LENGTH.search(head[0])
    return None if head is None or length is None else head.end() - at + int(length[1])


def _has_digest(record: Record) -> bool:
    """Tells whether a record's block is the one whose digest its head names."""
    algorithm, _, text = record.fields.get("warc-block-digest", "").strip().partition(":")
    size = _DIGESTS.get(algorithm.lower().replace("-", ""))
    if size is None or record.is_cut:
        return False
    try:
        digest = (
            bytes.fromhex(text)
            if len(text) == 2 * size
            # Fields leave the padding out.
            else b32decode(text.upper() + "=" * (-len(text) % 8))
        )
    except (ValueError, binascii.Error):
        return False
    return (
        hashlib.new(
            algorithm.lower().replace("-", ""), record.block, usedforsecurity=False
        ).digest()
        == digest
    )
