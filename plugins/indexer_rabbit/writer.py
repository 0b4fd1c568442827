"""indexer-rabbit: messages in JSON to an exchange of RabbitMQ. Needs pika (extra `rabbitmq`).

    server.uri                           amqp://user:password@host:port/virtualhost
    exchange.name                        where messages go; empty: the default exchange
    routingkey                           nutch.queue
    binding                              whether exchange and queue are made and bound (false), with
    exchange.options                     type=direct|topic|fanout|headers,durable=true
    queue.name, queue.options            nutch.queue; durable=true,exclusive=false,auto-delete=false,arguments={a:1;b:2}
    binding.arguments                    a=1,b=2, for an exchange of type headers
    commit.mode                          multiple: many documents in a message; single: one, with the header `action`
    commit.size                          documents in a message, or messages in a batch (250)
    headers.static, headers.dynamic      name=value,…; names of fields whose first value is a header (single only)

A message of many is {"docsToWrite": […], "docsToUpdate": [], "docsToDelete": [URL, …]}, a document
{"fields": [{"key", "weight", "values"}, …], "documentBoost"}; a deletion on its own is the URL with action=delete.

The broker confirms each message. One that no queue takes ends the job, where Nutch lets it vanish; dates are in UTC
(2026-11-22T16:00:00Z), where Nutch prints them in the words of its machine's language.

Source: org.apache.nutch.indexwriter.rabbit.RabbitIndexWriter, RabbitMessage, RabbitDocument; rabbitmq.RabbitMQClient.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from minutch.errors import IndexBusyError, IndexWriterError
from minutch.plugin.documents import Documents, texts_of
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action, IndexWriter, Refused
from minutch.records.document import NutchDocument

from ..lib_indexer.client import shown
from ..lib_indexer.jsondocs import columns_of, json_objects
from .options import arguments, options, typed_options

QUEUE: Final = "nutch.queue"
SINGLE: Final = "single"
MULTIPLE: Final = "multiple"
SOCKET_SECONDS: Final = 15.0
BLOCKED_SECONDS: Final = 120.0
"""That a broker may stop us for want of memory or disk."""


class RabbitIndexWriter(IndexWriter):
    """Writes to an exchange."""

    def configure(self, parameters: Parameters) -> None:
        self.uri = parameters.get("server.uri", "").strip()
        if not self.uri.startswith(("amqp://", "amqps://")):
            raise parameters.wrong("server.uri", "a URI that begins with amqp:// or amqps://")
        self.exchange = parameters.get("exchange.name", "").strip()
        self.routing_key = parameters.get("routingkey", "").strip() or QUEUE
        self.queue = parameters.get("queue.name", "").strip() or QUEUE
        self.binding = parameters.get_boolean("binding", False)
        self.mode = parameters.get("commit.mode", "").strip() or MULTIPLE
        self.batch_documents = max(1, parameters.get_int("commit.size", 250))
        self.dynamic = [name.strip() for name in parameters.get_strings("headers.dynamic")]
        name = "headers.static"
        try:
            self.static = typed_options(parameters.get(name, ""))
            name = "exchange.options"
            self.exchange_options = options(parameters.get(name, ""))
            name = "binding.arguments"
            self.binding_arguments = typed_options(parameters.get(name, ""))
            name = "queue.options"
            self.queue_options = options(parameters.get(name, ""))
            self.queue_arguments = arguments(self.queue_options.get("arguments", ""))
        except ValueError:
            raise parameters.wrong(name, "name=value pairs with commas between") from None
        self._connection: Any = None
        self._channel: Any = None

    # -- documents ---------------------------------------------------------------------------------------------------

    def encode(self, doc: NutchDocument) -> bytes:
        documents = Documents(pl.Series([""]))
        documents.replace([doc])
        return bytes(self.encode_columns(documents)[0])

    def encode_columns(self, documents: Documents) -> pl.Series:
        """Field → values, and the weight, as an array; `_document` makes a message of it."""
        objects = json_objects(columns_of(documents), len(documents), arrays=True).cast(pl.String)
        weights = texts_of(documents.weights)
        return pl.select("[" + pl.lit(objects) + "," + pl.lit(weights) + "]").to_series().cast(pl.Binary)

    # -- the broker --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        try:
            import pika  # noqa: F401
        except ImportError as exc:
            raise IndexWriterError(
                "indexer-rabbit needs the package pika", hint="pip install 'minutch[rabbitmq]'"
            ) from exc
        try:
            self._connect()
            if self.binding:
                self._bind()
        except IndexBusyError as error:
            raise IndexWriterError(str(error), hint=error.hint) from error

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        from pika.exceptions import AMQPError, NackError, UnroutableError

        self._connect()
        sent = 0
        try:
            for body, headers in self._messages(actions):
                self._publish(body, headers)
                sent += 1
        except UnroutableError as exc:
            hint = "binding=true makes a queue and binds it"
            raise IndexWriterError(f"{self._where()}: no queue takes what goes to {self._target()}", hint=hint) from exc
        except NackError as exc:
            raise IndexBusyError(
                f"{self._where()}: the broker could not take a message", rest=self._rest(actions, sent)
            ) from exc
        except (AMQPError, OSError) as exc:
            raise self._translated(exc, self._rest(actions, sent)) from exc
        return ()

    def _rest(self, actions: Sequence[Action], sent: int) -> Sequence[Action]:
        """What is to go out again after `sent` messages: all that stands in one message goes together."""
        if self.mode != SINGLE:
            return actions
        return [*_deletions(actions), *_additions(actions)][sent:]

    def _messages(self, actions: Sequence[Action]) -> list[tuple[bytes, dict[str, Any]]]:
        """Bodies and headers, deletions first, as Nutch sends them."""
        deletions, additions = _deletions(actions), _additions(actions)
        if self.mode == SINGLE:
            gone = [(action.key.encode(), {**self.static, "action": "delete"}) for action in deletions]
            return gone + [self._single(action.payload or b"") for action in additions]
        whole = {
            "docsToWrite": [_document(*json.loads(action.payload or b"")) for action in additions],
            "docsToUpdate": [],
            "docsToDelete": [action.key for action in deletions],
        }
        return [(json.dumps(whole, ensure_ascii=False).encode(), dict(self.static))]

    def _single(self, payload: bytes) -> tuple[bytes, dict[str, Any]]:
        fields, weight = json.loads(payload)
        dynamic = {name: fields[name][0] for name in self.dynamic if fields.get(name)}
        body = json.dumps(_document(fields, weight), ensure_ascii=False).encode()
        return body, {**self.static, **dynamic, "action": "write"}

    def _publish(self, body: bytes, headers: dict[str, Any]) -> None:
        import pika

        properties = pika.BasicProperties(content_type="application/json", headers=headers)
        self._channel.basic_publish(self.exchange, self.routing_key, body, properties, mandatory=True)

    def _connect(self) -> None:
        """Connect, unless there is a connection that works. Raises IndexBusyError, IndexWriterError."""
        import pika
        from pika.exceptions import AMQPError

        if self._connection is not None and self._connection.is_open and self._channel.is_open:
            return
        self.abort()
        try:
            parameters = pika.URLParameters(self.uri)
        except (ValueError, TypeError, IndexError) as exc:
            raise IndexWriterError(f"{self._where()}: not a URI that RabbitMQ knows: {exc}") from exc
        parameters.heartbeat = 0  # nobody answers them while documents are made
        parameters.blocked_connection_timeout = BLOCKED_SECONDS
        parameters.socket_timeout = parameters.stack_timeout = SOCKET_SECONDS
        try:
            self._connection = pika.BlockingConnection(parameters)
            self._channel = self._connection.channel()
            self._channel.confirm_delivery()
        except (AMQPError, OSError) as exc:
            raise self._translated(exc, None) from exc

    def _bind(self) -> None:
        """Make exchange and queue, and bind them. A queue is always bound to the default exchange, by its name."""
        from pika.exceptions import AMQPError

        kind = self.exchange_options.get("type", "direct")
        try:
            self._channel.queue_declare(
                self.queue,
                durable=_flag(self.queue_options, "durable", True),
                exclusive=_flag(self.queue_options, "exclusive", False),
                auto_delete=_flag(self.queue_options, "auto-delete", False),
                arguments=self.queue_arguments,
            )
            if self.exchange:
                durable = _flag(self.exchange_options, "durable", True)
                self._channel.exchange_declare(self.exchange, kind, durable=durable)
                key = self.routing_key if kind in ("direct", "topic") else ""
                found = self.binding_arguments if kind == "headers" else {}
                self._channel.queue_bind(self.queue, self.exchange, key, found)
        except (AMQPError, OSError) as exc:
            raise self._translated(exc, None) from exc

    def _translated(self, error: Exception, rest: Sequence[Action] | None) -> IndexWriterError:
        """IndexBusyError for what may get better."""
        from pika import exceptions

        final = (
            exceptions.ProbableAuthenticationError,
            exceptions.ProbableAccessDeniedError,
            exceptions.IncompatibleProtocolError,
            exceptions.ChannelClosedByBroker,
        )
        text = f"{self._where()}: {_reason(error)}"
        if isinstance(error, (exceptions.ProbableAuthenticationError, exceptions.ProbableAccessDeniedError)):
            return IndexWriterError(text, hint="look at server.uri in index-writers.xml")
        return IndexWriterError(text) if isinstance(error, final) else IndexBusyError(text, rest=rest)

    def close(self) -> None:
        from pika.exceptions import AMQPError

        try:
            if self._connection is not None and self._connection.is_open:
                self._connection.close()
        except (AMQPError, OSError) as exc:
            raise IndexWriterError(f"{self._where()}: {_reason(exc)}") from exc
        finally:
            self._connection = self._channel = None

    def abort(self) -> None:
        if self._connection is not None:
            self.close()

    def _where(self) -> str:
        return f"RabbitMQ, {shown(self.uri)}"

    def _target(self) -> str:
        return f"exchange {self.exchange!r} with routing key {self.routing_key!r}"

    def describe(self) -> dict[str, tuple[str, object]]:
        return {
            "server.uri": ("the broker", shown(self.uri)),
            "exchange.name": ("where messages go", self.exchange),
            "routingkey": ("with which key", self.routing_key),
            "binding": ("whether exchange and queue are made", str(self.binding).lower()),
            "queue.name": ("the queue", self.queue),
            "commit.mode": ("one document in a message, or many", self.mode),
            "commit.size": ("documents in a message, or messages in a batch", self.batch_documents),
            "headers.static": ("headers of each message", ",".join(self.static)),
            "headers.dynamic": ("fields that are headers, too", ",".join(self.dynamic)),
        }


def _deletions(actions: Sequence[Action]) -> list[Action]:
    return [action for action in actions if action.payload is None]


def _additions(actions: Sequence[Action]) -> list[Action]:
    return [action for action in actions if action.payload is not None]


def _document(fields: dict[str, list[Any]], weight: float) -> dict[str, Any]:
    """A document as Nutch's consumers know it."""
    found = [{"key": name, "weight": 1.0, "values": values} for name, values in fields.items()]
    return {"fields": found, "documentBoost": weight}


def _flag(values: dict[str, str], name: str, default: bool) -> bool:
    return values.get(name, str(default)).lower() == "true"


def _reason(error: Exception) -> str:
    """An error of pika's; the ones that wrap another often have no text."""
    inner = error.args[0] if error.args else None
    cause = getattr(inner, "exception", inner)
    return f"{type(error).__name__}: {cause}" if cause is not None else type(error).__name__
