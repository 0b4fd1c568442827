"""Makes settings of a configuration: classes whose fields name their property.

    @dataclass(frozen=True)
    class FollowSettings(Settings):
        depth: int = prop("fetcher.follow.outlinks.depth")
        interval: int = prop("db.fetch.interval.default")
        pause: int = prop("fetcher.server.delay", milliseconds)
        output: OutputSettings = made_by(OutputSettings.from_conf)

    FollowSettings.from_conf(conf)           # what is configured
    FollowSettings(depth=2)                  # shipped defaults but for the depth

The annotation says how a value is read; a function does where that is not enough: of the
configuration and the property's name, or, for a value that is made of several properties, of the
configuration alone. Fields of neither kind are given by who makes the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any, Final, Self, TypeVar, cast, overload

from minutch.conf.configuration import Configuration
from minutch.conf.properties import KINDS

T = TypeVar("T")
Number = TypeVar("Number", int, float)

PROPERTY: Final = "property"
_READ: Final = "read"


def _text(conf: Configuration, name: str) -> str:
    return conf.get_word(name) if name in KINDS else conf.get_text(name)


def trimmed(conf: Configuration, name: str) -> str:
    """Reads a text without blanks at its ends; one that is not set is empty."""
    return conf.get_text(name).strip()


def untrimmed(conf: Configuration, name: str) -> tuple[str, ...]:
    """Reads texts between commas, with their blanks."""
    return tuple(conf.get_strings(name))


def at_least(
    least: Number, read: Callable[..., Number] = Configuration.get_int
) -> Callable[..., Number]:
    """Reads a number, and takes `least` for one below it."""
    return lambda *given: max(least, read(*given))


_READERS: Final[Mapping[str, Callable[..., object]]] = {
    "bool": Configuration.get_boolean,
    "int": Configuration.get_int,
    "float": Configuration.get_float,
    "str": _text,
    "tuple[str, ...]": lambda conf, name: tuple(conf.get_trimmed_strings(name)),
    "frozenset[str]": lambda conf, name: frozenset(conf.get_trimmed_strings(name)),
}
"""How the values of a type are read, where the field names no function."""


@overload
def prop(name: str, *, default: object = None, **more: object) -> Any: ...
@overload
def prop(name: str, read: Callable[[Configuration, str], T], **more: object) -> T: ...


def prop(name: str, read: Any = None, *, default: object = None, **more: object) -> Any:
    """A field that has the value of a property. `default` is for one that nutch-default.xml has no
    default of; `more` is the field's metadata.
    """
    given = () if default is None else (default,)

    def value(conf: Configuration) -> object:
        # A dataclass gives its field the annotation after this: it is known when a value is read.
        return (read or _READERS[made.type])(conf, name, *given)

    made: Any = made_by(value, **more, **{PROPERTY: name})
    return made


def made_by(make: Callable[[Configuration], T], **more: object) -> T:
    """A field that a function makes of the configuration."""
    return field(default_factory=lambda: make(Configuration()), metadata={**more, _READ: make})


class Settings:
    """What a part of minutch is told by the configuration; its classes are dataclasses."""

    __slots__ = ()

    @classmethod
    def from_conf(cls, conf: Configuration, **given: Any) -> Self:
        """Reads the fields that are not `given`. Raises ConfigError, which names property, origin,
        what is allowed and what was found.
        """
        for item in fields(cast(Any, cls)):
            if item.name not in given and _READ in item.metadata:
                given[item.name] = item.metadata[_READ](conf)
        return cls(**given)
