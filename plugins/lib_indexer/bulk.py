"""Sends documents to Elasticsearch or OpenSearch by the bulk API, which is the same in both from
version 7 and 1 on.

    host                          names or addresses, with commas between; any of them is asked
    port                          9300
    scheme                        http or https
    index                         where documents go (nutch); made by the server if it isn't there
    username, password            basic authentication
    max.bulk.docs                 documents in a request (250)
    max.bulk.size                 bytes of a request (2500500)
    exponential.backoff.millis    before a request that the server is too busy for goes out again
                                  (100)
    exponential.backoff.retries   how often (10)
    bulk.close.timeout            seconds for the last request, which makes all visible (600)

and of our own: timeout (seconds for an answer, 120), tls.certificates.check (true). `options`,
which Nutch's files name, has no effect, there or here. The id of a document is its URL; one of more
than 512 bytes no server takes.

Source: org.apache.nutch.indexwriter.elastic.ElasticIndexWriter,
….opensearch1x.OpenSearch1xIndexWriter.
"""

from __future__ import annotations

import json
import logging
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import polars as pl

from minutch.errors import ConfigError, IndexBusyError, IndexWriterError
from minutch.plugin.documents import Documents, as_lists
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action, IndexWriter, Refused
from minutch.records.document import Date, NutchDocument

from .client import (
    BUSY,
    FORBIDDEN,
    TIMEOUT_SECONDS,
    UNAUTHORIZED,
    ForbiddenError,
    KeyStoreFile,
    SearchServer,
    at_start,
    masked,
    reason_of,
    send_in_halves,
    tls_context,
)

# Encodes documents as JSON objects, column by column.
#
# A field with one value is that value, one with several an array; a field that a document lacks is
# left out. Dates are in UTC as Java's ISO_INSTANT prints them: 2026-11-22T16:00:00Z, with
# milliseconds where there are some.
#
# >>> documents = Documents(pl.Series(["http://a.org/"])) >>> documents.add("title",
# pl.Series(["A"])) >>> json_objects(documents.fields, 1).to_list() [b'{"title":"A"}']

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DATE: Final = pl.Datetime("ms")
_NO_CHARACTERS: Final = r"[\p{NChar}\x00-\x08\x0b\x0c\x0e-\x1f]"
log = logging.getLogger(__name__)

DEFAULT_PORT: Final = 9300
LONGEST_ID: Final = 512
"""Bytes of an id."""
_NO_INDEX: Final = "index_not_found_exception"
_DELETED_BEFORE: Final = 404


def columns_of(documents: Documents) -> dict[str, pl.Series]:
    """Returns the fields with their columns."""
    return {
        name: values for name in documents.names() if (values := documents.column(name)) is not None
    }


def json_objects(fields: Mapping[str, pl.Series], count: int, *, arrays: bool = False) -> pl.Series:
    """Returns an object for each of `count` documents (Binary), in UTF-8. `arrays`: one value is an
    array, too.
    """
    members = [_members(values.alias(name), arrays) for name, values in fields.items()]
    if not members:
        return pl.Series("payload", [b"{}"] * count, dtype=pl.Binary)
    inside = pl.concat_str([pl.lit(column) for column in members], separator=",", ignore_nulls=True)
    return (
        pl.select(pl.concat_str(pl.lit("{"), inside, pl.lit("}")))
        .to_series()
        .cast(pl.Binary)
        .alias("payload")
    )


def without_noncharacters(values: pl.Series) -> pl.Series:
    """Texts without code points that stand for no character, and without control characters but
    tab, CR and LF.
    """
    return without(values, _NO_CHARACTERS)


def without(values: pl.Series, pattern: str) -> pl.Series:
    """Texts, and lists of them, without what matches `pattern`; other values as they are."""
    if values.dtype == pl.String:
        return values.str.replace_all(pattern, "")
    if values.dtype == pl.List(pl.String):
        return values.list.eval(pl.element().str.replace_all(pattern, ""))
    return values


def _members(values: pl.Series, arrays: bool) -> pl.Series:
    """`"name":value` for each document, null where it has none."""
    if values.dtype == pl.Object:
        members = [
            None if found is None else _member(values.name, found, arrays) for found in values
        ]
        return pl.Series(values.name, members, dtype=pl.String)
    column = pl.col(values.name)
    if values.dtype == _DATE:
        values = values.to_frame().select(_iso(column)).to_series()
    elif values.dtype == pl.List(_DATE):
        values = values.list.eval(_iso(pl.element()))
    if arrays or not isinstance(values.dtype, pl.List):
        whole = as_lists(values).alias(values.name) if arrays else values
        return _present(_encoded(whole.to_frame()), values)
    single = values.to_frame().select(column.list.first())
    several = (values.list.len() > 1).fill_null(False)
    return _present(_encoded(values.to_frame()).zip_with(several, _encoded(single)), values)


def _present(texts: pl.Series, values: pl.Series) -> pl.Series:
    """`texts` where there are values, null elsewhere."""
    return pl.select(
        pl.when(pl.lit(values.is_not_null())).then(pl.lit(texts)).alias(values.name)
    ).to_series()


def _encoded(column: pl.DataFrame) -> pl.Series:
    """Returns the members of objects that have nothing but this column."""
    objects = column.select(pl.struct(pl.all()).struct.json_encode()).to_series()
    return objects.str.slice(1).str.head(-1)


def _iso(values: pl.Expr) -> pl.Expr:
    return values.dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").str.replace(r"\.000Z$", "Z")


def _member(name: str, found: Iterable[Any], arrays: bool) -> str:
    """Returns the same for values of several types."""
    values = [_iso_text(value) if isinstance(value, Date) else value for value in found]
    whole = {name: values[0] if len(values) == 1 and not arrays else values}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))[1:-1]


def _iso_text(date: Date) -> str:
    moment = _EPOCH + timedelta(milliseconds=int(date))
    return re.sub(r"(\.000)?\+00:00$", "Z", moment.isoformat(timespec="milliseconds"))


class BulkWriter(IndexWriter):
    """The base of both writers."""

    engine: str
    default_scheme = "http"
    default_user: str
    default_password = ""

    @abstractmethod
    def _signs_in(self, parameters: Parameters) -> bool:
        """Returns True if user and password are sent."""

    def _trusted(self, parameters: Parameters) -> KeyStoreFile | None:
        """Certificates that are trusted."""
        return None

    def _own(self, parameters: Parameters) -> KeyStoreFile | None:
        """Returns the key that the client shows."""
        return None

    def configure(self, parameters: Parameters) -> None:
        self.hosts = [host.strip() for host in parameters.get_strings("host") if host.strip()]
        if not self.hosts:
            raise ConfigError(f"{parameters.owner}: parameter host is missing")
        self.port = parameters.get_int("port", DEFAULT_PORT)
        if not 1 <= self.port <= 65535:
            raise parameters.wrong("port", "a number from 1 to 65535")
        self.scheme = parameters.get("scheme", "").strip() or self.default_scheme
        if self.scheme not in ("http", "https"):
            raise parameters.wrong("scheme", "http or https")
        self.index = parameters.get("index", "").strip() or "nutch"
        self.user = parameters.get("username", self.default_user)
        self.password = parameters.get("password", self.default_password)
        self.signs_in = self._signs_in(parameters)
        self.batch_documents = max(1, parameters.get_int("max.bulk.docs", 250))
        self.batch_bytes = max(1, parameters.get_int("max.bulk.size", 2500500))
        self.backoff = max(0, parameters.get_int("exponential.backoff.millis", 100)) / 1000
        self.retries = max(0, parameters.get_int("exponential.backoff.retries", 10))
        self.close_timeout = parameters.get_float("bulk.close.timeout", 600)
        self.timeout = parameters.get_float("timeout", TIMEOUT_SECONDS)
        self.verifies = parameters.get_boolean("tls.certificates.check", True)
        self._stores = self._trusted(parameters), self._own(parameters)
        self._server: SearchServer | None = None

    # -- documents ---------------------------------------------------------------------------------

    def encode(self, doc: NutchDocument) -> bytes:
        return bytes(self.encode_columns(Documents.of(doc))[0])

    def encode_columns(self, documents: Documents) -> pl.Series:
        return json_objects(columns_of(documents), len(documents))

    # -- the server --------------------------------------------------------------------------------

    def open(self) -> None:
        tls = tls_context(*self._stores, verify=self.verifies) if self.scheme == "https" else None
        self._server = SearchServer(
            [f"{self.scheme}://{_bracketed(host)}:{self.port}" for host in self.hosts],
            self.clock,
            user=(self.user, self.password) if self.signs_in else None,
            tls=tls,
            timeout=self.timeout,
        )
        try:
            with at_start():
                self._ask("GET", "/")
        except ForbiddenError as error:
            if error.code == UNAUTHORIZED:
                raise
            log.debug("%s; that is of no account if the index may be written", error)

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        too_long = [action.key for action in actions if len(action.key.encode()) > LONGEST_ID]
        refused = [Refused(key, f"its id has more than {LONGEST_ID} bytes") for key in too_long]
        sent = (
            [action for action in actions if action.key not in set(too_long)]
            if too_long
            else actions
        )
        if sent:
            refused += send_in_halves(sent, self._send)
        return refused

    def commit(self) -> None:
        """Makes documents visible at once. Without that right, the server does it after a while."""
        try:
            self._ask("POST", f"/{self._path()}/_refresh", timeout=self.close_timeout)
        except IndexBusyError:
            raise
        except IndexWriterError as error:
            log.info("%s makes the documents visible in its own time: %s", self.engine, error)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def abort(self) -> None:
        self.close()

    def _path(self) -> str:
        return quote(self.index, safe="")

    def _send(self, actions: Sequence[Action]) -> list[Refused]:
        """Sends a bulk request; actions to send again leave with the IndexBusyError."""
        body = b"".join(_lines(key, payload) for key, payload in actions)
        answer = self._ask("POST", f"/{self._path()}/_bulk", body=body, kind="application/x-ndjson")
        items = answer.get("items") if isinstance(answer, Mapping) else None
        if not isinstance(items, list) or len(items) != len(actions):
            raise IndexWriterError(
                f"{self.engine} answered a bulk request of {len(actions)} with something else"
            )
        refused: list[Refused] = []
        busy: list[Action] = []
        reason = ""
        for action, item in zip(actions, items, strict=True):
            status, error = _outcome(item)
            if status < 300 or (action.payload is None and status == _DELETED_BEFORE):
                continue
            reason = f"{status}: {reason_of(error)}"
            if status in BUSY:
                busy.append(action)
            elif status in FORBIDDEN or (
                isinstance(error, Mapping) and error.get("type") == _NO_INDEX
            ):
                raise IndexWriterError(f"{self.engine}, index {self.index}: {reason}")
            else:
                refused.append(Refused(action.key, reason))
        if busy:
            raise IndexBusyError(
                f"{len(busy)} of {len(actions)} actions: {reason}", rest=busy, refused=refused
            )
        return refused

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        assert self._server is not None
        return self._server.request(method, path, **more)

    def describe(self) -> dict[str, tuple[str, object]]:
        return {
            "host": ("servers, any of which is asked", ",".join(self.hosts)),
            "port": ("their port", self.port),
            "scheme": ("http or https", self.scheme),
            "index": ("where documents go", self.index),
            "username": ("user", self.user if self.signs_in else ""),
            "password": ("password", masked(self.password) if self.signs_in else ""),
            "max.bulk.docs": ("documents in a request", self.batch_documents),
            "max.bulk.size": ("bytes of a request", self.batch_bytes),
            "exponential.backoff.millis": (
                "pause in milliseconds, at first",
                round(self.backoff * 1000),
            ),
            "exponential.backoff.retries": ("how often it is", self.retries),
            "bulk.close.timeout": ("seconds for the last request", self.close_timeout),
        }


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _lines(key: str, payload: bytes | None) -> bytes:
    what = {"delete" if payload is None else "index": {"_id": key}}
    head = json.dumps(what, ensure_ascii=False).encode() + b"\n"
    return head if payload is None else head + payload + b"\n"


def _outcome(item: object) -> tuple[int, object]:
    """Status and error of an item of the answer."""
    found = next(iter(item.values()), None) if isinstance(item, Mapping) else None
    status = found.get("status") if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping) or not isinstance(status, int):
        raise IndexWriterError(f"an item of a bulk answer without a status: {reason_of(item)}")
    return status, found.get("error") or found.get("result") or ""
