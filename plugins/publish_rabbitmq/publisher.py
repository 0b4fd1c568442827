"""publish-rabbitmq: sends each event of a fetch (fetcher.publisher=true) as a message of JSON to
RabbitMQ.

    {"eventType": "END", "eventData": {"status": "success"}, "url": "http://…", "timestamp":
    1770000000000}

    rabbitmq.publisher.server.uri                      the server, with user and password
    rabbitmq.publisher.exchange.name, .routingkey      where messages go; without: to the queue, by
                                                       its name
    rabbitmq.publisher.headers.static                  headers of every message
    rabbitmq.publisher.binding                         declare exchange and queue, and bind them,
                                                       before the first one
    .exchange.options, .queue.name, .queue.options, .binding.arguments    how

Messages are sent by a thread, so that no page waits for the server. Where it is away they are kept,
up to MOST_KEPT; what comes after those is lost, and counted in the log. Source:
org.apache.nutch.publisher.rabbitmq.RabbitMQPublisherImpl.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import threading
from collections.abc import Mapping
from typing import Any, Final

from minutch.conf import Configuration
from minutch.errors import MinutchError, StoreError
from minutch.plugin.points import NutchPublisher

from ..lib_rabbitmq.client import Binding, RabbitMQClient, read_values

log = logging.getLogger(__name__)

PREFIX: Final = "rabbitmq.publisher."
MOST_KEPT: Final = 10_000
"""Messages that wait for the server."""
HEARTBEAT: Final = 5.0
"""Seconds after which an idle connection is looked after."""
LONGEST_PAUSE: Final = 30.0
"""Seconds between two attempts to reach the server again."""
LAST_WAIT: Final = 10.0
"""Seconds that the end of the fetch waits for messages."""


class RabbitMQPublisher(NutchPublisher):
    """The publisher; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        values = {
            "exchange_name": conf.get_trimmed("rabbitmq.publisher.exchange.name") or "",
            "exchange_options": conf.get_text("rabbitmq.publisher.exchange.options"),
            "queue_name": conf.get_trimmed("rabbitmq.publisher.queue.name") or "nutch.events.queue",
            "queue_options": conf.get_text("rabbitmq.publisher.queue.options"),
            "routingkey": conf.get_trimmed("rabbitmq.publisher.routingkey") or "",
            "binding_arguments": conf.get("rabbitmq.publisher.binding.arguments", ""),
        }
        binding = Binding.read(PREFIX, values)
        self.exchange = binding.exchange
        self.key = binding.key or binding.queue
        self.headers = read_values(
            "rabbitmq.publisher.headers.static", conf.get(PREFIX + "headers.static", "")
        )
        binds = conf.get_boolean("rabbitmq.publisher.binding")
        uri = (
            conf.get_trimmed("rabbitmq.publisher.server.uri")
            or "amqp://guest:guest@localhost:5672/"
        )
        self.client = RabbitMQClient(uri, binding if binds else None)
        self._waiting: queue.Queue[bytes | None] = queue.Queue(MOST_KEPT)
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._lost = 0

    def set_config(self) -> bool:
        """Connect."""
        try:
            self.client.connect()
        except MinutchError as exc:
            log.error("publish-rabbitmq: %s", exc)
            return False
        return True

    def publish(self, event: Mapping[str, Any]) -> None:
        """Queues an event. The thread starts with the first one, after all forks."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._send_all, name="publish-rabbitmq", daemon=True
            )
            self._thread.start()
        try:
            self._waiting.put_nowait(
                json.dumps({**event, "eventData": event["eventData"] or None}).encode()
            )
        except queue.Full:
            if not self._lost:
                log.error(
                    "publish-rabbitmq: %d events wait for the server already: more are lost",
                    MOST_KEPT,
                )
            self._lost += 1

    def close(self) -> None:
        """Sends the queued events, within a time limit, and disconnects."""
        self._ending.set()
        if self._thread is not None:
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(None)  # wakes the thread
            self._thread.join(LAST_WAIT)
            self._lost += sum(message is not None for message in list(self._waiting.queue))
        if self._lost:
            log.error("publish-rabbitmq: %d events were not sent", self._lost)
        if self._thread is None or not self._thread.is_alive():
            self.client.close()

    # -- the thread --------------------------------------------------------------------------------

    def _send_all(self) -> None:
        while not (self._ending.is_set() and self._waiting.empty()):
            try:
                message = self._waiting.get(timeout=HEARTBEAT)
            except queue.Empty:
                self.client.tend()
                continue
            if message is not None and not self._send(message):
                self._lost += 1

    def _send(self, message: bytes) -> bool:
        """Sends a message, even if the server is away for long; False if the fetch ends."""
        pause = 1.0
        while True:
            try:
                self.client.send(self.exchange, self.key, message, self.headers)
                return True
            except StoreError as exc:
                log.warning("publish-rabbitmq: %s, again in %d s", exc, pause)
            if self._ending.wait(pause):
                return False
            pause = min(2 * pause, LONGEST_PAUSE)
