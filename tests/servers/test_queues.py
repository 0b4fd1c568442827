"""indexer-kafka and indexer-rabbit, and real brokers: every document once, deletions, brokers that
go away.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka
import pika
import pytest
from kafka import TopicPartition

from minutch.errors import IndexWriterError
from tests.servers import recipes
from tests.servers.conftest import Start
from tests.servers.processes import Server
from tests.servers.story import Indexing, Pages, Story, pages

pytestmark = pytest.mark.servers


def stripped(fields: dict[str, list[str]]) -> tuple[str, str]:
    """Title and text of a document."""
    title, content = ((fields.get(name) or [""])[0].strip() for name in ("title", "content"))
    return title, content


# -- Kafka -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker(start: Start) -> Server:
    return start(recipes.kafka)


def messages(broker: Server, topic: str) -> list[dict[str, Any]]:
    """All that is in a topic."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=f"127.0.0.1:{broker.port}", enable_auto_commit=False
    )
    try:
        parts = [
            TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()
        ]
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        ends = consumer.end_offsets(parts)
        found: list[dict[str, Any]] = []
        while any(consumer.position(part) < ends[part] for part in parts):
            for records in consumer.poll(timeout_ms=1000).values():
                found += [json.loads(record.value) for record in records]
        return found
    finally:
        consumer.close()


def to_kafka(broker: Server, folder: Path, topic: str, **parameters: object) -> Indexing:
    given = {name.replace("__", "."): value for name, value in parameters.items()}
    place = {"host": "127.0.0.1", "port": broker.port, "topic": topic}
    return Indexing(folder, "indexer-kafka", "kafka.KafkaIndexWriter", {**place, **given})


def test_kafka_gets_each_document(broker: Server, story: Story, tmp_path: Path) -> None:
    counts = to_kafka(broker, tmp_path, "pages", max__doc__count=7).index(story.first)
    found = messages(broker, "pages")
    wanted = pages(story.first, duplicates=True)
    assert {doc["id"][0]: stripped(doc) for doc in found} == wanted
    assert len(found) == len(wanted) == counts["indexed_total"]
    assert all(isinstance(values, list) for doc in found for values in doc.values())
    to_kafka(broker, tmp_path, "pages").clean(story.first)
    assert len(messages(broker, "pages")) == len(wanted)


def test_kafka_refuses_what_is_too_large(broker: Server, story: Story, tmp_path: Path) -> None:
    """A broker's limit for a topic counts; the others are taken."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{broker.port}")
    topic = kafka.admin.NewTopic("small", 1, 1, topic_configs={"max.message.bytes": "600"})
    admin.create_topics([topic])
    admin.close()
    counts = to_kafka(broker, tmp_path, "small", max__doc__count=1).index(story.first)
    wanted = pages(story.first, duplicates=True)
    found: Pages = {doc["id"][0]: stripped(doc) for doc in messages(broker, "small")}
    assert found.items() < wanted.items()
    assert counts["refused_total"] == len(wanted) - len(found) > 0


def test_kafka_dies_in_a_batch(
    broker: Server, story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job waits for it. Nothing is lost; what was under way may be there twice."""
    send, sent = kafka.KafkaProducer.send, 0

    def send_or_die(producer: kafka.KafkaProducer, topic: str, message: bytes) -> Any:
        nonlocal sent
        sent += 1
        if sent == 6:
            broker.kill()
            broker.start()
        return send(producer, topic, message)

    monkeypatch.setattr(kafka.KafkaProducer, "send", send_or_die)
    counts = to_kafka(broker, tmp_path, "dying", max__doc__count=10).index(story.first)
    found = messages(broker, "dying")
    wanted = pages(story.first, duplicates=True)
    assert {doc["id"][0]: stripped(doc) for doc in found} == wanted
    assert counts["indexed_total"] == len(wanted) and len(found) <= len(wanted) + 10


def test_kafka_is_not_there(broker: Server, story: Story, tmp_path: Path) -> None:
    broker.stop()
    with pytest.raises(
        IndexWriterError, match=r"index writer w: Kafka, 127\.0\.0\.1:\d+: KafkaTimeoutError"
    ):
        to_kafka(broker, tmp_path, "pages").index(story.first)


# -- RabbitMQ --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rabbit(start: Start) -> Server:
    return start(recipes.rabbitmq)


@pytest.fixture
def channel(rabbit: Server) -> Iterator[Any]:
    """A channel to the broker."""
    connection = pika.BlockingConnection(
        pika.URLParameters(f"amqp://guest:guest@127.0.0.1:{rabbit.port}/")
    )
    yield connection.channel()
    connection.close()


def received(channel: Any, queue: str) -> list[tuple[dict[str, Any], bytes]]:
    """Headers and bodies of all messages in a queue, which is empty then."""
    found = []
    while True:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        assert properties.content_type == "application/json"
        found.append((properties.headers or {}, body))


def to_rabbit(rabbit: Server, folder: Path, user: str = "guest", **parameters: object) -> Indexing:
    given = {name.replace("__", "."): value for name, value in parameters.items()}
    uri = {"server.uri": f"amqp://{user}:guest@127.0.0.1:{rabbit.port}/"}
    return Indexing(folder, "indexer-rabbit", "rabbit.RabbitIndexWriter", {**uri, **given})


def fields(document: dict[str, Any]) -> dict[str, list[str]]:
    """The fields of a document of Nutch's form."""
    assert all(field["weight"] == 1.0 for field in document["fields"])
    return {field["key"]: field["values"] for field in document["fields"]}


def test_rabbit_gets_many_in_a_message(
    rabbit: Server, channel: Any, story: Story, tmp_path: Path
) -> None:
    indexing = to_rabbit(
        rabbit, tmp_path, binding="true", commit__size=7, headers__static="source=crawl,round=3"
    )
    indexing.index(story.first)
    found = received(channel, "nutch.queue")
    wanted = pages(story.first, duplicates=True)
    bodies = [json.loads(body) for _, body in found]
    assert [len(body["docsToWrite"]) for body in bodies] == [7, 7, len(wanted) - 14]
    assert {headers["round"] for headers, _ in found} == {3}
    documents = [doc for body in bodies for doc in body["docsToWrite"]]
    assert {fields(doc)["id"][0]: stripped(fields(doc)) for doc in documents} == wanted
    assert all(str(doc["documentBoost"]) == fields(doc)["boost"][0] for doc in documents)
    indexing.clean(story.first)
    [(_, gone)] = received(channel, "nutch.queue")
    assert story.duplicate in json.loads(gone)["docsToDelete"]


def test_rabbit_gets_documents_one_by_one(
    rabbit: Server, channel: Any, story: Story, tmp_path: Path
) -> None:
    options = {
        "binding": "true",
        "exchange__name": "crawl",
        "exchange__options": "type=headers,durable=false",
    }
    queue = {"queue__name": "mine", "queue__options": "durable=false,arguments={x-max-length:1000}"}
    headers = {
        "binding__arguments": "x-match=any,kind=page",
        "headers__static": "kind=page",
        "headers__dynamic": "host",
    }
    indexing = to_rabbit(rabbit, tmp_path, commit__mode="single", **options, **queue, **headers)
    indexing.index(story.first)
    found = received(channel, "mine")
    wanted = pages(story.first, duplicates=True)
    assert {fields(json.loads(body))["id"][0] for _, body in found} == wanted.keys()
    assert len(found) == len(wanted)
    assert {tuple(sorted(headers.items())) for headers, _ in found} == {
        (("action", "write"), ("host", host), ("kind", "page"))
        for host in ("127.0.0.1", "localhost")
    }
    indexing.clean(story.first)
    assert ({"action": "delete", "kind": "page"}, story.duplicate.encode()) in received(
        channel, "mine"
    )


def test_rabbit_has_no_queue_for_it(rabbit: Server, story: Story, tmp_path: Path) -> None:
    """Nutch's messages vanish then."""
    with pytest.raises(
        IndexWriterError,
        match=r"no queue takes what goes to exchange '' with routing key 'nowhere'",
    ):
        to_rabbit(rabbit, tmp_path, routingkey="nowhere").index(story.first)


def test_rabbit_does_not_know_us(rabbit: Server, story: Story, tmp_path: Path) -> None:
    with pytest.raises(
        IndexWriterError, match=r"w: RabbitMQ at 127\.0\.0\.1:\d+: .*ACCESS_REFUSED"
    ) as found:
        to_rabbit(rabbit, tmp_path, user="somebody").index(story.first)
    assert "guest" not in str(found.value)


def test_rabbit_is_away(rabbit: Server, story: Story, tmp_path: Path) -> None:
    """A broker that is away ends the job; when it is back, the job runs."""
    rabbit.stop()
    with pytest.raises(IndexWriterError, match="index writer w: RabbitMQ"):
        to_rabbit(rabbit, tmp_path).index(story.first)
    rabbit.start()
    to_rabbit(rabbit, tmp_path, binding="true").index(story.first)
