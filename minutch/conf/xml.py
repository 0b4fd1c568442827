"""Hadoop's configuration XML as a list of properties, read with expat.

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from xml.parsers import expat

from minutch.errors import ConfigError

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
        elif self.depth >= _MAX_INCLUDES:
            raise ConfigError(f"{self._where()}: more than {_MAX_INCLUDES} nested includes")
        else:
            self.items += read_properties(target, self.depth + 1)
