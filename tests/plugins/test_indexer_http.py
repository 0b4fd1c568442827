"""The writers for Solr, Elasticsearch, OpenSearch and CloudSearch, against a server that misbehaves
as it is told.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import polars as pl
import pytest
import trustme

from minutch.conf import Configuration
from minutch.cycle.index.writers import Encoders, WriterChain, configured_writers
from minutch.errors import ConfigError, IndexWriterError
from minutch.plugin.documents import Documents
from minutch.records.document import Date, NutchDocument
from tests.plugins.searchserver import Answer, Asked, SearchServerStub

SOLR = "solr.SolrIndexWriter"
ELASTIC = "elastic.ElasticIndexWriter"
OPENSEARCH = "opensearch1x.OpenSearch1xIndexWriter"
CLOUDSEARCH = "cloudsearch.CloudSearchIndexWriter"
PLUGINS = "indexer-(solr|elastic|opensearch-1x|cloudsearch|kafka|rabbit)"


class Writing:
    """Sends documents through the writer with these parameters; `waits` are the pauses between
    attempts.
    """

    def __init__(
        self, folder: Path, name: str, parameters: dict[str, Any], **properties: str
    ) -> None:
        values = "".join(
            f"<param name={quoteattr(k)} value={quoteattr(str(v))}/>" for k, v in parameters.items()
        )
        (folder / "index-writers.xml").write_text(
            '<writers><writer id="w"'
            f' class="org.apache.nutch.indexwriter.{name}"><parameters>{values}</parameters>'
            "</writer></writers>"
        )
        given = {key.replace("__", "."): value for key, value in properties.items()}
        self.conf = Configuration.load([folder], overrides={"plugin.includes": PLUGINS} | given)
        self.waits: list[float] = []
        self.refused = 0

    def run(self, *keys: str) -> None:
        """Documents under these keys; those with a dash before them are deleted."""
        documents = Documents(pl.Series([key for key in keys if key[0] != "-"], dtype=pl.String))
        documents.add("id", documents.keys)
        documents.add("title", "title of " + documents.keys)
        self.send(documents, [key[1:] for key in keys if key[0] == "-"])

    def send(self, documents: Documents, gone: list[str]) -> None:
        encoded, _ = Encoders.from_conf(self.conf).encode(documents, gone)
        with WriterChain.from_conf(self.conf, sleep=self.waits.append) as chain:
            chain.open()
            chain.write(encoded)
            chain.finish()
        self.refused = chain.counters.get("refused_total", 0)


def solr_commands(body: bytes) -> list[tuple[str, str]]:
    """Command and id of each, in order."""
    pairs = json.loads(body, object_pairs_hook=list)
    return [(name, dict(dict(value).get("doc", value)).get("id", "")) for name, value in pairs]


def accepted(asked: Asked) -> Answer:
    """Answers anything as a healthy node does."""
    lines = [json.loads(line) for line in asked.body.splitlines()] if "_bulk" in asked.path else []
    kinds = [next(iter(line)) for line in lines if line.keys() & {"index", "delete"}]
    return Answer(body={"items": [{kind: {"status": 200}} for kind in kinds]})


def in_turn(
    *answers: Answer, then: Callable[[Asked], Answer] = accepted, path: str = ""
) -> Callable[[Asked], Answer]:
    """These answers to requests with `path`, one after the other."""
    left = list(answers)
    return lambda asked: left.pop(0) if left and path in asked.path else then(asked)


def to_solr(server: SearchServerStub, folder: Path, **more: Any) -> Writing:
    return Writing(
        folder, SOLR, {"url": f"http://127.0.0.1:{server.port}/solr/nutch", "timeout": 5} | more
    )


def to_bulk(server: SearchServerStub, folder: Path, name: str = ELASTIC, **more: Any) -> Writing:
    given = {key.replace("__", "."): value for key, value in more.items()}
    place = {
        "host": "127.0.0.1",
        "port": server.port,
        "scheme": "http",
        "index": "pages",
        "timeout": 5,
    }
    return Writing(folder, name, place | given)


# -- what is sent ----------------------------------------------------------------------------------


def typed() -> Documents:
    """A document with values of all types."""
    documents = Documents(pl.Series(["http://a.org/"]))
    doc = NutchDocument(weight=0.1)
    for name, value in {
        "id": "http://a.org/",
        "title": 'a "b"\x0b\u2028\ufffe\n',
        "tstamp": Date(1_000_000_000_000),
        "precise": Date(1_000_000_000_120),
        "number": 7,
        "yes": True,
        "score": 0.25,
    }.items():
        doc.add(name, value)
    doc.add("many", "x")
    doc.add("many", "y")
    doc.add("dates", Date(0))
    doc.add("dates", Date(1))
    doc.add("mixed", "x")
    doc.add("mixed", 1)
    documents.replace([doc])
    return documents


TYPED = {
    "id": "http://a.org/",
    "title": 'a "b"\x0b\u2028\ufffe\n',
    "tstamp": "2001-09-09T01:46:40Z",
    "precise": "2001-09-09T01:46:40.120Z",
    "number": 7,
    "yes": True,
    "score": 0.25,
    "many": ["x", "y"],
    "dates": ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00.001Z"],
    "mixed": ["x", 1],
}


def test_values_in_json(tmp_path: Path) -> None:
    with SearchServerStub(accepted) as server:
        to_bulk(server, tmp_path).send(typed(), [])
        [bulk] = server.bodies("_bulk")
        head, document = map(json.loads, bulk.split(b"\n")[:2])
        assert head == {"index": {"_id": "http://a.org/"}}
        assert document == TYPED
        to_solr(server, tmp_path, **{"weight.field": "weight"}).send(typed(), [])
        added = json.loads(server.bodies("/update")[1])["add"]["doc"]
        assert added == TYPED | {"title": 'a "b"\u2028\n', "weight": 0.1}


def test_solr_gets_additions_and_deletions_in_order_and_one_commit(tmp_path: Path) -> None:
    with SearchServerStub(accepted) as server:
        params = {"indexer__additional__params": "commitWithin=1000&x&overwrite=true"}
        place = {"url": f"http://127.0.0.1:{server.port}/solr/nutch/", "commitSize": 3}
        Writing(tmp_path, SOLR, place, **params).run("a", "c", "-b", "d")
        assert [asked.path for asked in server.asked] == [
            *["/solr/nutch/update?commitWithin=1000&overwrite=true&wt=json"] * 3,
            "/solr/nutch/update?wt=json",
        ]
        sent = [solr_commands(body) for body in server.bodies("/update")]
        assert sent == [
            [],
            [("add", "a"), ("delete", "b"), ("add", "c")],
            [("add", "d")],
            [("commit", "")],
        ]


def test_solr_of_each_type(tmp_path: Path) -> None:
    """http: all get all. cloud and lb: one of those that answer."""
    with SearchServerStub(accepted) as one, SearchServerStub(accepted) as two:
        roots = [f"http://127.0.0.1:{port}/solr" for port in (one.port, two.port, 1)]
        both = [f"{root}/nutch" for root in roots]
        Writing(tmp_path, SOLR, {"type": "http", "url": ",".join(both[:2])}).run("a")
        assert one.bodies("/update") == two.bodies("/update")
        one.asked.clear()
        two.asked.clear()
        Writing(
            tmp_path,
            SOLR,
            {"type": "cloud", "url": ",".join(roots), "collection": "c d", "commitSize": 1},
        ).run("a")
        Writing(tmp_path, SOLR, {"type": "lb", "url": ",".join(both), "commitSize": 1}).run(
            "a", "b"
        )
        paths = [asked.path.split("?")[0] for server in (one, two) for asked in server.asked]
        assert sorted(paths) == ["/solr/c%20d/update"] * 3 + ["/solr/nutch/update"] * 4
        assert one.asked
        assert two.asked


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        (
            SOLR,
            {"auth": "true", "username": "u", "password": "p"},
            "Basic " + base64.b64encode(b"u:p").decode(),
        ),
        (
            SOLR,
            {"auth": "true", "auth.header.name": "Bearer", "auth.header.value": "123"},
            "Bearer 123",
        ),
        (SOLR, {"username": "u", "password": "p"}, None),
        (
            ELASTIC,
            {"auth": "true", "password": "p"},
            "Basic " + base64.b64encode(b"elastic:p").decode(),
        ),
        (ELASTIC, {"username": "u", "password": "p"}, None),
        (OPENSEARCH, {}, "Basic " + base64.b64encode(b"admin:admin").decode()),
        (OPENSEARCH, {"username": ""}, None),
    ],
)
def test_credentials(tmp_path: Path, name: str, more: dict[str, str], expected: str | None) -> None:
    with SearchServerStub(accepted) as server:
        place = {
            "url": f"http://127.0.0.1:{server.port}/s",
            "host": "127.0.0.1",
            "port": server.port,
            "scheme": "http",
        }
        Writing(tmp_path, name, place | more).run("a")
        assert {asked.headers.get("authorization") for asked in server.asked} == {expected}


# -- servers that are busy, or refuse --------------------------------------------------------------


@pytest.mark.parametrize("make", [to_solr, to_bulk])
def test_a_busy_server_is_asked_again(make: Callable[..., Writing], tmp_path: Path) -> None:
    """429 and 503 with and without Retry-After, 504, an answer that is too late, a connection that
    is cut.
    """
    passing = (
        Answer(429, headers={"Retry-After": "7"}),
        Answer(503, headers={"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}),
        Answer(503),
        Answer(504, b"<html>"),
        Answer(seconds=0.6),
        Answer(cut=True),
    )
    with SearchServerStub(lambda asked: Answer()) as server:
        writing = make(server, tmp_path, timeout=0.3)
        seen = 0

        def answer(asked: Asked) -> Answer:
            nonlocal seen
            if b"title of" not in asked.body:
                return accepted(asked)
            seen += 1
            return passing[seen - 1] if seen <= len(passing) else accepted(asked)

        server.answer = answer
        writing.run("a", "b")
        assert writing.waits == [7.0, 0.0, 0.4, 0.8, 1.6, 3.2]
        assert writing.refused == 0
        assert len({asked.body for asked in server.asked if b"title of" in asked.body}) == 1


def test_patience_ends(tmp_path: Path) -> None:
    with SearchServerStub(
        in_turn(then=lambda asked: Answer(429) if "_bulk" in asked.path else Answer())
    ) as server:
        writing = to_bulk(
            server, tmp_path, exponential__backoff__millis=50, exponential__backoff__retries=2
        )
        with pytest.raises(
            IndexWriterError,
            match=r"index writer w: http://127\.0\.0\.1:\d+/pages/_bulk: 429 Too Many",
        ):
            writing.run("a")
        assert writing.waits == [0.05, 0.1]
        assert not server.bodies("_refresh")


def items(asked: Asked, **statuses: int) -> Answer:
    """An answer with a status of its own for some keys."""
    answer = accepted(asked)
    keys = [
        line["_id"]
        for text in asked.body.splitlines()
        for line in json.loads(text).values()
        if "_id" in line
    ]
    for key, item in zip(keys, answer.body["items"], strict=True):
        found = next(iter(item.values()))
        if key in statuses:
            found.update(
                status=statuses[key],
                error={"type": "x", "reason": f"no {key}", "caused_by": {"reason": "c"}},
            )
    return answer


def test_the_items_of_a_bulk_have_outcomes_of_their_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Busy ones go out again, refused ones are named, a document that was not there is deleted."""
    first = True

    def answer(asked: Asked) -> Answer:
        nonlocal first
        if "_bulk" not in asked.path:
            return Answer()
        if first:
            first = False
            return items(asked, a=429, b=400, d=404, e=503)
        return accepted(asked)

    with SearchServerStub(answer) as server, caplog.at_level(logging.WARNING):
        writing = to_bulk(server, tmp_path)
        writing.run("a", "b", "c", "-d", "e")
        again = [json.loads(line) for line in server.bodies("_bulk")[1].splitlines()]
        assert [line["index"]["_id"] for line in again if "index" in line] == ["a", "e"]
        assert writing.waits == [0.1]
        assert writing.refused == 1
    assert "Index writer w: b: refused: 400: no b (c)" in caplog.text


def test_no_right_to_write_ends_the_job(tmp_path: Path) -> None:
    with SearchServerStub(
        lambda asked: items(asked, b=403) if "_bulk" in asked.path else Answer()
    ) as server:
        with pytest.raises(
            IndexWriterError, match="index writer w: Elasticsearch, index pages: 403: no b"
        ):
            to_bulk(server, tmp_path).run("a", "b")
        assert not server.bodies("_refresh")


def test_an_id_that_no_server_takes(tmp_path: Path) -> None:
    with SearchServerStub(accepted) as server:
        writing = to_bulk(server, tmp_path)
        writing.run("a" * 512, "b" * 513)
        assert writing.refused == 1
        assert b"bbb" not in b"".join(server.bodies("_bulk"))


def test_a_batch_that_is_refused_is_halved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A document that is refused alone is named; a busy moment in between costs nothing."""
    busy = [Answer(503)]

    def answer(asked: Asked) -> Answer:
        if busy and asked.body.count(b'"add"') == 2:
            return busy.pop()
        wrong = b'"id":"c"' in asked.body or b'"id":"g"' in asked.body
        return Answer(400, {"error": {"msg": "unknown field"}}) if wrong else Answer()

    with SearchServerStub(answer) as server, caplog.at_level(logging.WARNING):
        writing = to_solr(server, tmp_path)
        writing.run(*"abcdefgh")
        taken = [
            solr_commands(body)
            for body in server.bodies("/update")
            if answer(Asked("", "", {}, body)).status == 200
        ]
        assert {key for batch in taken for name, key in batch if name == "add"} == set("abdefh")
        assert writing.refused == 2
        assert writing.waits == [0.1]
    assert "Index writer w: g: refused: http://127.0.0.1" in caplog.text
    assert "400 Bad Request: unknown field" in caplog.text


def test_a_collection_that_is_away_for_a_moment(tmp_path: Path) -> None:
    """A SolrCloud that starts again; at the start of the job it is missing for good."""
    with SearchServerStub(in_turn(Answer(), Answer(404), Answer(), Answer(404))) as server:
        writing = to_solr(server, tmp_path)
        writing.run("a")
        assert writing.waits == [0.1, 0.1]


@pytest.mark.parametrize("make", [to_solr, to_bulk])
@pytest.mark.parametrize("status", [401, 404, 500])
def test_what_never_works_ends_the_job_at_the_start(
    make: Callable[..., Writing], status: int, tmp_path: Path
) -> None:
    with SearchServerStub(lambda asked: Answer(status, {"error": {"reason": "because"}})) as server:
        writing = make(server, tmp_path)
        with pytest.raises(IndexWriterError, match=rf"index writer w: .*: {status} .*: because"):
            writing.run("a")
        assert len(server.asked) == 1
        assert writing.waits == []


def test_a_node_that_shows_itself_to_nobody_may_take_documents(tmp_path: Path) -> None:
    """403 for `/` and for _refresh is the lot of users who may only write."""
    with SearchServerStub(
        lambda asked: accepted(asked) if "_bulk" in asked.path else Answer(403)
    ) as server:
        to_bulk(server, tmp_path).run("a")
        assert len(server.bodies("_bulk")) == 1


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        (SOLR, {"url": "http://u:secret@127.0.0.1:1/solr/nutch"}),
        (ELASTIC, {"host": "127.0.0.1", "port": "1"}),
    ],
)
def test_nobody_is_there(name: str, parameters: dict[str, str], tmp_path: Path) -> None:
    writing = Writing(tmp_path, name, parameters)
    with pytest.raises(
        IndexWriterError, match=r"index writer w: http://127\.0\.0\.1:1.*: no connection: "
    ) as found:
        writing.run("a")
    assert "secret" not in str(found.value)
    assert writing.waits == []


def test_an_answer_of_something_else(tmp_path: Path) -> None:
    with (
        SearchServerStub(lambda asked: Answer(body=b"<html>a router</html>")) as server,
        pytest.raises(
            IndexWriterError, match="Elasticsearch answered a bulk request of 1 with something else"
        ),
    ):
        to_bulk(server, tmp_path).run("a")


# -- TLS -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def secure(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def to_secure(server: SearchServerStub, folder: Path, **more: Any) -> Writing:
    return to_bulk(server, folder, OPENSEARCH, **{"scheme": "https", "username": ""} | more)


def test_unknown_certificates_are_refused(secure: ssl.SSLContext, tmp_path: Path) -> None:
    with SearchServerStub(accepted, tls=secure) as server:
        with pytest.raises(IndexWriterError, match="CERTIFICATE_VERIFY_FAILED"):
            to_secure(server, tmp_path).run("a")
        to_secure(server, tmp_path, tls__certificates__check="false").run("a")
        assert len(server.bodies("_bulk")) == 1


def jks(certificates: list[bytes], password: str) -> bytes:
    """A trust store as Java writes it."""
    body = b"\xfe\xed\xfe\xed" + (2).to_bytes(4) + len(certificates).to_bytes(4)
    for certificate in certificates:
        body += (
            (2).to_bytes(4)
            + b"\0\1a"
            + bytes(8)
            + b"\0\5X.509"
            + len(certificate).to_bytes(4)
            + certificate
        )
    return body + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


@pytest.mark.parametrize("kind", ["pem", "jks", "p12"])
def test_trust_stores(
    kind: str, authority: trustme.CA, secure: ssl.SSLContext, tmp_path: Path
) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        pkcs12,
    )

    certificate = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    content = {
        "pem": authority.cert_pem.bytes(),
        "jks": jks([certificate.public_bytes(Encoding.DER)], "changeit"),
        "p12": pkcs12.serialize_key_and_certificates(
            None, None, None, [certificate], BestAvailableEncryption(b"changeit")
        ),
    }[kind]
    store = tmp_path / "store"
    store.write_bytes(content)
    with SearchServerStub(accepted, tls=secure) as server:
        trusted = {"trust__store__path": store, "trust__store__type": "JKS"}
        to_secure(server, tmp_path, trust__store__password="changeit", **trusted).run("a")
        assert len(server.bodies("_bulk")) == 1
        if kind != "pem":
            with pytest.raises(IndexWriterError, match="can't be read with this password"):
                to_secure(server, tmp_path, trust__store__password="wrong", **trusted).run("a")
        store.write_bytes(content[: len(content) // 2])
        with pytest.raises(IndexWriterError, match=f"{store}: can't be"):
            to_secure(server, tmp_path, trust__store__password="changeit", **trusted).run("a")


@pytest.mark.parametrize("kind", ["pem", "p12"])
def test_a_certificate_of_our_own(
    kind: str, authority: trustme.CA, secure: ssl.SSLContext, tmp_path: Path
) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        load_pem_private_key,
        pkcs12,
    )

    secure.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(secure)
    mine = authority.issue_cert("crawler")
    chain = [blob.bytes() for blob in mine.cert_chain_pems]
    content = mine.private_key_pem.bytes() + b"".join(chain)
    if kind == "p12":
        key = load_pem_private_key(mine.private_key_pem.bytes(), None)
        cert = x509.load_pem_x509_certificate(chain[0])
        content = pkcs12.serialize_key_and_certificates(
            b"k", key, cert, None, BestAvailableEncryption(b"changeit")
        )
    (tmp_path / "key").write_bytes(content)
    authority.cert_pem.write_to_path(str(tmp_path / "trusted"))
    trusted = {"trust__store__path": tmp_path / "trusted"}
    with SearchServerStub(accepted, tls=secure) as server:
        with pytest.raises(IndexWriterError):
            to_secure(server, tmp_path, **trusted).run("a")
        own = {"key__store__path": tmp_path / "key", "key__store__password": "changeit"}
        to_secure(server, tmp_path, **trusted, **own).run("a")
        assert len(server.bodies("_bulk")) == 1


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "complaint"),
    [
        (SOLR, {}, "parameter url is missing"),
        (SOLR, {"url": "localhost:8983/solr"}, "parameter url: expected URLs that begin"),
        (
            SOLR,
            {"url": "http://h/", "type": "concurrent"},
            "parameter type: expected http, cloud or lb",
        ),
        (SOLR, {"url": "http://h/", "type": "cloud"}, "type cloud needs the parameter collection"),
        (ELASTIC, {}, "parameter host is missing"),
        (ELASTIC, {"host": "h", "port": "0"}, "parameter port: expected a number"),
        (ELASTIC, {"host": "h", "scheme": "ftp"}, "parameter scheme: expected http or https"),
        (CLOUDSEARCH, {}, "parameter endpoint is missing"),
        ("kafka.KafkaIndexWriter", {"host": "h"}, "parameter topic is missing"),
        ("kafka.KafkaIndexWriter", {"topic": "t"}, "parameter host is missing"),
        ("rabbit.RabbitIndexWriter", {}, "parameter server.uri: expected a URI"),
        (
            "rabbit.RabbitIndexWriter",
            {"server.uri": "amqp://h/", "queue.options": "x"},
            "parameter queue.options",
        ),
    ],
)
def test_wrong_parameters(
    name: str, parameters: dict[str, str], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=f"writer w: .*{complaint}|writer w.*{complaint}"):
        WriterChain.from_conf(Writing(tmp_path, name, parameters).conf)


def test_the_shipped_file_names_every_writer() -> None:
    conf = Configuration.load([], overrides={"plugin.includes": PLUGINS})
    names = {
        item.extension.implementation.class_name.rpartition(".")[2]
        for item in configured_writers(conf).values()
    }
    assert names == {
        "SolrIndexWriter",
        "ElasticIndexWriter",
        "OpenSearch1xIndexWriter",
        "CloudSearchIndexWriter",
        "KafkaIndexWriter",
        "RabbitIndexWriter",
    }
    for name in (
        "indexer_solr_1",
        "indexer_elastic_1",
        "indexer_opensearch_1x_1",
        "indexer_rabbit_1",
    ):
        assert "password" not in str(
            configured_writers(conf)[name].make().describe().get("password", ("", ""))[1]
        )


# -- CloudSearch, against a stand-in ---------------------------------------------------------------

DOMAINS = """<DescribeDomainsResponse xmlns="http://cloudsearch.amazonaws.com/doc/2013-01-01/"><DescribeDomainsResult>
<DomainStatusList><member><DomainId>1/d</DomainId><DomainName>pages</DomainName><RequiresIndexDocuments>false
</RequiresIndexDocuments><DocService><Endpoint>{endpoint}</Endpoint></DocService></member></DomainStatusList>
</DescribeDomainsResult></DescribeDomainsResponse>"""
FIELDS = """<DescribeIndexFieldsResponse xmlns="http://cloudsearch.amazonaws.com/doc/2013-01-01/">
<DescribeIndexFieldsResult><IndexFields><member><Options><IndexFieldName>title</IndexFieldName><IndexFieldType>text
</IndexFieldType></Options></member></IndexFields></DescribeIndexFieldsResult></DescribeIndexFieldsResponse>"""


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials, where AWS's tools look for them."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.usefixtures("aws")
def test_cloudsearch_gets_signed_batches(tmp_path: Path) -> None:
    uploads = [Answer(503)]

    def answer(asked: Asked) -> Answer:
        if b"DescribeDomains" in asked.body:
            return Answer(body=DOMAINS.format(endpoint=endpoint).encode())
        if b"DescribeIndexFields" in asked.body:
            return Answer(body=FIELDS.encode())
        return (
            uploads.pop()
            if uploads
            else Answer(body={"status": "success", "adds": 2, "deletes": 1})
        )

    with SearchServerStub(answer) as server:
        endpoint = f"http://127.0.0.1:{server.port}"
        parameters = {
            "endpoint": endpoint,
            "config.endpoint": endpoint,
            "region": "eu-west-1",
            "batch.maxSize": "3",
        }
        writing = Writing(tmp_path, CLOUDSEARCH, parameters)
        writing.run("a", "-b", "c")
        again, batch = (json.loads(body) for body in server.bodies("/2013-01-01/documents/batch"))
        assert again == batch
        names = {key: hashlib.sha512(key.encode()).hexdigest() for key in "abc"}
        assert batch == [
            {"type": "add", "id": names["a"], "fields": {"title": "title of a"}},
            {"type": "delete", "id": names["b"]},
            {"type": "add", "id": names["c"], "fields": {"title": "title of c"}},
        ]
        assert writing.waits == [0.1]
        assert "eu-west-1/cloudsearch/aws4_request" in server.asked[-1].headers["authorization"]


@pytest.mark.usefixtures("aws")
def test_cloudsearch_has_no_such_domain(tmp_path: Path) -> None:
    with SearchServerStub(
        lambda asked: Answer(body=DOMAINS.format(endpoint="other").encode())
    ) as server:
        here = f"http://127.0.0.1:{server.port}"
        parameters = {"endpoint": "search.example", "config.endpoint": here, "region": "eu-west-1"}
        with pytest.raises(IndexWriterError, match=r"no domain with the endpoint search\.example"):
            Writing(tmp_path, CLOUDSEARCH, parameters).run("a")


def test_cloudsearch_into_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the service: all fields, with names that it takes; what is too large is refused."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    documents = Documents(pl.Series(["a", "b"]))
    documents.add("Meta.Tag-X", pl.Series(["x\ufffe😀", "y" * 1_048_576]))
    writing = Writing(tmp_path, CLOUDSEARCH, {"batch.dump": "true"})
    writing.send(documents, [])
    [file] = tmp_path.glob("CloudSearch_*.json")
    [operation] = json.loads(file.read_bytes())
    assert operation["fields"] == {"meta_tag_x": "x😀"}
    assert writing.refused == 1
