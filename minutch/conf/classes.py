"""Finds classes that properties name, by Nutch's Java name or by `module:Class` in Python."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final, TypeVar

from minutch.conf.configuration import Configuration
from minutch.errors import ConfigError

T = TypeVar("T")

MOVED: Final[Mapping[str, str]] = {
    "minutch.parse.simhash": "minutch.cycle.parse.simhash",
    "minutch.parse.signature": "minutch.cycle.parse.signature",
    "minutch.crawldb.schedule": "minutch.cycle.crawldb.schedule",
    "minutch.crawldb.adaptive": "minutch.cycle.crawldb.adaptive",
    "minutch.hostdb.processors": "minutch.cycle.hostdb.processors",
}
"""Modules of classes that users name in their configuration: where they were, and where they
are.
"""


def class_named(
    conf: Configuration, of: str, name: str, built_in: Mapping[str, str], base: type[T]
) -> type[T]:
    """Returns the class `name`: a key of `built_in`, or `module:Class` or `module.Class`.

    `built_in` maps names to `module:Class`; modules that have moved (`MOVED`) are found by their
    old names, too. `of` is the property that holds the name. Raises ConfigError if there is no
    such class, or if it is no `base`.
    """
    module, _, class_name = built_in.get(name, name).replace(":", ".").rpartition(".")
    try:
        found = getattr(import_module(MOVED.get(module, module)), class_name)
    except (ImportError, AttributeError, ValueError) as exc:
        known = ", ".join(built_in)
        raise ConfigError(
            str(conf.wrong(of, f"{known} or module:Class", name)), hint=str(exc)
        ) from exc
    if not (isinstance(found, type) and issubclass(found, base)):
        raise conf.wrong(of, f"a class below {base.__module__}:{base.__name__}", name)
    return found
