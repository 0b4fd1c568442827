"""The names of files that hold pages: made from URLs, and safe whatever a URL holds. Pure: no I/O.

    <md5 of the URL>_<file name in the URL>.<its suffix, or html>       dump, commoncrawldump
    <com>/<example>/<www>/<SHA-256 of the URL>                          dump -reverseUrlDirs
    <com>/<example>/<www>/<sha1 of the URL>/<epoch>.<suffix>            commoncrawldump
    -epochFilename

What comes from a URL keeps to a single file or folder name: no separator, no control character, no
name that a system reserves, no more bytes than a file system takes. Where Nutch's names have none
of these they are Nutch's.

Source: org.apache.nutch.util.DumpFileUtil, tools.FileDumper,
tools.CommonCrawlDataDumper.reverseUrl, commons-io's FilenameUtils (getBaseName, getExtension).
"""

from __future__ import annotations

import re
from hashlib import md5, sha1, sha256
from typing import Final

from minutch.errors import UrlError
from minutch.hadoop.formats.javaio import encode_text
from minutch.urls.parts import parse

MAX_BASE: Final = 32
"""Characters of a page's own name that are kept."""
MAX_SUFFIX: Final = 5
_MAX_BYTES: Final = 100
"""Bytes that one of them may take."""
_MAX_LABEL: Final = 63
"""Bytes of a host's label (RFC 1035, section 2.3.4); one that is longer can't be a real one."""
_RESERVED: Final = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
"""Names that mean devices on Windows."""


def url_md5(url: str) -> str:
    """The MD5 of a URL, in hexadecimal digits (DumpFileUtil.getUrlMD5)."""
    return md5(encode_text(url), usedforsecurity=False).hexdigest()


def url_sha1(url: str) -> str:
    """The SHA-1 of a URL, in hexadecimal digits."""
    return sha1(encode_text(url), usedforsecurity=False).hexdigest()


def url_sha256(url: str) -> str:
    """The SHA-256 of a URL, in hexadecimal digits."""
    return sha256(encode_text(url)).hexdigest()


def page_name(url: str, suffix: str = "") -> str:
    """The name of a page's file; `suffix` replaces the one that the URL has."""
    base, own = split_name(url)
    return f"{url_md5(url)}_{_shortened(base, MAX_BASE)}.{_shortened(suffix or own or 'html', MAX_SUFFIX)}"  # noqa: E501


def two_levels(name: str) -> str:
    """`ab/cd`, from four digits of the MD5 that a page's name begins with
    (DumpFileUtil.createTwoLevelsDirectory).
    """
    return f"{name[0]}{name[8]}/{name[16]}{name[24]}"


def reversed_name(url: str) -> str:
    """`com/example/www/<SHA-256>`."""
    return "/".join((*host_folders(url), url_sha256(url).upper()))


def epoch_name(url: str, epoch: int, suffix: str = "") -> str:
    """`com/example/www/<sha1>/<ms since 1970>.<suffix>`."""
    suffix = _shortened(suffix or split_name(url)[1] or "html", MAX_SUFFIX, drop="")
    return "/".join((*host_folders(url), url_sha1(url), f"{epoch}.{suffix}"))


def longer_name(name: str, url: str) -> str:
    """Another name, for a page whose name another page has: the URL's SHA-256 is put before the
    suffix.
    """
    folder, slash, last = name.rpartition("/")
    base, dot, suffix = last.rpartition(".")
    return f"{folder}{slash}{base or suffix}-{url_sha256(url)}{dot if base else ''}{suffix if base else ''}"  # noqa: E501


def split_name(url: str) -> tuple[str, str]:
    """The text between the last separator and the last dot behind it, and what follows that dot."""
    name = url[max(url.rfind("/"), url.rfind("\\")) + 1 :]
    base, dot, suffix = name.rpartition(".")
    return (base, suffix) if dot else (suffix, "")


def host_folders(url: str) -> list[str]:
    """A folder for each label of the host, the last label first; none where there is no host, or no
    URL.
    """
    try:
        host = parse(url).host
    except UrlError:
        return []
    return [_label(label) for label in reversed(host.split(".")) if label]


def _label(label: str) -> str:
    name = safe(label, r'<>:"|?*%')
    if len(name) > _MAX_LABEL:
        return f"{name[:20]}-{url_sha1(label)}"
    return f"%{ord(name[0]):02X}{name[1:]}" if _RESERVED.fullmatch(name) else name


def _shortened(text: str, limit: int, drop: str = "?") -> str:
    """The first `limit` UTF-16 units without the character `drop`, safe."""
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * limit]
    cut = units.decode("utf-16-le", "surrogatepass")
    if cut and "\ud800" <= cut[-1] <= "\udbff":
        cut = cut[:-1]
    name = safe(cut.replace(drop, "")).encode()
    return name[:_MAX_BYTES].decode("utf-8", "ignore")


def safe(text: str, also: str = "") -> str:
    """Separators, what can't be printed, bytes that are not UTF-8 and the characters of `also`,
    percent-encoded.
    """
    if text.isprintable() and not any(c in "/\\" or c in also for c in text):
        return text
    return "".join(
        c if c.isprintable() and c not in "/\\" and c not in also else _encoded(c) for c in text
    )


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in encode_text(character))
