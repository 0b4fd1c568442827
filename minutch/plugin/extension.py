"""Makes extensions, and falls back from column methods to row methods."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import Any, ClassVar

from minutch.clock import Clock
from minutch.conf import Configuration


class ExtensionBase(ABC):
    """The base of all extension points."""

    point_id: ClassVar[str]
    twins: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Row method → column methods of this point."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        self.conf = conf
        self.parameters = parameters
        self.clock: Clock = conf.clock
        """The job's clock, the only source of time for extensions; tests may stop it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Restores the base class's column twin if only the row method is overridden.

        An inherited twin would still do what the overridden method did; the base class's loops.
        """
        super().__init_subclass__(**kwargs)
        for row, columns in cls.twins.items():
            for column in columns:
                if row in cls.__dict__ and column not in cls.__dict__:
                    setattr(cls, column, getattr(_point_of(cls), column))

    def overrides(self, method: str) -> bool:
        """Returns whether the extension has its own version of a method of its point."""
        return getattr(type(self), method) is not getattr(_point_of(type(self)), method)


def _point_of(cls: type[ExtensionBase]) -> type[ExtensionBase]:
    """Returns the base class of the extension point that `cls` implements."""
    return next(
        base
        for base in reversed(cls.__mro__)
        if "twins" in base.__dict__ and base is not ExtensionBase
    )
