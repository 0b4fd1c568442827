"""Reads index-writers.xml and exchanges.xml, trees of elements with attributes, and their
parameters: named strings with typed getters.

Namespaces don't count. Nothing outside the file is opened. Source:
org.apache.nutch.indexer.IndexWriterParams. An empty value counts as none, but for `get`.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from minutch.conf import properties
from minutch.conf.configuration import Configuration
from minutch.errors import ConfigError


def read_elements(conf: Configuration, name: str) -> ElementTree.Element:
    """Returns the root of the configuration file `name`. Raises ConfigError with file and line."""
    text, path = conf.read_resource(name), conf.resource(name)
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as exc:
        raise ConfigError(f"{path}, line {exc.position[0]}: {exc}") from exc
    for element in root.iter():
        # `{namespace}name`: Nutch's files have one, users' often not.
        element.tag = element.tag.rpartition("}")[2]
    return root


def parameters_of(element: ElementTree.Element) -> dict[str, str]:
    """Returns the `<param name="…" value="…"/>` below an element; the last of a name counts."""
    return {param.get("name", ""): param.get("value", "") for param in element.iter("param")}


class Parameters(dict[str, str]):
    """The parameters of a writer or exchange; `owner` is its name in error messages."""

    def __init__(self, values: dict[str, str] | None = None, owner: str = "") -> None:
        super().__init__(values or {})
        self.owner = owner

    def get_boolean(self, name: str, default: bool) -> bool:
        """Returns True for "true" in any case, False for anything else."""
        value = self.get(name, "")
        # IndexWriterParams.getBoolean: Boolean.parseBoolean, so "yes" is false.
        return value.strip().lower() == "true" if value else default

    def get_int(self, name: str, default: int) -> int:
        """Returns a whole number. Raises ConfigError for anything else."""
        value = self.get(name, "").strip()
        try:
            return int(value) if value else default
        except ValueError:
            raise self.wrong(name, "a whole number") from None

    def get_float(self, name: str, default: float) -> float:
        """Returns a number. Raises ConfigError for anything else."""
        value = self.get(name, "").strip()
        try:
            return float(value) if value else default
        except ValueError:
            raise self.wrong(name, "a number") from None

    def get_strings(self, name: str, default: Sequence[str] = ()) -> list[str]:
        """Splits a value at commas; empty pieces are dropped."""
        value = self.get(name, "")
        return [piece for piece in value.split(",") if piece] if value else list(default)

    def wrong(self, name: str, expected: str) -> ConfigError:
        """Makes the error for an invalid value."""
        found = properties.shown(name, self.get(name, ""))
        return ConfigError(f"{self.owner}: parameter {name}: expected {expected}, found {found!r}")
