"""Finds the files that a configuration is made of, each overriding the ones before it:

    conf/nutch-default.xml      as shipped with minutch
    nutch-default.xml           of the first configuration folder that has one (a Nutch
                                installation's own conf/)
    profiles/NAME.xml           of the profile that any of the following names (minutch.profile)
    nutch-site.xml              of the first configuration folder that has one, else the shipped one
    <crawl>/conf/nutch-site.xml what the first `crawl URL` of the folder was told
    -conf FILE                  in the order given

Rule files are looked for in the crawl's conf/, the configuration folders, profiles/NAME/ and the
shipped conf/, in this order.

Every command on a crawl's folder, or on what is in it, uses its conf/. It may come from somebody
else: nobody else may own or write it, and what names code that is run counts in the operator's own
configuration only.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.conf.xml import Property, read_properties
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
    """Raises ConfigError for a property that names code, in a crawl folder's configuration."""
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


DEFAULTS: Final = "nutch-default.xml"
PROFILE: Final = "minutch.profile"
PROFILES: Final = "profiles"
"""The folder of profiles: NAME.xml, and rule files in NAME/."""
NUTCH: Final = "nutch"
"""The profile that adds nothing to Nutch's defaults."""
NEW_CRAWLS: Final = "web"
"""The profile of crawls that begin."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What a configuration is made of."""

    files: Sequence[tuple[Path, Sequence[Property]]]
    """In their order; the first are minutch's own defaults."""
    shipped: frozenset[str]
    """Defaults and profile: what they have is nobody's own setting."""
    folders: tuple[Path, ...]
    """Those of rule files."""


def sources(
    conf_dirs: Sequence[Path],
    extra: Sequence[Path],
    overrides: Mapping[str, str],
    shipped: Path,
    crawl: Path | None,
    profile: str,
) -> Sources:
    """Reads all files. `shipped` is the shipped conf/; for the others see Configuration.load.
    Raises ConfigError.
    """
    if crawl is not None and crawl.resolve() in {path.resolve() for path in conf_dirs}:
        crawl = None  # somebody has named it
    if crawl is not None:
        refuse_anybodys(crawl, "the configuration of a crawl's folder is used unasked")
    site = [first_file((*conf_dirs, shipped), SITE), None if crawl is None else crawl / SITE]
    later = [(path, read_properties(path)) for path in (*site, *extra) if path]
    if crawl is not None:
        for item in (item for path, items in later if path == crawl / SITE for item in items):
            refuse_code(item.name, crawl / SITE)
    named = [item.value for _, items in later for item in items if item.name == PROFILE]
    chosen = overrides.get(PROFILE) or next(filter(None, reversed(named)), profile)
    settings = _profile(chosen, (*conf_dirs, shipped))
    first = [path for path in (shipped / DEFAULTS, first_file(conf_dirs, DEFAULTS)) if path]
    files = [(path, read_properties(path)) for path in first]
    if settings is not None:
        chosen_here = Property(PROFILE, chosen, final=False)
        files.append((settings, [*read_properties(settings), chosen_here]))
    own = [] if crawl is None else [crawl]
    rules = [] if settings is None else [settings.with_suffix("")]
    return Sources(
        [*files, *later],
        frozenset(str(path) for path, _ in files),
        (*own, *conf_dirs, *rules, shipped),
    )


def _profile(name: str, folders: Sequence[Path]) -> Path | None:
    """Returns the file of a profile, None for Nutch's. Raises ConfigError if there is none."""
    if name == NUTCH:
        return None
    path = first_file(folders, f"{PROFILES}/{name}.xml")
    if path is None or Path(name).name != name:
        known = {file.stem for folder in folders for file in (folder / PROFILES).glob("*.xml")}
        raise ConfigError(
            f"{PROFILE}: expected one of {', '.join([NUTCH, *sorted(known)])}, found {name!r}"
        )
    return path


def first_file(folders: Sequence[Path], name: str) -> Path | None:
    """Returns the file of that name in the first folder that has one; None if none has."""
    return next((path for folder in folders if (path := folder / name).is_file()), None)
