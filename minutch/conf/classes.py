"""Classes that a property names: by Nutch's Java name, or one of the user's own by its place in Python."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TypeVar

from minutch.errors import ConfigError

T = TypeVar("T")


def class_named(name: str, built_in: Mapping[str, str], base: type[T], *, of: str) -> type[T]:
    """The class `name`: a key of `built_in`, whose values are places, or itself `module:Class` or `module.Class`.

    `of` is the property, for messages. Raises ConfigError for what can't be found or is no `base`.
    """
    module, _, class_name = built_in.get(name, name).replace(":", ".").rpartition(".")
    try:
        found = getattr(import_module(module), class_name)
    except (ImportError, AttributeError, ValueError) as exc:
        known = ", ".join(built_in)
        raise ConfigError(f"{of}: no class {name!r} ({exc}); known are {known} and Python classes") from exc
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ConfigError(f"{of}: {name} is no {base.__module__}.{base.__name__}")
    return found
