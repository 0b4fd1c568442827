"""Makes extensions, falls back from column methods to row methods, says what a class lacks."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable, Mapping
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


def misfit(cls: object, point: type[ExtensionBase]) -> str:
    """Returns why `cls` can't be an extension of `point`; empty if it can.

    A method that is not there, takes other arguments or is not `async` would fail in the middle of
    a job otherwise, or never be called.
    """
    if not (isinstance(cls, type) and issubclass(cls, point)):
        return f"is no {point.__name__} (minutch.plugin.points)"
    methods = {name: one for name, one in vars(point).items() if inspect.isfunction(one)}
    methods = {name: one for name, one in methods.items() if not name.startswith("_")}
    for name in sorted(getattr(cls, "__abstractmethods__", ())):
        return f"has no method {name}{_parameters(methods[name])}"
    own = {name: inspect.getattr_static(cls, name) for name in methods}
    if all(own[name] is method for name, method in methods.items()):
        return f"has none of the methods of {point.__name__}: {', '.join(methods)}"
    for name, method in methods.items():
        mine = own[name]
        if not inspect.isfunction(mine):  # what else can be called is the author's to know
            continue
        if inspect.iscoroutinefunction(method) and not inspect.iscoroutinefunction(mine):
            return f"its method {name} has to be async"
        try:
            inspect.signature(mine).bind(*inspect.signature(method).parameters)
        except TypeError:
            return f"its method {name} has to take {_parameters(method)}"
    return ""


def _parameters(method: Callable[..., object]) -> str:
    """Returns what a method takes, as its author writes it."""
    return f"({', '.join(inspect.signature(method).parameters)})"


def _point_of(cls: type[ExtensionBase]) -> type[ExtensionBase]:
    """Returns the base class of the extension point that `cls` implements."""
    return next(
        base
        for base in reversed(cls.__mro__)
        if "twins" in base.__dict__ and base is not ExtensionBase
    )
