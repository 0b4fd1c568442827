"""Connects to RabbitMQ: declares and binds an exchange and a queue, and sends messages, by pika.

Waiting for the server has an end (`TIMEOUT`), also where it lets its clients wait because its
memory or disk is full. Source: org.apache.nutch.rabbitmq.RabbitMQClient.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from minutch.errors import ConfigError, StoreError

if TYPE_CHECKING:
    import pika


# Reads options as Nutch's RabbitMQ plugins write them.
#
#     type=direct,durable=true                             exchanges
#     durable=true,arguments={x-max-length:10;x-a:b}       queues
#     key=value,key=value                                  headers, arguments of a binding
#
# A value is a whole number, a number, true or false, or a text. Source:
# org.apache.nutch.rabbitmq.RabbitMQOptionParser.

Value = str | int | float | bool
TIMEOUT: Final = 10.0
"""Seconds."""
DEFAULT_QUEUE: Final = "nutch.queue"
TYPES: Final = ("direct", "fanout", "headers", "topic")


def read_options(name: str, text: str) -> dict[str, str]:
    """Returns the options in the value of a property. Raises ConfigError that names it."""
    return _pairs(name, text, ",", "=")


def read_values(name: str, text: str) -> dict[str, Value]:
    """Options whose values have types. Raises ConfigError."""
    return {key: typed(value) for key, value in read_options(name, text).items()}


def read_arguments(name: str, text: str) -> dict[str, Value]:
    """Reads arguments in braces, `{key:value;key:value}`. Raises ConfigError."""
    return {
        key: typed(value) for key, value in _pairs(name, text.strip().strip("{}"), ";", ":").items()
    }


def typed(text: str) -> Value:
    """Returns the value that a text stands for."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.lower() == "true" if text.lower() in ("true", "false") else text


def is_true(options: dict[str, str], key: str, default: bool) -> bool:
    """Reads an option that is on or off."""
    return options[key].lower() == "true" if key in options else default


def _pairs(name: str, text: str, between: str, within: str) -> dict[str, str]:
    found = {}
    for part in filter(None, map(str.strip, text.split(between))):
        key, sign, value = part.partition(within)
        if not sign or not key.strip():
            raise ConfigError(
                f"{name}: expected key{within}value, separated by {between!r}, found {part!r}"
            )
        found[key.strip()] = value.strip()
    return found


@dataclass(frozen=True)
class Binding:
    """An exchange and a queue that belong together, and what takes a message to the queue."""

    exchange: str = ""
    exchange_type: str = "direct"
    exchange_durable: bool = True
    queue: str = DEFAULT_QUEUE
    durable: bool = True
    exclusive: bool = False
    auto_delete: bool = False
    queue_arguments: Mapping[str, Value] = field(default_factory=dict)
    key: str = ""
    """The routing key; empty: the queue's name."""
    arguments: Mapping[str, Value] = field(default_factory=dict)
    """Headers that a message must have, for an exchange of type headers."""

    @classmethod
    def read(cls, prefix: str, values: Mapping[str, str]) -> Binding:
        """Reads properties without their `prefix`, `_` for a dot: exchange_name, exchange_options,
        queue_name, queue_options, routingkey, binding_arguments. Raises ConfigError.
        """
        exchange = read_options(f"{prefix}exchange.options", values.get("exchange_options", ""))
        queue = read_options(f"{prefix}queue.options", values.get("queue_options", ""))
        kind = exchange.get("type", "direct")
        if kind not in TYPES:
            raise ConfigError(
                f"{prefix}exchange.options: type: expected {', '.join(TYPES)}, found {kind!r}"
            )
        return cls(
            values.get("exchange_name", ""),
            kind,
            is_true(exchange, "durable", True),
            values.get("queue_name") or DEFAULT_QUEUE,
            is_true(queue, "durable", True),
            is_true(queue, "exclusive", False),
            is_true(queue, "auto-delete", False),
            read_arguments(f"{prefix}queue.options: arguments", queue.get("arguments", "")),
            values.get("routingkey", ""),
            read_values(f"{prefix}binding.arguments", values.get("binding_arguments", "")),
        )


class RabbitMQClient:
    """A connection with one channel. Its methods raise StoreError; then it is closed, and `connect`
    opens it again.
    """

    def __init__(self, uri: str, binding: Binding | None, *, confirms: bool = False) -> None:
        """`uri` is amqp://user:password@host:port/vhost; `binding` is made with each connection.

        `confirms`: a message that no queue takes, or that the server does not confirm, is an error.
        """
        self._uri = uri
        self._confirms = confirms
        self._binding = binding
        self._connection: pika.BlockingConnection | None = None
        self._channel: Any = None

    def connect(self) -> None:
        """Connect, and bind what is to be bound."""
        try:
            import pika
            from pika.exceptions import AMQPError
        except ImportError as exc:
            raise StoreError("RabbitMQ needs pika: pip install 'minutch[rabbitmq]'") from exc
        logging.getLogger("pika").setLevel(
            logging.CRITICAL
        )  # it tells each error, with a traceback, before it raises it
        try:
            parameters = pika.URLParameters(self._uri)
        except (ValueError, TypeError, KeyError, IndexError) as exc:
            raise ConfigError(
                f"not a URI of RabbitMQ, as amqp://user:password@host:5672/: {exc}"
            ) from exc
        parameters.socket_timeout = parameters.stack_timeout = TIMEOUT
        parameters.blocked_connection_timeout = TIMEOUT
        parameters.connection_attempts = 1
        where = f"{parameters.host}:{parameters.port}"
        try:
            self._connection = pika.BlockingConnection(parameters)
            self._channel = self._connection.channel()
            if self._confirms:
                self._channel.confirm_delivery()
            if self._binding is not None:
                self._bind(self._binding)
        except (AMQPError, OSError) as exc:
            self.close()
            raise StoreError(f"RabbitMQ at {where}: {_words(exc)}") from exc

    def _bind(self, binding: Binding) -> None:
        channel = self._channel
        channel.queue_declare(
            binding.queue,
            durable=binding.durable,
            exclusive=binding.exclusive,
            auto_delete=binding.auto_delete,
            arguments=dict(binding.queue_arguments),
        )
        if not binding.exchange:
            return  # the default exchange: every queue is bound to it by its name
        channel.exchange_declare(
            binding.exchange, binding.exchange_type, durable=binding.exchange_durable
        )
        by_key = binding.exchange_type in ("direct", "topic")
        arguments = dict(binding.arguments) if binding.exchange_type == "headers" else None
        key = (binding.key or binding.queue) if by_key else ""
        channel.queue_bind(binding.queue, binding.exchange, key, arguments)

    def send(self, exchange: str, key: str, body: bytes, headers: Mapping[str, Value]) -> None:
        """Sends a message of JSON."""
        import pika

        if self._channel is None:
            self.connect()
        properties = pika.BasicProperties(content_type="application/json", headers=dict(headers))
        try:
            self._channel.basic_publish(exchange, key, body, properties, mandatory=self._confirms)
        except Exception as exc:  # of pika or the socket; pika asserts when a connection breaks
            self.close()
            raise StoreError(f"RabbitMQ: {_words(exc)}") from exc

    def tend(self) -> None:
        """Answers the server's heartbeats if nothing has been sent for a while."""
        if self._connection is not None:
            try:
                self._connection.process_data_events(0)
            except Exception:  # noqa: BLE001 - pika raises anything when a connection breaks
                self.close()

    def close(self) -> None:
        """Disconnects; sent messages arrive."""
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None and connection.is_open:
            with contextlib.suppress(
                Exception
            ):  # whatever pika says of a connection that is given up
                connection.close()


def _words(error: BaseException) -> str:
    """Returns an error of pika's, whose text is often empty."""
    inner = error.args[0] if error.args and isinstance(error.args[0], BaseException) else error
    return str(getattr(inner, "exception", None) or inner) or type(inner).__name__
