"""Makes names of pages' files from URLs, which are safe for any URL. Pure: no I/O.

    dump, commoncrawldump
    <md5 of the URL>_<file name in the URL>.<its suffix, or html>

    dump -reverseUrlDirs
    <com>/<example>/<www>/<SHA-256 of the URL>

    commoncrawldump -epochFilename
    <com>/<example>/<www>/<sha1 of the URL>/<epoch>.<suffix>

Text from a URL yields a single file or folder name: without separators, control characters, and
names that a system reserves, and no longer than file systems permit. Otherwise names are those of
Nutch.

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
    """Returns the first `limit` UTF-16 units, made safe, without the character `drop`."""
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * limit]
    cut = units.decode("utf-16-le", "surrogatepass")
    if cut and "\ud800" <= cut[-1] <= "\udbff":
        cut = cut[:-1]
    name = safe(cut.replace(drop, "")).encode()
    return name[:_MAX_BYTES].decode("utf-8", "ignore")


def safe(text: str, also: str = "") -> str:
    """Percent-encodes separators, unprintable characters, bytes that are not UTF-8, and the
    characters of `also`.
    """
    if text.isprintable() and not any(c in "/\\" or c in also for c in text):
        return text
    return "".join(
        c if c.isprintable() and c not in "/\\" and c not in also else _encoded(c) for c in text
    )


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in encode_text(character))
