"""indexer-rabbit: sends documents as messages in JSON to an exchange of RabbitMQ. Needs pika (extra
`rabbitmq`).

    server.uri                           amqp://user:password@host:port/virtualhost
    exchange.name                        where messages go; empty: the default exchange
    routingkey                           nutch.queue
    binding                              whether exchange and queue are made and bound (false), with
    exchange.options                     type=direct|topic|fanout|headers,durable=true
    queue.name, queue.options            nutch.queue;
                                         durable=true,exclusive=false,auto-delete=false,arguments={a:1;b:2}
    binding.arguments                    a=1,b=2, for an exchange of type headers
    commit.mode                          multiple: many documents in a message; single: one, with
                                         the header `action`
    commit.size                          documents in a message, or messages in a batch (250)
    headers.static, headers.dynamic      name=value,…; names of fields whose first value is a header
                                         (single only)

A message of many is {"docsToWrite": […], "docsToUpdate": [], "docsToDelete": [URL, …]}, a document
{"fields": [{"key", "weight", "values"}, …], "documentBoost"}; a deletion on its own is the URL with
action=delete.

The broker confirms each message. One that no queue takes ends the job, where Nutch lets it vanish;
dates are in UTC (2026-11-22T16:00:00Z), where Nutch prints them in the words of its machine's
language.

Source: org.apache.nutch.indexwriter.rabbit.RabbitIndexWriter, RabbitMessage, RabbitDocument;
rabbitmq.RabbitMQClient.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from minutch.errors import IndexBusyError, IndexWriterError, StoreError
from minutch.plugin.documents import Documents, texts_of
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action, IndexWriter, Refused
from minutch.records.document import NutchDocument

from ..lib_indexer.bulk import columns_of, json_objects
from ..lib_indexer.client import shown
from ..lib_rabbitmq.client import DEFAULT_QUEUE, Binding, RabbitMQClient, read_values

SINGLE: Final = "single"
MULTIPLE: Final = "multiple"


class RabbitIndexWriter(IndexWriter):
    """Writes to an exchange."""

    def configure(self, parameters: Parameters) -> None:
        self.uri = parameters.get("server.uri", "").strip()
        if not self.uri.startswith(("amqp://", "amqps://")):
            raise parameters.wrong("server.uri", "a URI that begins with amqp:// or amqps://")
        self.exchange = parameters.get("exchange.name", "").strip()
        self.routing_key = parameters.get("routingkey", "").strip() or DEFAULT_QUEUE
        self.queue = parameters.get("queue.name", "").strip() or DEFAULT_QUEUE
        self.binding = parameters.get_boolean("binding", False)
        self.mode = parameters.get("commit.mode", "").strip() or MULTIPLE
        self.batch_documents = max(1, parameters.get_int("commit.size", 250))
        self.dynamic = [name.strip() for name in parameters.get_strings("headers.dynamic")]
        self.static = read_values(
            f"{parameters.owner}: parameter headers.static", parameters.get("headers.static", "")
        )
        values = {name.replace(".", "_"): value.strip() for name, value in parameters.items()}
        binding = Binding.read(f"{parameters.owner}: parameter ", values)
        self._client = RabbitMQClient(self.uri, binding if self.binding else None, confirms=True)

    # -- documents ---------------------------------------------------------------------------------

    def encode(self, doc: NutchDocument) -> bytes:
        return bytes(self.encode_columns(Documents.of(doc))[0])

    def encode_columns(self, documents: Documents) -> pl.Series:
        """Field → values, and the weight, as an array; `_document` makes a message of it."""
        objects = json_objects(columns_of(documents), len(documents), arrays=True).cast(pl.String)
        weights = texts_of(documents.weights)
        return (
            pl.select("[" + pl.lit(objects) + "," + pl.lit(weights) + "]")
            .to_series()
            .cast(pl.Binary)
        )

    # -- the broker --------------------------------------------------------------------------------

    def open(self) -> None:
        try:
            self._client.connect()
        except StoreError as error:
            raise IndexWriterError(str(error)) from error

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        sent = 0
        try:
            for body, headers in self._messages(actions):
                self._client.send(self.exchange, self.routing_key, body, headers)
                sent += 1
        except StoreError as error:
            if type(error.__cause__).__name__ == "UnroutableError":
                hint = "binding=true makes a queue and binds it"
                raise IndexWriterError(
                    f"RabbitMQ: no queue takes what goes to {self._target()}", hint=hint
                ) from error
            raise IndexBusyError(str(error), rest=self._rest(actions, sent)) from error
        return ()

    def _rest(self, actions: Sequence[Action], sent: int) -> Sequence[Action]:
        """Returns the actions to send again after `sent` messages; a message's stay together."""
        if self.mode != SINGLE:
            return actions
        return [*_deletions(actions), *_additions(actions)][sent:]

    def _messages(self, actions: Sequence[Action]) -> list[tuple[bytes, dict[str, Any]]]:
        """Bodies and headers, deletions first, as Nutch sends them."""
        deletions, additions = _deletions(actions), _additions(actions)
        if self.mode == SINGLE:
            gone = [
                (action.key.encode(), {**self.static, "action": "delete"}) for action in deletions
            ]
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

    def close(self) -> None:
        self._client.close()

    def abort(self) -> None:
        self._client.close()

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
            "headers.dynamic": ("fields that are also headers", ",".join(self.dynamic)),
        }


def _deletions(actions: Sequence[Action]) -> list[Action]:
    return [action for action in actions if action.payload is None]


def _additions(actions: Sequence[Action]) -> list[Action]:
    return [action for action in actions if action.payload is not None]


def _document(fields: dict[str, list[Any]], weight: float) -> dict[str, Any]:
    """Returns a document as Nutch's consumers know it."""
    found = [{"key": name, "weight": 1.0, "values": values} for name, values in fields.items()]
    return {"fields": found, "documentBoost": weight}
