"""indexer-kafka: sends each document as a message in JSON to a topic of Apache Kafka. Needs
kafka-python (extra `kafka`).

    host              brokers to begin with, with commas between
    port              theirs (9092)
    topic             where messages go
    max.doc.count     messages in a batch (100)
    key.serializer    has no effect: messages have no key, as in Nutch
    value.serializer  org.apache.kafka.connect.json.JsonSerializer; nothing else is there

and of our own: timeout (seconds for a batch, 120). A message is an object with an array for each
field, which holds its values as Java prints them, each once. Deletions can't be said in this way
and are left out, as in Nutch. A batch has arrived when all replicas that are in step have it; one
that has to go out again may leave some messages twice.

Source: org.apache.nutch.indexwriter.kafka.KafkaIndexWriter.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from minutch.errors import ConfigError, IndexBusyError, IndexWriterError
from minutch.plugin.documents import Documents, as_lists, texts_of
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action, IndexWriter, Refused
from minutch.records.document import NutchDocument

from ..lib_indexer.bulk import columns_of, json_objects
from ..lib_indexer.client import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from kafka.errors import KafkaError


JSON_SERIALIZER: Final = "org.apache.kafka.connect.json.JsonSerializer"
CONNECT_SECONDS: Final = 15.0


class KafkaIndexWriter(IndexWriter):
    """Writes to a topic. The producer tries again by itself, for as long as `timeout` says."""

    retries = 2
    backoff = 1.0

    def configure(self, parameters: Parameters) -> None:
        hosts = [host.strip() for host in parameters.get_strings("host") if host.strip()]
        self.topic = parameters.get("topic", "").strip()
        for name, value in (("host", hosts), ("topic", self.topic)):
            if not value:
                raise ConfigError(f"{parameters.owner}: parameter {name} is missing")
        self.port = parameters.get_int("port", 9092)
        self.brokers = [f"{host}:{self.port}" for host in hosts]
        serializer = parameters.get("value.serializer", "") or JSON_SERIALIZER
        if serializer != JSON_SERIALIZER:
            raise parameters.wrong("value.serializer", JSON_SERIALIZER)
        self.batch_documents = max(1, parameters.get_int("max.doc.count", 100))
        self.timeout = parameters.get_float("timeout", TIMEOUT_SECONDS)
        self._producer: Any = None

    def encode(self, doc: NutchDocument) -> bytes:
        return bytes(self.encode_columns(Documents.of(doc))[0])

    def encode_columns(self, documents: Documents) -> pl.Series:
        fields = columns_of(documents)
        texts = {
            name: as_lists(texts_of(values)).list.unique(maintain_order=True)
            for name, values in fields.items()
        }
        return json_objects(texts, len(documents), arrays=True)

    def open(self) -> None:
        try:
            import kafka
        except ImportError as exc:
            hint = "pip install 'minutch[kafka]'"
            raise IndexWriterError(
                "indexer-kafka needs the package kafka-python", hint=hint
            ) from exc
        logging.getLogger("kafka").setLevel(
            logging.CRITICAL
        )  # it tells each error before it raises it
        milliseconds = math.ceil(self.timeout * 1000)
        try:
            self._producer = kafka.KafkaProducer(
                bootstrap_servers=self.brokers,
                acks="all",
                bootstrap_timeout_ms=math.ceil(CONNECT_SECONDS * 1000),
                max_block_ms=milliseconds,
                request_timeout_ms=min(milliseconds, 30_000),
                delivery_timeout_ms=milliseconds,
            )
        except kafka.errors.KafkaError as exc:
            raise IndexWriterError(f"Kafka, {', '.join(self.brokers)}: {_reason(exc)}") from exc

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        from kafka.errors import KafkaError, MessageSizeTooLargeError

        refused: list[Refused] = []
        rest: list[Action] = []
        sent: list[tuple[Action, Any]] = []
        failure: KafkaError | None = None
        for action in (action for action in actions if action.payload is not None):
            if failure is not None:  # the next one would wait as long
                rest.append(action)
                continue
            try:
                sent.append((action, self._producer.send(self.topic, action.payload)))
            except MessageSizeTooLargeError as exc:
                refused.append(Refused(action.key, _reason(exc)))
            except KafkaError as exc:
                rest.append(action)
                failure = self._passing(exc)
        for action, future in sent:
            try:
                future.get(self.timeout)
            except MessageSizeTooLargeError as exc:
                refused.append(Refused(action.key, _reason(exc)))
            except KafkaError as exc:
                rest.append(action)
                failure = self._passing(exc)
        if failure is not None:
            raise IndexBusyError(
                f"Kafka, topic {self.topic}: {_reason(failure)}", rest=rest, refused=refused
            )
        return refused

    def _passing(self, error: KafkaError) -> KafkaError:
        """Returns the error, if the message may go out again; or raises IndexWriterError."""
        if not error.retriable:
            raise IndexWriterError(f"Kafka, topic {self.topic}: {_reason(error)}") from error
        return error

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close(timeout=CONNECT_SECONDS)
            self._producer = None

    def abort(self) -> None:
        if self._producer is not None:
            self._producer.close(timeout=0)
            self._producer = None

    def describe(self) -> dict[str, tuple[str, object]]:
        return {
            "host": ("brokers to begin with", ",".join(self.brokers)),
            "port": ("their port", self.port),
            "topic": ("where messages go", self.topic),
            "value.serializer": ("how messages are written", JSON_SERIALIZER),
            "max.doc.count": ("messages in a batch", self.batch_documents),
        }


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
