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

Hadoop's configuration XML is a list of properties, read with expat:

    configuration   = (property | configuration | xi:include)*
    property        = name, value?, final?          elements, or attributes of <property>; others
                    are skipped
    xi:include      = href of a local file, relative to the including one; xi:fallback where it may
                    be missing

Text of `name` is trimmed, text of `value` is not; an empty value counts as none. Matched:
Configuration.Parser of Hadoop 3. Harmless by construction: external DTDs and entities are never
opened, declared entities are an error.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit
from xml.parsers import expat

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
            # Paths of one command lie in the same folders: each is looked at once.
            if folder not in seen and is_remembering(folder):
                found.add(folder / CONF)
            seen.add(folder)
    # mergedb of two crawls' CrawlDbs: neither's settings are those of both.
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
        # Of a link both count: who owns it may let it lead elsewhere.
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
        # Links may lead in circles.
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
    # A profile stands below the files that name it: they are read first.
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
    # ../x would be a file outside of profiles/.
    if path is None or Path(name).name != name:
        known = {file.stem for folder in folders for file in (folder / PROFILES).glob("*.xml")}
        raise ConfigError(
            f"{PROFILE}: expected one of {', '.join([NUTCH, *sorted(known)])}, found {name!r}"
        )
    return path


def first_file(folders: Sequence[Path], name: str) -> Path | None:
    """Returns the file of that name in the first folder that has one; None if none has."""
    return next((path for folder in folders if (path := folder / name).is_file()), None)


log = logging.getLogger(__name__)

_MAX_INCLUDES = 10
_TAGS = ("configuration", "property", "name", "value", "final", "description", "source", "tag")
_XINCLUDE = "http://www.w3.org/2001/XInclude"


class Property(NamedTuple):
    """One `<property>`; `value` is None where it has none."""

    name: str
    value: str | None
    final: bool


def read_properties(path: Path, depth: int = 0) -> list[Property]:
    """Returns all properties of a file in order. Raises ConfigError with file and line."""
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise ConfigError(f"{path}: can't be read: {exc.strerror}") from exc
    return _Reader(path, depth).read(data)


@dataclass(slots=True)
class _Reader:
    path: Path
    depth: int
    items: list[Property] = field(default_factory=list)
    current: dict[str, str] | None = None
    text: list[str] | None = None
    in_description: int = 0
    in_fallback: int = 0
    use_fallback: bool = False
    parser: expat.XMLParserType = field(init=False)

    def read(self, data: bytes) -> list[Property]:
        # With namespaces: xi:include goes by its URI, whatever its prefix.
        self.parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._entity
        try:
            parser.Parse(data, True)
        except expat.ExpatError as exc:
            raise ConfigError(
                f"{self.path}, line {exc.lineno}: {expat.ErrorString(exc.code)}"
            ) from exc
        except (LookupError, ValueError) as exc:  # encodings that Python does not have for XML
            raise ConfigError(f"{self._where()}: {exc}") from exc
        return self.items

    def _where(self) -> str:
        return f"{self.path}, line {self.parser.CurrentLineNumber}"

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == f"{_XINCLUDE} include":
            self._include(attributes.get("href", ""))
        elif tag == f"{_XINCLUDE} fallback":
            self.in_fallback += 1
        elif tag == "description":
            self.in_description += 1
        elif tag not in _TAGS:
            if not self.in_description:
                from difflib import get_close_matches

                close = get_close_matches(tag, _TAGS, 1)
                meant = f": did you mean <{close[0]}>?" if close else ""
                log.warning("%s: unknown element <%s> is left out%s", self._where(), tag, meant)
        elif tag == "property":
            self.current = {
                key: value for key, value in attributes.items() if key in ("name", "value", "final")
            }
        elif self.current is not None and tag in ("name", "value", "final"):
            self.text = []

    def _characters(self, data: str) -> None:
        if self.text is not None:
            self.text.append(data)

    def _end(self, tag: str) -> None:
        if tag == f"{_XINCLUDE} fallback":
            self.in_fallback -= 1
        elif tag == "description":
            self.in_description -= 1
        elif (
            self.text is not None and self.current is not None and tag in ("name", "value", "final")
        ):
            # An empty element is no value; one of blanks is.
            if self.text:
                self.current[tag] = "".join(self.text)
            self.text = None
        elif tag == "property" and self.current is not None:
            self._finish(self.current)
            self.current = None

    def _finish(self, found: dict[str, str]) -> None:
        name = found.get("name", "").strip()
        if not name:
            log.warning("%s: a property without a name is left out", self._where())
        elif not self.in_fallback or self.use_fallback:
            self.items.append(Property(name, found.get("value"), found.get("final") == "true"))

    def _entity(self, name: str, *_: object) -> None:
        raise ConfigError(f"{self._where()}: entity declarations are not allowed ({name})")

    def _include(self, href: str) -> None:
        parts = urlsplit(href)
        self.use_fallback = False
        # Hadoop asks the network for an http: URL.
        if parts.scheme not in ("", "file") or parts.netloc:
            log.warning(
                "%s: xi:include takes local files only, %s is left out", self._where(), href
            )
            self.use_fallback = True
            return
        target = self.path.parent / unquote(parts.path)
        if not target.is_file():
            log.warning("%s: xi:include: no file %s", self._where(), target)
            self.use_fallback = True
        # A file that includes itself.
        elif self.depth >= _MAX_INCLUDES:
            raise ConfigError(f"{self._where()}: more than {_MAX_INCLUDES} nested includes")
        else:
            self.items += read_properties(target, self.depth + 1)
