"""Finds the configuration that a crawl's folder remembers, and refuses one that can't be trusted.

    <crawl>/conf/nutch-site.xml    what the first `crawl URL` of the folder was told
    <crawl>/conf/*                 rule files, before those of other configuration folders

Every command on the folder, or on what is in it, uses it. A crawl's folder may come from somebody
else: nobody else may own or write its conf/, and what names code that is run counts in the
operator's own configuration only.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from minutch.errors import ConfigError

CONF: Final = "conf"
SITE: Final = "nutch-site.xml"
_OF_A_CRAWL: Final = ("crawldb", "segments", "linkdb", "hostdb", "index", "crawl.log")
"""What a crawl's folder has, at least one of them."""
_LEVELS: Final = 3
"""Folders from a segment's part up to the crawl's."""
_NAMES_CODE: Final = re.compile(
    r"plugin\.folders|index\.arbitrary\..*|selenium\.grid\.binary|webdriver\..*|spark\..*"
)


def conf_of(words: Iterable[str]) -> Path | None:
    """Returns the conf/ of the crawl in whose folder the paths among some words lie; None if it has
    none, or if they lie in those of several crawls.
    """
    found, seen = set(), set()
    for word in words:
        if not word or word.startswith("-") or "://" in word:
            continue
        path = Path(word)
        for folder in (path, *list(path.parents)[:_LEVELS]):
            if folder not in seen and is_remembering(folder):
                found.add(folder / CONF)
            seen.add(folder)
    return found.pop() if len(found) == 1 else None


def is_remembering(folder: Path) -> bool:
    """Tells whether a folder is a crawl's that has a configuration of its own."""
    try:
        return (folder / CONF / SITE).is_file() and is_a_crawl(folder)
    except OSError:  # such as a name that is too long: the word is no path
        return False


def is_a_crawl(folder: Path) -> bool:
    """Tells whether a folder is a crawl's."""
    return any((folder / name).exists() for name in _OF_A_CRAWL)


def names_code(name: str) -> bool:
    """Tells whether a property names code that is run."""
    return _NAMES_CODE.fullmatch(name) is not None


def refuse_code(name: str, path: Path) -> None:
    """Raises ConfigError for a property that names code, in the configuration of a crawl's
    folder.
    """
    if names_code(name):
        raise ConfigError(
            f"{path}: {name} names code that is run, and a crawl's folder may be somebody else's",
            hint=f"set it by -D, or in ./conf/{SITE}",
        )


def refuse_anybodys(folder: Path, why: str, hint: str = "") -> None:
    """Raises ConfigError if others than this user and root own or may write a folder that nobody
    has named, or anything in it: a configuration names code that is run, and hosts that are asked.

    A group may write if it is this user's primary one, of which many systems make one a user.
    """
    for path in _all_in(folder):
        link, found = path.lstat(), path.stat() if path.exists() else path.lstat()
        other = {link.st_uid, found.st_uid} - {os.getuid(), 0}
        by_group = found.st_mode & stat.S_IWGRP and found.st_gid not in (os.getgid(), 0)
        if other or by_group or found.st_mode & stat.S_IWOTH:
            whose = f"is user {other.pop()}'s" if other else "may be written by others"
            shown = path if path.is_absolute() else f"./{path}"
            raise ConfigError(
                f"{shown} {whose}, and {why}",
                hint=hint
                or f"if you trust it, NUTCH_CONF_DIR={folder} says so; it names code that is run",
            )


def _all_in(folder: Path) -> Iterator[Path]:
    """Yields a folder and all that is in it; of folders that links lead to, too, each once."""
    seen, left = set[Path](), [folder]
    while left:
        path = left.pop()
        yield path
        if path.is_dir() and path.resolve() not in seen:
            seen.add(path.resolve())
            left += sorted(path.iterdir(), reverse=True)
