"""Classes that a property names: by Nutch's Java name, or one of the user's own by its place in
Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TypeVar

from minutch.conf.configuration import Configuration
from minutch.errors import ConfigError

T = TypeVar("T")


def class_named(
    conf: Configuration, of: str, name: str, built_in: Mapping[str, str], base: type[T]
) -> type[T]:
    """The class `name`: a key of `built_in`, whose values are places, or itself `module:Class` or
    `module.Class`.

    `of` is the property that names it. Raises ConfigError for what can't be found or is no `base`.
    """
    module, _, class_name = built_in.get(name, name).replace(":", ".").rpartition(".")
    try:
        found = getattr(import_module(module), class_name)
    except (ImportError, AttributeError, ValueError) as exc:
        known = ", ".join(built_in)
        raise ConfigError(
            str(conf.wrong(of, f"{known} or module:Class", name)), hint=str(exc)
        ) from exc
    if not (isinstance(found, type) and issubclass(found, base)):
        raise conf.wrong(of, f"a class below {base.__module__}:{base.__name__}", name)
    return found
