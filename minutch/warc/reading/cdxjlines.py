"""Reads CDXJ and CDX: lines with the positions of the records of archives, by URL and time.

    CDXJ  :=  key " " time " " JSON
    JSON  :=  {"url": …, "mime": …, "status": …, "digest": …, "length": …, "offset": …,
               "filename": …}
    CDX   :=  " CDX " letters LF line*
    line  :=  a word for each letter: a URL, b time, m type, s status, k digest, V offset,
              g file name, S length

Pure but for reading lines.
Source: the CDXJ format of pywb and OutbackCDX; the Internet Archive's CDX legend.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from minutch import strictjson
from minutch.errors import FormatError, StoreError
from minutch.warc.reading.visits import arc_time

CDXJ_LINE: Final = re.compile(rb"(?: CDX [A-Za-z ]+|[^\s]+ [0-9]{4,17} \{[^\n]*|!meta [^\n]*)")
LONGEST_LINE: Final = 1 << 16
_LETTERS: Final = {
    "a": "url", "m": "mime", "s": "status", "k": "digest", "V": "offset", "g": "filename",
    "b": "time",
}  # fmt: skip
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class CdxjLine:
    """One line: a visit's record, and what it says of it. `time` in ms, `status` 0 if unknown."""

    url: str
    time: int
    mime: str
    status: int
    digest: str
    filename: str
    offset: int
    method: str = "GET"

    @property
    def is_original(self) -> bool:
        """True if the record holds the content that the digest is of."""
        return bool(self.digest) and self.mime != "warc/revisit"


def read_entries(path: Path) -> Iterator[tuple[int, CdxjLine | None]]:
    """Yields the lines of a file by number, None for those without meaning. Raises StoreError."""
    letters: list[str] = []
    try:
        with path.open("rb") as raw:
            is_gzip = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file: Any = gzip.GzipFile(fileobj=raw) if is_gzip else raw
            number = 0
            while line := file.readline(LONGEST_LINE):
                number += 1
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                if text.startswith(" CDX "):
                    letters = text.split()[1:]
                elif text and not text.startswith("!meta"):
                    yield number, _cdx(letters, text) if letters else _cdxj(text)
    except (OSError, EOFError) as exc:
        raise StoreError(f"{path}: can't be read: {exc}") from exc
    except gzip.zlib.error as exc:  # type: ignore[attr-defined]
        raise FormatError(f"bad gzip data ({exc})", path=path) from exc


def _cdxj(text: str) -> CdxjLine | None:
    _, _, rest = text.partition(" ")
    time, _, fields = rest.partition(" ")
    try:
        found = strictjson.loads(fields)
    except ValueError:
        return None
    return _entry({**found, "time": time}) if isinstance(found, dict) else None


def _cdx(letters: list[str], text: str) -> CdxjLine | None:
    words = text.split(" ")
    if len(words) != len(letters):
        return None
    return _entry(
        {
            _LETTERS[letter]: word
            for letter, word in zip(letters, words, strict=True)
            if letter in _LETTERS
        }
    )


def _entry(fields: dict[str, Any]) -> CdxjLine | None:
    text = {name: str(value) for name, value in fields.items()}
    offset, status = text.get("offset", ""), text.get("status", "")
    if not (_NUMBER.fullmatch(offset) and text.get("url") and text.get("filename")):
        return None
    digest = text.get("digest", "").lower()
    return CdxjLine(
        text["url"],
        arc_time(text.get("time", "")[:14]),
        text.get("mime", ""),
        int(status) if _NUMBER.fullmatch(status) else 0,
        digest if ":" in digest or not digest else f"sha1:{digest}",
        text["filename"],
        int(offset),
        text.get("method", "GET"),
    )


def archive_of(index: Path, filename: str, folders: tuple[Path, ...] = ()) -> Path | None:
    """Returns the archive that a line names: beside its index, in one of `folders`, or in
    `../archive/` as a WACZ has it.

    None if it is not there. A name never leads out of these folders.
    """
    name = filename.replace("\\", "/")
    for folder in (index.parent, *folders, index.parent.parent / "archive"):
        for candidate in (folder / name, folder / name.rpartition("/")[2]):
            with suppress(OSError):  # a name that no file can have
                if candidate.is_file() and candidate.resolve().is_relative_to(folder.resolve()):
                    return candidate
    return None
