"""What extensions are made of, are given and return: their base, the results of fetching and
parsing, the actions of index writers, and how protocols wait for their turn at another host than
that of the URL being fetched. Plugins import these from `points`.
"""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.hadoop.formats.javaio import encode_text
from minutch.records.metadata import Metadata

if TYPE_CHECKING:
    from minutch.records.parsedata import ParseData
    from minutch.records.protocol import Content, ProtocolStatus


@dataclass(slots=True)
class OtherHost:
    """A request to another host than that of the URL that is being fetched."""

    asked: bool = True
    """It was sent, so that the host needs a rest."""


class NoTurn(MinutchError):
    """Another host may not be asked, now or at all; the message says why."""


Turn = Callable[[str, str], AbstractAsyncContextManager[OtherHost]]
"""A URL being fetched, and one on another host: waits for its turn. Raises NoTurn."""


@asynccontextmanager
async def at_once(origin: str, url: str) -> AsyncIterator[OtherHost]:
    """Waits for nothing: for those who have no queues."""
    yield OtherHost()


@dataclass(slots=True)
class ProtocolOutput:
    """The result of fetching a URL; `content` is None unless the status is a success."""

    content: Content | None
    status: ProtocolStatus


class Parse:
    """A parsed (sub-)document; `is_original` is False for pages found inside another (a feed's
    entries).

    Its text may be given in UTF-8, which is what is stored: it becomes a string when somebody reads
    it.
    """

    __slots__ = ("_text", "_utf8", "data", "is_original")

    def __init__(self, text: str | bytes, data: ParseData, is_original: bool = True) -> None:
        self._text: str | None = text if isinstance(text, str) else None
        self._utf8: bytes | None = text if isinstance(text, bytes) else None
        self.data = data
        self.is_original = is_original

    @property
    def text(self) -> str:
        """The text."""
        if self._text is None:
            self._text = self.utf8.decode()
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self._text, self._utf8 = text, None

    @property
    def given(self) -> str | bytes:
        """The text, in UTF-8 if it was given so."""
        return self.text if self._utf8 is None else self._utf8

    @property
    def utf8(self) -> bytes:
        """The text in UTF-8, as it is stored."""
        return encode_text(self.text) if self._utf8 is None else self._utf8

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parse):
            return NotImplemented
        return (self.text, self.data, self.is_original) == (
            other.text,
            other.data,
            other.is_original,
        )

    __hash__ = None  # type: ignore[assignment]  # it may change

    def __repr__(self) -> str:
        return f"Parse(text={self.text!r}, data={self.data!r}, is_original={self.is_original!r})"


class ParseResult(dict[str, Parse]):
    """Parsed documents by URL, in order; `original_url` is the URL of the content itself."""

    def __init__(self, original_url: str, entries: Mapping[str, Parse] | None = None) -> None:
        super().__init__(entries or {})
        self.original_url = original_url

    @classmethod
    def of(cls, url: str, parse: Parse) -> ParseResult:
        """Makes the usual result: one URL, one document."""
        return cls(url, {url: parse})

    @property
    def is_success(self) -> bool:
        """True if every document was parsed."""
        for parse in self.values():  # noqa: SIM110 - each filter asks: a generator costs more
            if not parse.data.status.is_success:
                return False
        return True

    @property
    def is_any_success(self) -> bool:
        """True if at least one document was parsed."""
        return True in [parse.data.status.is_success for parse in self.values()]

    def drop_failures(self) -> None:
        """Removes the documents that could not be parsed (ParseResult.filter)."""
        for url in [url for url, parse in self.items() if not parse.data.status.is_success]:
            del self[url]


@dataclass(slots=True)
class HTMLMetaTags:
    """The meta elements in the head of an HTML page; names of `general_tags` and `http_equiv_tags`
    are in lower case.
    """

    no_index: bool = False
    no_follow: bool = False
    no_cache: bool = False
    base_href: str | None = None
    refresh: bool = False
    refresh_time: int = 0
    refresh_href: str | None = None
    general_tags: Metadata = field(default_factory=Metadata)
    http_equiv_tags: dict[str, str] = field(default_factory=dict)


class Action(NamedTuple):
    """An action of a writer: adds the document `payload` under a URL, or deletes it (None)."""

    key: str
    payload: bytes | None


class Refused(NamedTuple):
    """A document or a deletion that a server refuses, and the reason."""

    key: str
    reason: str


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
    # Static: a descriptor must not run before the plugin has its configuration.
    own = {name: inspect.getattr_static(cls, name) for name in methods}
    # Nothing of it would ever be called: a misspelt method, say.
    if all(own[name] is method for name, method in methods.items()):
        return f"has none of the methods of {point.__name__}: {', '.join(methods)}"
    for name, method in methods.items():
        mine = own[name]
        if not inspect.isfunction(mine):  # what else can be called is the author's to know
            continue
        if inspect.iscoroutinefunction(method) and not inspect.iscoroutinefunction(mine):
            return f"its method {name} has to be async"
        try:
            # Names as values: only the number of arguments is looked at.
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
        # From the far end, where the point stands before what is derived of it.
        for base in reversed(cls.__mro__)
        if "point_id" in base.__dict__ and base is not ExtensionBase
    )
