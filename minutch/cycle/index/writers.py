"""Encodes documents for the index writers of conf/index-writers.xml, and sends them.

    worker processes    Encoders      documents → exchanges → mapping → bytes, per writer
    the job             WriterChain   bytes → batches → the writers, one after the other

A document goes to the writers of all exchanges (conf/exchanges.xml) that it matches, or else to
those of the exchange with class="default". If no exchange is active, it goes to all writers; if it
matches none and there is no default, it goes to no writer and is counted. The mapping of a writer:

    <copy>      <field source="title" dest="title,search"/>     adds the values under other names
    <rename>    <field source="host" dest="site"/>              moves the values to the new name
    <remove>    <field source="segment"/>

They apply in this order; fields of one kind in the order of Java's HashMap, which matters if two
are copied to one. If a field is renamed to an existing one, its values are added (Nutch adds them
as one value that no writer can write).

Writing to a busy writer is retried after ever longer pauses; a writer that fails ends the job, and
nothing is committed. Documents that a server refuses are counted and logged; the job goes on.

Source: org.apache.nutch.indexer.IndexWriters, IndexWriterConfig, MappingReader,
org.apache.nutch.exchange.Exchanges, ExchangeConfig.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Self, TypeVar
from xml.etree.ElementTree import Element

import polars as pl

from minutch.conf import Configuration, properties
from minutch.errors import IndexBusyError, IndexWriterError, MinutchError
from minutch.hadoop.formats.javahash import names_order
from minutch.job import Counters
from minutch.plugin.documents import Documents
from minutch.plugin.parameters import Parameters, parameters_of, read_elements
from minutch.plugin.points import Action, Exchange, IndexWriter, Refused
from minutch.plugin.repository import Extension, PluginRepository
from minutch.terminal import counted

EXCHANGES_PROPERTY: Final = "exchanges.exchanges.file"
DEFAULT: Final = "default"


class ExchangeRoute(NamedTuple):
    """An exchange, and the ids of the writers that its documents go to."""

    exchange: Exchange
    writers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Exchanges:
    """The exchanges that are configured and active, and the writers of unmatched documents."""

    routes: Sequence[ExchangeRoute] = ()
    default: frozenset[str] | None = None

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """Reads the file; without it there are no exchanges. Raises ConfigError."""
        routes: list[ExchangeRoute] = []
        default: frozenset[str] | None = None
        name = conf.get_text(EXCHANGES_PROPERTY)
        if conf.resource(name) is None:
            return cls()
        extensions = {
            e.implementation.class_name: e
            for e in PluginRepository.of(conf).extensions(Exchange.point_id)
        }
        for element in read_elements(conf, name).iter("exchange"):
            writers = frozenset(writer.get("id", "") for writer in element.iter("writer"))
            wanted = element.get("class", "")
            if wanted == DEFAULT:
                default = writers
            elif wanted in extensions:
                extension = extensions[wanted].make()
                assert isinstance(extension, Exchange)
                extension.open(
                    Parameters(parameters_of(element), f"{name}, exchange {element.get('id')}")
                )
                routes.append(ExchangeRoute(extension, writers))
        return cls(routes, default)

    @property
    def are_active(self) -> bool:
        """True if documents may go to different writers."""
        return bool(self.routes) or self.default is not None

    def names(self) -> frozenset[str]:
        """Returns the ids of all writers that documents may go to."""
        return frozenset().union(*(route.writers for route in self.routes), self.default or ())

    def masks(self, documents: Documents, writers: list[str]) -> dict[str, pl.Series]:
        """Returns for each writer which of the documents go to it."""
        everything = pl.Series([True]).new_from_index(0, len(documents))
        if not self.are_active:
            return dict.fromkeys(writers, everything)
        masks = dict.fromkeys(writers, ~everything)
        named = ~everything
        for route in self.routes:
            matched = route.exchange.match_columns(documents)
            # Ids in exchanges.xml that no writer has were warned of when the chain was made.
            for writer in route.writers & masks.keys():
                masks[writer] = masks[writer] | matched
            # An exchange without writers leaves its documents to the default.
            if route.writers:
                named = named | matched
        for writer in (self.default or frozenset()) & masks.keys():
            masks[writer] = masks[writer] | ~named
        return masks


@dataclass(frozen=True)
class FieldMapping:
    """The changes to the fields of a writer's documents."""

    copies: dict[str, list[str]] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    removes: tuple[str, ...] = ()

    @classmethod
    def of(cls, writer: Element) -> FieldMapping:
        """Reads the mapping of a `<writer>`; without one, documents are not changed."""
        mapping = next(writer.iter("mapping"), None)
        if mapping is None:
            return cls()
        return cls(
            {
                name: [dest.strip() for dest in dests.split(",")]
                for name, dests in _fields(mapping, "copy").items()
            },
            _fields(mapping, "rename"),
            tuple(_fields(mapping, "remove")),
        )

    def apply(self, documents: Documents) -> Documents:
        """Returns the documents for the writer; `documents` are not changed."""
        if not (self.copies or self.renames or self.removes):
            return documents
        mapped = documents.copy()
        for source, names in self.copies.items():
            for name in names:
                values = mapped.column(source)
                # Copying a field to itself would double its values.
                if values is not None and name and name != source:
                    mapped.add(name, values)
        # MappingReader and NutchDocument go by HashMap's order, in which `_fields` has them.
        for source, name in self.renames.items():
            values = mapped.remove(source)
            if values is not None:
                mapped.add(name, values)
        for source in self.removes:
            mapped.remove(source)
        return mapped


def _fields(mapping: Element, kind: str) -> dict[str, str]:
    """Reads source and destination of the `<field>` elements of a kind."""
    block = next(mapping.iter(kind), None)
    found = [] if block is None else block.iter("field")
    fields = {item.get("source", ""): item.get("dest", "") for item in found}
    # A source that stands twice has the last one's destination, as in a Java map.
    names = list(fields)
    return {names[i]: fields[names[i]] for i in names_order(tuple(names))}


log = logging.getLogger(__name__)

FILE_PROPERTY: Final = "indexer.indexwriters.file"
FILE: Final = "index-writers.xml"
CRAWL_PROPERTY: Final = "minutch.index.crawl"
"""The folder of the crawl that is indexed, set by jobs, for writers that write into it."""
MAX_REFUSED_PROPERTY: Final = "minutch.index.max.refused"
"""Number of documents that servers may refuse before the job fails; -1: any."""

REFUSED: Final = "refused_total"
NO_WRITER: Final = "skipped_by_exchange_total"
LONGEST_WAIT: Final = 60.0
"""Longest pause before a retry, in seconds."""

Encoded = dict[str, pl.DataFrame]
"""The actions of each writer in order: `key` (String), `payload` (Binary, null: delete)."""

T = TypeVar("T")


@dataclass(frozen=True)
class ConfiguredWriter:
    """A `<writer>` of index-writers.xml whose plugin is active."""

    name: str
    parameters: Parameters
    mapping: FieldMapping
    extension: Extension

    def make(self) -> IndexWriter:
        """Makes the writer with its parameters, not opened. Raises ConfigError, PluginError."""
        writer = self.extension.make()
        assert isinstance(writer, IndexWriter)
        writer.configure(self.parameters)
        return writer


def configured_writers(conf: Configuration) -> dict[str, ConfiguredWriter]:
    """Reads the writers, by id in the file's order. ConfigError for a missing or invalid file."""
    file = conf.get_text(FILE_PROPERTY)
    extensions = {
        e.implementation.class_name: e
        for e in PluginRepository.of(conf).extensions(IndexWriter.point_id)
    }
    found: dict[str, ConfiguredWriter] = {}
    for element in read_elements(conf, file).iter("writer"):
        extension = extensions.get(element.get("class", ""))
        name = element.get("id", "")
        if extension is not None:
            parameters = Parameters(parameters_of(element), f"{file}, writer {name}")
            found[name] = ConfiguredWriter(name, parameters, FieldMapping.of(element), extension)
    return found


def keep_documents(conf: Configuration) -> bool:
    """Returns True if all writers keep the documents of earlier jobs, so that they can be deleted.
    Raises ConfigError, PluginError.
    """
    # indexer-csv and indexer-dummy begin their files anew.
    return not any(item.make().overwrites for item in configured_writers(conf).values())


def writes_beside(conf: Configuration) -> bool:
    """Returns True if an index stands in the crawl's folder. Raises ConfigError."""
    return any(
        item.extension.plugin.id == "indexer-local" for item in configured_writers(conf).values()
    )


def reach_writers(conf: Configuration, crawl: Path) -> None:
    """Asks all writers whether they can be written to, before a crawl fetches anything for them.
    Raises ConfigError, PluginError, IndexWriterError.
    """
    WriterChain.from_conf(conf.with_values({CRAWL_PROPERTY: str(crawl.absolute())})).reach()


# -- in worker processes ---------------------------------------------------------------------------


class Encoders:
    """The encoding of documents for each writer."""

    def __init__(self, writers: Mapping[str, ConfiguredWriter], exchanges: Exchanges) -> None:
        self._writers = {name: (item.mapping, item.make()) for name, item in writers.items()}
        self._exchanges = exchanges

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """Makes the configured writers and exchanges. Raises ConfigError, PluginError."""
        return cls(configured_writers(conf), Exchanges.from_conf(conf))

    @property
    def are_columnar(self) -> bool:
        """True if all writers encode columns."""
        return all(writer.overrides("encode_columns") for _, writer in self._writers.values())

    def encode(self, documents: Documents, deletions: Sequence[str]) -> tuple[Encoded, Counters]:
        """Returns the actions of each writer, sorted by URL, and the number that go to none."""
        # Exchanges see documents before any mapping (IndexWriters.write).
        masks = self._exchanges.masks(documents, list(self._writers))
        gone = pl.DataFrame({"key": deletions}, schema={"key": pl.String}).with_columns(
            pl.lit(None, pl.Binary).alias("payload")
        )
        encoded: Encoded = {}
        for name, (mapping, writer) in self._writers.items():
            mine = mapping.apply(documents.filter(masks[name]))
            payload = writer.encode_columns(mine) if len(mine) else pl.Series(dtype=pl.Binary)
            adds = pl.DataFrame({"key": mine.keys, "payload": payload})
            encoded[name] = (
                # Deletions go to all writers: who has a document now may not be who had it before.
                pl.concat([adds, gone]).sort("key", maintain_order=True) if len(gone) else adds
            )
        counters = Counters()
        if self._exchanges.are_active and masks:
            lost = pl.DataFrame(masks).select(~pl.any_horizontal(pl.all())).to_series()
            counters.add(NO_WRITER, int(lost.sum()))
        return encoded, counters


# -- in the job ------------------------------------------------------------------------------------


@dataclass
class _Queue:
    """A writer, and the actions of its next batch."""

    name: str
    writer: IndexWriter
    actions: list[Action] = field(default_factory=list)
    size: int = 0
    accepted: int = 0


class WriterChain:
    """All writers of a job. A context manager: an error aborts them; else call `finish`."""

    def __init__(
        self,
        writers: Mapping[str, IndexWriter],
        *,
        max_refused: int = -1,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._queues = [_Queue(name, writer) for name, writer in writers.items()]
        self._max_refused = max_refused
        self._sleep = sleep
        self._opened: list[_Queue] = []
        self.counters = Counters()

    @classmethod
    def from_conf(cls, conf: Configuration, *, sleep: Callable[[float], None] = time.sleep) -> Self:
        """Makes the configured writers; logs those of exchanges that don't exist. Raises
        ConfigError, PluginError.
        """
        writers = {name: item.make() for name, item in configured_writers(conf).items()}
        for name in sorted(Exchanges.from_conf(conf).names() - writers.keys()):
            log.warning(
                "Index writer %s is not present. Maybe the plugin is not in plugin.includes or"
                " there is a misspelling.",
                name,
            )
        return cls(writers, max_refused=conf.get_int(MAX_REFUSED_PROPERTY), sleep=sleep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()

    @property
    def names(self) -> list[str]:
        """Returns the ids of the writers."""
        return [queue.name for queue in self._queues]

    def open(self) -> None:
        """Opens all writers. Raises IndexWriterError."""
        self._open()
        for line in self.describe().splitlines():
            log.info("%s", line)

    def _open(self) -> None:
        for queue in self._queues:
            # First: a writer that fails half opened is aborted, too.
            self._opened.append(queue)
            self._retrying(queue, queue.writer.open)

    def write(self, encoded: Encoded) -> None:
        """Queues actions and sends full batches. Raises IndexWriterError if a writer fails."""
        for queue in self._queues:
            frame = encoded.get(queue.name)
            if frame is None:
                continue
            for key, payload in frame.iter_rows():
                queue.actions.append(Action(key, payload))
                queue.size += len(payload or b"") + len(key)
                if (
                    len(queue.actions) >= queue.writer.batch_documents
                    or queue.size >= queue.writer.batch_bytes
                ):
                    self._send(queue)

    def delete(self, keys: Iterable[str]) -> None:
        """Deletes documents from all writers."""
        table = pl.DataFrame({"key": keys}, schema={"key": pl.String}).with_columns(
            pl.lit(None, pl.Binary).alias("payload")
        )
        self.write(dict.fromkeys(self.names, table))

    def finish(self, *, commit: bool = True) -> None:
        """Sends the last batches, commits to all writers if none has failed, and closes them."""
        for queue in self._queues:
            self._send(queue)
        if commit:
            for queue in self._queues:
                self._retrying(queue, queue.writer.commit)
        while self._opened:
            queue = self._opened.pop(0)
            self._retrying(queue, queue.writer.close)

    def abort(self) -> None:
        """Aborts all open writers."""
        for queue in self._opened:
            if queue.accepted:
                log.warning(
                    "Index writer %s had taken %s; nothing is committed",
                    queue.name,
                    counted(queue.accepted, "actions"),
                )
            try:
                queue.writer.abort()
            except Exception as error:  # noqa: BLE001 - a writer of any kind, perhaps a user's
                log.warning("Index writer %s: %s: %s", queue.name, type(error).__name__, error)
        self._opened.clear()

    def _send(self, queue: _Queue) -> None:
        actions: Sequence[Action] = queue.actions
        queue.actions, queue.size = [], 0
        if not actions:
            return
        count = len(actions)
        refused: list[Refused] = []

        def attempt() -> None:
            nonlocal actions
            try:
                refused.extend(queue.writer.write(actions))
            except IndexBusyError as error:
                refused.extend(error.refused)
                # What the server has taken is not sent again.
                actions = actions if error.rest is None else error.rest
                raise

        self._retrying(queue, attempt)
        queue.accepted += count - len(refused)
        self._count(queue, refused)

    def _count(self, queue: _Queue, refused: Sequence[Refused]) -> None:
        for key, reason in refused:
            log.warning("Index writer %s: %s: refused: %s", queue.name, key, reason)
        if refused:
            self.counters.add(REFUSED, len(refused))
        if 0 <= self._max_refused < self.counters.get(REFUSED, 0):
            raise IndexWriterError(
                f"index writer {queue.name}: {self.counters[REFUSED]} documents refused, the last"
                f" one for: {refused[-1].reason}",
                hint=f"{MAX_REFUSED_PROPERTY} is {self._max_refused}",
            )

    def _retrying(self, queue: _Queue, step: Callable[[], T]) -> T:
        """Calls `step`, again after a pause while the writer is busy."""
        wait = queue.writer.backoff
        # One attempt, and the retries.
        for left in range(queue.writer.retries, -1, -1):
            try:
                return step()
            except IndexBusyError as error:
                if not left:
                    raise IndexWriterError(
                        f"index writer {queue.name}: {error}", hint=error.hint
                    ) from error
                # A server that says Retry-After: 86400 would hold the job for a day.
                pause = min(
                    LONGEST_WAIT, wait if error.retry_after is None else max(error.retry_after, 0.0)
                )
                log.warning(
                    "Index writer %s is busy: %s; again in %.1f s", queue.name, error, pause
                )
                self._sleep(pause)
                wait *= 2
            except MinutchError as error:
                raise IndexWriterError(
                    f"index writer {queue.name}: {error}", hint=error.hint
                ) from error
            # Clients raise what they like; a job ends by an error of minutch's, with the writer's
            # name.
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                raise IndexWriterError(f"index writer {queue.name}: {reason}") from error
        raise AssertionError("unreachable")

    def reach(self) -> None:
        """Opens and aborts all writers. Raises IndexWriterError if one can't be reached."""
        with self:
            self._open()
            self.abort()  # nothing was sent: there is nothing to commit

    def describe(self) -> str:
        """Describes the active writers with their parameters, for the log."""
        if not self._queues:
            return "No IndexWriters activated - check your configuration"
        lines = ["Active IndexWriters :"]
        for queue in self._queues:
            lines.append(f"{type(queue.writer).__name__} ({queue.name}):")
            lines += [
                f"  {name} = {properties.shown(name, str(value))}\t{what}"
                for name, (what, value) in queue.writer.describe().items()
            ]
        return "\n".join(lines)
