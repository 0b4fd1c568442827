"""Checks requests to the service: each body and query is declared once, and OpenAPI is made of it.

A declaration is a type: `checked` holds what comes to it before anything is stored or started, and
`openapi` writes it down for clients. What comes is a value without depth: arguments are texts,
numbers and truth values, or lists of these. Members that are not declared are ignored, as in Nutch.

Source: the classes of org.apache.nutch.service.model.request. There, Jackson makes objects of
whatever it finds, and what can't be used fails later.

The paths that clients name are confined to a folder (`Root`), even if they contain `..` or symbolic
links.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from minutch.errors import MinutchError
from minutch.mediatypes import essence
from minutch.web.access import headers_of

JSON: Final = "application/json"
LARGEST: Final = 8 << 20
"""Maximum size of a request in bytes."""


class RequestRefused(MinutchError):
    """A request that is not accepted; the text is sent to the client."""


class Root:
    """The folder that the service works in."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder.resolve()

    def path(self, text: object, name: str = "path") -> pathlib.Path:
        """Returns the absolute path of `text`, links resolved. Raises RequestRefused if outside."""
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            raise RequestRefused(f"{name}: expected a path, found {text!r}")
        try:
            path = (self.folder / text.removeprefix("file:")).resolve()
            path.is_dir()  # raises for a name that is too long
        except (OSError, RuntimeError) as exc:
            raise RequestRefused(f"{name}: {text} can't be followed") from exc
        if path != self.folder and self.folder not in path.parents:
            raise RequestRefused(f"{name}: {text} lies outside of the service's folder")
        return path

    def shown(self, path: pathlib.Path) -> str:
        """Returns a path as clients see it: relative to the folder."""
        return str(path.relative_to(self.folder))


# -- values ----------------------------------------------------------------------------------------

Scalar = str | int | float | bool
Argument = Scalar | list[Scalar] | None
Switch = Scalar | None
"""Set by any value but false, as in Nutch."""
Number = (
    Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
    | Annotated[str, Meta(pattern=r"^ *[+-]?[0-9]{1,18} *$")]
)
"""Nutch's clients send numbers as text."""
Option = (
    Annotated[str, Meta(pattern=r"^([^\x00\-][^\x00]*)?$")]
    | Annotated[int, Meta(ge=0)]
    | Annotated[float, Meta(ge=0)]
    | bool
)
"""The value of a command's option, which is no option itself: it does not begin with a dash."""
Path = Annotated[str, Meta(pattern=r"^[^\x00]+$")]
Name = Annotated[str, Meta(pattern=r"^[^\x00]*$")]
Place = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Property = Annotated[str, Meta(pattern="^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\ufffe\uffff]*$")]
"""Characters that a configuration file may have (XML 1.0, section 2.2)."""
Url = Annotated[str, Meta(pattern=r"^[^\x00-\x08\x0a-\x1f]*$")]
"""A line of a seed list, which may have metadata after tabs."""


def as_text(value: Scalar) -> str:
    """Returns a value as it is written in properties and options."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- bodies and queries, by the name of the function of `app` that gets them -----------------------


class NewConfig(Struct):
    """A configuration (NutchConfig)."""

    configId: Name | None = None
    force: bool = False
    params: dict[Property, Property | int | float | bool] | None = None


class NewJob(Struct):
    """A job (JobConfig). Which arguments it has depends on its kind."""

    crawlId: Name | None = None
    type: str | None = None
    confId: Name | None = None
    jobClassName: str | None = None
    args: dict[str, Argument] | None = None


class NewDump(Struct):
    """A dump in the Common Crawl's format (ServiceConfig)."""

    crawlId: Path
    confId: Name | None = None
    args: dict[str, Argument] | None = None


class DbQuery(Struct):
    """What is asked of a CrawlDb (DbQuery)."""

    crawlId: Path
    type: str
    confId: Name | None = None
    args: dict[str, Argument] | None = None


class Seed(Struct):
    """A URL of a seed list (SeedUrl)."""

    url: Url


class SeedList(Struct):
    """A seed list (SeedList)."""

    id: int | str | None = None
    name: str | None = None
    seedUrls: list[Seed | Url] | None = None


class ReadFile(Struct):
    """The file to read (ReaderConfig)."""

    path: Path


class Rows(Struct):
    """The records of a file that are wanted."""

    nrows: Place = -1
    start: Place = -1
    end: Place = 0
    count: bool = False


class SegmentPages(Struct):
    """The pages of a segment that are wanted."""

    first: Place = msgspec.field(name="from", default=0)
    last: Place = msgspec.field(name="to", default=0)


class Force(Struct):
    """Whether to stop although jobs run."""

    force: bool = False


class OfCrawl(Struct):
    """The crawl whose jobs are wanted."""

    crawlId: str | None = None


class Statistics(Struct):
    """`stats` of a CrawlDb."""

    sort: Switch = False


class Entry(Struct):
    """`url` of a CrawlDb."""

    url: str = ""


class Dump(Struct):
    """`dump` of a CrawlDb, with the options of readdb."""

    out_dir: Path
    format: Option | UnsetType = UNSET
    regex: Option | UnsetType = UNSET
    retry: Option | UnsetType = UNSET
    status: Option | UnsetType = UNSET
    expr: Option | UnsetType = UNSET
    sample: Option | UnsetType = UNSET


class Top(Struct):
    """`topN` of a CrawlDb, with the options of readdb."""

    out_dir: Path
    nnn: Number
    min: Option | UnsetType = UNSET


DB_QUERIES: Final[dict[str, type[Struct]]] = {
    "stats": Statistics,
    "dump": Dump,
    "topN": Top,
    "url": Entry,
}
_DB_QUERIES: Final = {name.lower(): kind for name, kind in DB_QUERIES.items()}


def db_query(query: DbQuery) -> type[Struct]:
    """Returns the type of a query's arguments. Raises RequestRefused."""
    found = _DB_QUERIES.get(query.type.lower())
    if found is None:
        raise RequestRefused(f"type: expected {', '.join(DB_QUERIES)}, found {query.type[:80]!r}")
    return found


# -- the check -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Body:
    """The declaration of a request's body: text, or JSON."""

    type: Any
    example: str
    args: Callable[[Any], type[Struct]] | None = None
    """Returns the type of a body's `args`. Raises RequestRefused."""
    kinds: Mapping[str, type[Struct]] = field(default_factory=dict)
    """What it returns, by the body's `type`."""

    @property
    def media_type(self) -> str:
        return JSON if self.example.startswith("{") else "text/plain"


@dataclass(frozen=True)
class Asked:
    """A request that has been checked."""

    path: Mapping[str, str]
    query: Any
    body: Any


T = TypeVar("T")


async def checked(request: HttpRequest, query: Any, body: Body | None) -> Asked:
    """Returns what a request asks, of the declared types. Raises RequestRefused."""
    given = {name: value for name, value in request.query_params.items() if value}
    asked = _held("query", lambda: msgspec.convert(given, query, strict=False)) if query else None
    return Asked(request.path_params, asked, _body(await request.body(), body) if body else None)


def _body(data: bytes, declared: Body) -> Any:
    if declared.media_type != JSON:
        text = data.decode("utf-8", "replace")
        return _held("body", lambda: msgspec.convert(text, declared.type))
    found = _held("body", lambda: msgspec.json.decode(data, type=declared.type))
    if declared.args is not None:
        args, kind = found.args or {}, declared.args(found)
        _held("args", lambda: msgspec.convert(args, kind))
    return found


def _held(name: str, check: Callable[[], T]) -> T:
    try:
        return check()
    except (ValueError, RecursionError) as exc:  # msgspec's, and of text that is no UTF-8
        raise RequestRefused(f"{name}: {exc}; GET /docs has examples") from None


class Bounds:
    """A middleware that refuses bodies that are too large or not JSON."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope) or {}
        content = essence(headers.get("content-type", ""))
        if scope["method"] == "POST" and content != JSON:
            await PlainTextResponse(f"expected {JSON}", 415)(scope, receive, send)
            return
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > LARGEST:
            await PlainTextResponse("too large", 413)(scope, receive, send)
            return
        await self._app(scope, _bounded(receive), send)


def _bounded(receive: Receive) -> Receive:
    """Limits bodies without a Content-Length."""
    received = 0

    async def bounded() -> Any:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > LARGEST:
            raise RequestRefused("too large")
        return message

    return bounded
