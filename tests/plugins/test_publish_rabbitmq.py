"""publish-rabbitmq: options, a server that is not there, and a fetch whose events a real broker
gets.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from minutch.conf import Configuration
from minutch.cycle.fetch.stats import Publishers
from minutch.errors import ConfigError
from minutch.plugin.points import NutchPublisher
from plugins.lib_rabbitmq.client import (
    Binding,
    RabbitMQClient,
    read_arguments,
    read_options,
    read_values,
)
from plugins.publish_rabbitmq.publisher import RabbitMQPublisher
from tests.support.misbehaving import MisbehavingServer
from tests.support.rabbitbroker import IS_THERE, broker
from tests.support.segments import conf_for, fetch_segment, make_segment

PREFIX = "rabbitmq.publisher."
EVENT = {"eventType": "END", "url": "http://a/", "timestamp": 7, "eventData": {"status": "success"}}
needs_broker = pytest.mark.skipif(
    not IS_THERE, reason="rabbitmq-server is not installed (Debian has a package)"
)


def configuration(uri: str, **values: str) -> Configuration:
    named = {PREFIX + name.replace("_", "."): value for name, value in values.items()}
    includes = "protocol-http|urlnormalizer-pass|scoring-opic|publish-rabbitmq"
    return conf_for(fetcher__publisher="true").with_values(
        {"plugin.includes": includes, f"{PREFIX}server.uri": uri, **named}
    )


class TestOptions:
    def test_options(self) -> None:
        assert read_options("p", "type=topic, durable=false,,") == {
            "type": "topic",
            "durable": "false",
        }
        assert read_values("p", "a=1,b=1.5,c=TRUE,d=x=y") == {
            "a": 1,
            "b": 1.5,
            "c": True,
            "d": "x=y",
        }
        assert read_arguments("p", "{x-max-length:10;x:b}") == {"x-max-length": 10, "x": "b"}
        assert read_options("p", "") == {}

    @pytest.mark.parametrize("text", ["durable", "=x", "a=b,c"])
    def test_wrong_ones_are_named(self, text: str) -> None:
        with pytest.raises(ConfigError, match=r"my\.options: expected key=value"):
            read_options("my.options", text)

    def test_a_binding(self) -> None:
        given = {
            "exchange_name": "events",
            "exchange_options": "type=headers,durable=false",
            "queue_name": "q",
            "queue_options": (
                "durable=false,exclusive=true,auto-delete=true,arguments={x-max-length:3}"
            ),
            "binding_arguments": "x-match=all,kind=1",
            "routingkey": "k",
        }
        expected = ("events", "headers", False, "q", False, True, True, {"x-max-length": 3}, "k")
        assert Binding.read(PREFIX, given) == Binding(*expected, {"x-match": "all", "kind": 1})
        assert Binding.read(PREFIX, {}) == Binding()
        with pytest.raises(
            ConfigError, match=r"publisher\.exchange\.options: type: expected direct, fanout"
        ):
            Binding.read(PREFIX, {"exchange_options": "type=none"})


class TestNoServer:
    def test_nothing_is_published(self, caplog: pytest.LogCaptureFixture) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        conf = configuration(f"amqp://guest:very-secret@127.0.0.1:{port}/")
        publishers = Publishers(conf)
        publishers.publish("START", "http://a/", {})
        publishers.close()
        assert f"RabbitMQ at 127.0.0.1:{port}: " in caplog.text
        assert "nothing is published" in caplog.text
        assert "very-secret" not in caplog.text

    @pytest.mark.parametrize("uri", ["http://x:y/", "amqp://h:port/"])
    def test_no_uri(self, uri: str) -> None:
        with pytest.raises(ConfigError, match="not a URI of RabbitMQ"):
            RabbitMQClient(uri, None).connect()

    def test_what_can_not_be_sent_is_counted(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("plugins.publish_rabbitmq.publisher.MOST_KEPT", 3)
        publisher = RabbitMQPublisher(configuration("amqp://guest:guest@127.0.0.1:1/"), {})
        assert not publisher.set_config()
        for _ in range(9):
            publisher.publish(EVENT)
        publisher.close()
        assert "3 events wait for the server already" in caplog.text
        assert "9 events were not sent" in caplog.text


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with broker(tmp_path_factory.mktemp("rabbit")) as found:
        yield found


def messages(uri: str, queue: str, count: int) -> list[tuple[dict[str, Any], Any]]:
    """The next messages of a queue, with their properties."""
    found: list[tuple[dict[str, Any], Any]] = []
    end = time.monotonic() + 10
    with pika.BlockingConnection(pika.URLParameters(uri)) as connection:
        channel = connection.channel()
        while len(found) < count and time.monotonic() < end:
            method, properties, body = channel.basic_get(queue, auto_ack=True)
            if method is not None:
                found.append((json.loads(body), properties))
    return found


@needs_broker
@pytest.mark.slow
class TestBroker:
    @pytest.mark.parametrize("processes", ["1", "2"])
    def test_events_of_a_fetch(self, uri: str, tmp_path: Path, processes: str) -> None:
        queue = f"events{processes}"
        values = {"binding": "true", "queue_name": queue, "headers_static": "crawl=7,kind=test"}
        conf = configuration(uri, **values).with_values({"minutch.fetch.processes": processes})
        with MisbehavingServer() as server:
            url = server.url("plain")
            fetch_segment(make_segment(tmp_path, [url]), conf)
        (start, properties), (end, _) = messages(uri, queue, 2)
        assert (start["eventType"], start["url"], start["eventData"]) == ("START", url, None)
        assert end["eventType"] == "END"
        assert end["eventData"].keys() == {"status"}
        assert properties.content_type == "application/json"
        assert properties.headers == {"crawl": 7, "kind": "test"}

    @pytest.mark.parametrize(
        ("kind", "more", "arrives"),
        [
            ("direct", {"routingkey": "k"}, True),
            ("direct", {}, True),
            ("topic", {"routingkey": "a.b"}, True),
            ("fanout", {}, True),
            (
                "headers",
                {"binding_arguments": "x-match=all,crawl=7", "headers_static": "crawl=7"},
                True,
            ),
            (
                "headers",
                {"binding_arguments": "x-match=all,crawl=8", "headers_static": "crawl=7"},
                False,
            ),
        ],
    )
    def test_exchanges(self, uri: str, kind: str, more: dict[str, str], arrives: bool) -> None:
        name = f"{kind}-{'-'.join(more)}-{arrives}"
        options = f"type={kind},durable=false"
        conf = configuration(
            uri,
            binding="true",
            exchange_name=name,
            exchange_options=options,
            queue_name=name,
            **more,
        )
        publisher: NutchPublisher = RabbitMQPublisher(conf, {})
        assert publisher.set_config()
        publisher.publish(EVENT)
        publisher.close()
        with pika.BlockingConnection(pika.URLParameters(uri)) as connection:
            _, _, body = connection.channel().basic_get(name, auto_ack=True)
        assert (body is not None and json.loads(body) == EVENT) is arrives

    def test_queues_as_declared(self, uri: str) -> None:
        options = "durable=false,auto-delete=false,arguments={x-max-length:2}"
        publisher = RabbitMQPublisher(
            configuration(uri, binding="true", queue_name="short", queue_options=options), {}
        )
        assert publisher.set_config()
        for number in range(5):
            publisher.publish({**EVENT, "timestamp": number})
        publisher.close()
        assert [event["timestamp"] for event, _ in messages(uri, "short", 2)] == [3, 4]
        other = RabbitMQPublisher(configuration(uri, binding="true", queue_name="short"), {})
        assert not other.set_config()  # declared otherwise

    def test_without_a_binding_nothing_is_declared(self, uri: str) -> None:
        publisher = RabbitMQPublisher(configuration(uri, queue_name="nobody"), {})
        assert publisher.set_config()
        publisher.publish(EVENT)
        publisher.close()
        with (
            pika.BlockingConnection(pika.URLParameters(uri)) as connection,
            pytest.raises(pika.exceptions.ChannelClosedByBroker),
        ):
            connection.channel().queue_declare("nobody", passive=True)

    def test_a_lost_connection_is_made_anew(self, uri: str) -> None:
        publisher = RabbitMQPublisher(configuration(uri, binding="true", queue_name="again"), {})
        assert publisher.set_config()
        assert publisher.client._connection is not None
        publisher.client._connection._impl._transport._sock.shutdown(socket.SHUT_RDWR)
        publisher.publish(EVENT)
        assert [event for event, _ in messages(uri, "again", 1)] == [EVENT]
        publisher.close()
