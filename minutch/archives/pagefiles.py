"""Writes a folder of files named after URLs, one for each page. Files are complete, and no page
overwrites another.

Files are written to a hidden folder and moved to the output folder at the end. As in Nutch, this
may exist; its files are not changed. Names are compared case-insensitively, as in some file
systems. The table of names is on disk, so memory does not grow with the pages.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from hashlib import md5, sha1, sha256
from pathlib import Path
from typing import Final, NamedTuple

from minutch.cycle.parse.mime import MimeUtil
from minutch.errors import StoreError
from minutch.hadoop.formats.javahash import names_order
from minutch.hadoop.formats.javaio import encode_text
from minutch.job import Counters
from minutch.urls.parts import spelled_host
from minutch.work.tables.install import clear, make_directory, sync_path, sync_tree, work_folder

# Makes names of pages' files from URLs, which are safe for any URL. Pure: no I/O.
#
#     dump, commoncrawldump
#     <md5 of the URL>_<file name in the URL>.<its suffix, or html>
#
#     dump -reverseUrlDirs
#     <com>/<example>/<www>/<SHA-256 of the URL>
#
#     commoncrawldump -epochFilename
#     <com>/<example>/<www>/<sha1 of the URL>/<epoch>.<suffix>
#
# Text from a URL yields a single file or folder name: without separators, control characters, and
# names that a system reserves, and no longer than file systems permit. Otherwise names are those
# of Nutch.
#
# Source: org.apache.nutch.util.DumpFileUtil, tools.FileDumper,
# tools.CommonCrawlDataDumper.reverseUrl, commons-io's FilenameUtils (getBaseName, getExtension).

MAX_BASE: Final = 32
"""Maximum length of the file name in the URL, in characters."""
MAX_SUFFIX: Final = 5
_MAX_BYTES: Final = 100
"""Maximum length of a part of a name, in bytes."""
_MAX_LABEL: Final = 63
"""Maximum length of a label of a host in bytes (RFC 1035, section 2.3.4)."""
_RESERVED: Final = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
"""Names of devices on Windows."""


def url_md5(url: str) -> str:
    """Returns the MD5 of a URL in hexadecimal digits (DumpFileUtil.getUrlMD5)."""
    return md5(encode_text(url), usedforsecurity=False).hexdigest()


def url_sha1(url: str) -> str:
    """Returns the SHA-1 of a URL in hexadecimal digits."""
    return sha1(encode_text(url), usedforsecurity=False).hexdigest()


def url_sha256(url: str) -> str:
    """Returns the SHA-256 of a URL in hexadecimal digits."""
    return sha256(encode_text(url)).hexdigest()


def page_name(url: str, suffix: str = "") -> str:
    """Returns the name of a page's file; `suffix` replaces that of the URL."""
    base, own = split_name(url)
    suffix = _shortened(suffix or own or "html", MAX_SUFFIX)
    return f"{url_md5(url)}_{_shortened(base, MAX_BASE)}.{suffix}"


def two_levels(name: str) -> str:
    """Returns `ab/cd`, made of four digits of the MD5 at the beginning of a page's name
    (DumpFileUtil.createTwoLevelsDirectory).
    """
    return f"{name[0]}{name[8]}/{name[16]}{name[24]}"


def reversed_name(url: str) -> str:
    """Returns `com/example/www/<SHA-256>`."""
    return "/".join((*host_folders(url), url_sha256(url).upper()))


def epoch_name(url: str, epoch: int, suffix: str = "") -> str:
    """Returns `com/example/www/<sha1>/<ms since 1970>.<suffix>`."""
    suffix = _shortened(suffix or split_name(url)[1] or "html", MAX_SUFFIX, drop="")
    return "/".join((*host_folders(url), url_sha1(url), f"{epoch}.{suffix}"))


def longer_name(name: str, url: str) -> str:
    """Inserts the URL's SHA-256 before the suffix, for a page whose name another page has."""
    folder, slash, last = name.rpartition("/")
    base, dot, suffix = last.rpartition(".")
    end = f"{dot}{suffix}" if base else ""
    return f"{folder}{slash}{base or suffix}-{url_sha256(url)}{end}"


def split_name(url: str) -> tuple[str, str]:
    """Splits the text after the last separator at its last dot."""
    name = url[max(url.rfind("/"), url.rfind("\\")) + 1 :]
    base, dot, suffix = name.rpartition(".")
    return (base, suffix) if dot else (suffix, "")


def host_folders(url: str) -> list[str]:
    """Returns a folder for each label of the host, in reverse order; none without a host."""
    host = spelled_host(url) or ""
    return [_label(label) for label in reversed(host.split(".")) if label]


def _label(label: str) -> str:
    name = safe(label, r'<>:"|?*%')
    if len(name) > _MAX_LABEL:
        return f"{name[:20]}-{url_sha1(label)}"
    return f"%{ord(name[0]):02X}{name[1:]}" if _RESERVED.fullmatch(name) else name


def _shortened(text: str, limit: int, drop: str = "?") -> str:
    """Returns the first `limit` UTF-16 units, made safe, without the character `drop`."""
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * limit]
    cut = units.decode("utf-16-le", "surrogatepass")
    if cut and "\ud800" <= cut[-1] <= "\udbff":
        cut = cut[:-1]
    name = safe(cut.replace(drop, "")).encode()
    return name[:_MAX_BYTES].decode("utf-8", "ignore")


def safe(text: str, also: str = "") -> str:
    """Percent-encodes separators, unprintable characters, bytes that are no UTF-8, and `also`."""
    if text.isprintable() and not any(c in "/\\" or c in also for c in text):
        return text
    return "".join(
        c
        if c.isprintable() and c not in "/\\" and c not in also
        else "".join(f"%{byte:02X}" for byte in encode_text(c))
        for c in text
    )


_WORK: Final = ".pages-"


class PageFile(NamedTuple):
    """The name of a page's file, and whether it is new: neither in the folder nor claimed."""

    name: str
    is_new: bool


class PageFiles:
    """A writer of the files of one run. See `page_files`."""

    def __init__(self, out: Path, work: Path) -> None:
        self.out = out
        self._files = work / "files"
        self._files.mkdir()
        self._made: set[Path] = set()
        self._names = sqlite3.connect("", isolation_level=None)  # a temporary file without a name
        self._names.execute("PRAGMA journal_mode=OFF")
        self._names.execute("CREATE TABLE names (name TEXT PRIMARY KEY, url BLOB) WITHOUT ROWID")

    def close(self) -> None:
        """Closes the table of names."""
        self._names.close()

    def claim(self, name: str, url: str) -> PageFile:
        """Returns the name of a page's file: `name`, or a longer one if another page has that."""
        key = encode_text(url)
        while True:
            owner = self._owner(name.lower(), key)
            if owner is None:
                return PageFile(name, is_new=not (self.out / name).exists())
            if owner == key:
                return PageFile(name, is_new=False)
            name = longer_name(name, url)

    def _owner(self, name: str, key: bytes) -> bytes | None:
        """Returns the page that has a name; None if it was free, and is now that of `key`."""
        try:
            taken = self._names.execute("SELECT url FROM names WHERE name = ?", (name,)).fetchone()
            if taken is not None:
                return bytes(taken[0])
            self._names.execute("INSERT INTO names VALUES (?, ?)", (name, key))
        except sqlite3.Error as exc:
            raise StoreError(
                f"can't keep the table of file names in a temporary file: {exc}"
            ) from exc
        return None

    def add(self, name: str, url: str, data: bytes) -> PageFile:
        """Writes a page's file unless it exists."""
        file = self.claim(name, url)
        if file.is_new:
            self.path(file.name).write_bytes(data)
        return file

    def path(self, name: str) -> Path:
        """Returns the temporary path of a file with a claimed name; creates its folder."""
        path = self._files / name
        if path.parent not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            if len(self._made) > 10_000:
                self._made.clear()
            self._made.add(path.parent)
        return path

    def install(self) -> None:
        """Moves all files to the output folder."""
        sync_tree(self._files)
        if not self.out.exists():
            self._files.rename(self.out)
            sync_path(self.out.parent)
            return
        for folder, _, names in os.walk(self._files):
            target = self.out / Path(folder).relative_to(self._files)
            make_directory(target)
            for name in names:
                Path(folder, name).replace(target / name)
            sync_path(target)


@contextmanager
def page_files(out: Path) -> Iterator[PageFiles]:
    """Opens a writer of files, moved to `out` at the end; an error leaves `out` unchanged."""
    if out.exists() and not out.is_dir():
        raise StoreError(f"Output directory {out} is not a directory")
    make_directory(out.parent)
    clear(out.parent, _WORK)
    parent = out if out.exists() else out.parent
    with work_folder(parent, _WORK) as work, closing(PageFiles(out, work)) as files:
        yield files
        files.install()


# Counts pages by media type, which `dump` and `commoncrawldump` select by and print. The type is
# detected from the content alone.
#
# Source: org.apache.nutch.util.DumpFileUtil.displayFileTypes.


class MediaTypeCounts:
    """Numbers of pages by media type, in total and of the types to select."""

    def __init__(self, mime: MimeUtil, wanted: Collection[str] | None) -> None:
        """`wanted` are the types to select; None selects all."""
        self._mime = mime
        self._wanted = None if wanted is None else frozenset(wanted)
        self.total = Counters()
        self.selected = Counters()

    def add(self, content: bytes) -> bool:
        """Counts a page; returns whether its type is selected."""
        name = self._mime.by_content(content)
        self.total.add(name)
        if self._wanted is not None and name not in self._wanted:
            return False
        self.selected.add(name)
        return True

    def text(self, *, with_selected: bool = True) -> str:
        """Returns both tables, or the first one, in the order of Nutch's HashMap."""
        lines = [
            "",
            "TOTAL Stats:",
            *_table(self.total),
            f"Total count: {sum(self.total.values())}",
        ]
        if with_selected and self.selected:
            lines += ["", "FILTERED Stats:", *_table(self.selected)]
            lines.append(f"Total filtered count: {sum(self.selected.values())}")
        return "\n".join((*lines, ""))


def _table(counts: Counters) -> Iterator[str]:
    names = list(counts)
    yield "["
    for position in names_order(tuple(names)):
        yield f'    {{"mimeType":"{names[position]}","count":"{counts[names[position]]}"}}'
    yield "]"
