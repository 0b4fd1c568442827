"""XML files of Nutch's that are trees of elements with attributes: index-writers.xml,
exchanges.xml.

Namespaces don't count. Nothing outside the file is opened.
"""

from __future__ import annotations

from xml.etree import ElementTree

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
        element.tag = element.tag.rpartition("}")[2]
    return root


def parameters_of(element: ElementTree.Element) -> dict[str, str]:
    """Returns the `<param name="…" value="…"/>` below an element; of equal names the last one
    counts.
    """
    return {param.get("name", ""): param.get("value", "") for param in element.iter("param")}
