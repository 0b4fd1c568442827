"""The chain of writers: batches, patience, refusals, failures; mappings and exchanges on the
way.
"""

from __future__ import annotations

import logging
from pathlib import Path

import polars as pl
import pytest

from minutch.conf import Configuration
from minutch.cycle.index.writers import (
    NO_WRITER,
    REFUSED,
    Encoders,
    WriterChain,
    configured_writers,
)
from minutch.errors import ConfigError, IndexWriterError
from minutch.plugin.documents import Documents

PLUGIN = """<plugin id="indexer-script" name="x" version="1">
  <requires><import plugin="nutch-extensionpoints"/></requires>
  <extension id="x" point="org.apache.nutch.indexer.IndexWriter">
    <implementation id="org.example.ScriptWriter" class="script:ScriptWriter"/>
  </extension>
</plugin>"""
MODULE = '''
from pathlib import Path
from minutch.errors import IndexBusyError, IndexWriterError
from minutch.plugin.points import IndexWriter, Refused

class ScriptWriter(IndexWriter):
    """Writes what it is asked to do into a file, and misbehaves as its parameters say."""

    def configure(self, parameters):
        self.path = Path(parameters["path"])
        self.busy = parameters.get_int("busy", 0)
        self.wait = parameters.get_float("wait", -1)
        self.half = parameters.get_boolean("half", False)
        self.refused = parameters.get_strings("refuse")
        self.fails = parameters.get_strings("fail")
        self.batch_documents = parameters.get_int("batch", 1000)
        self.batch_bytes = parameters.get_int("bytes", 1 << 20)
        self.retries = 3

    def say(self, *words):
        with self.path.open("a") as file:
            print(*words, file=file)
        if words[0] in self.fails:
            raise IndexWriterError(f"{words[0]} fails")

    def open(self):
        self.say("open")

    def encode(self, doc):
        return ",".join(sorted(doc.fields)).encode()

    def write(self, actions):
        if self.busy:
            self.busy -= 1
            self.say("busy", len(actions))
            rest = actions[1:] if self.half else None
            wait = None if self.wait < 0 else self.wait
            raise IndexBusyError("too many", retry_after=wait, rest=rest)
        self.say("write", *(key if payload is not None else f"-{key}" for key, payload in actions))
        return [Refused(key, "no such field") for key, _ in actions if key in self.refused]

    def commit(self):
        self.say("commit")

    def close(self):
        self.say("close")

    def abort(self):
        self.say("abort")
'''


class Setup:
    """A configuration with scripted writers, and what they were asked to do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writers: list[str] = []
        self.waits: list[float] = []
        plugin = folder / "plugins" / "indexer_script"
        plugin.mkdir(parents=True)
        (plugin / "plugin.xml").write_text(PLUGIN)
        (plugin / "script.py").write_text(MODULE)

    def add(self, name: str, mapping: str = "", **parameters: object) -> None:
        values = {"path": self.folder / f"{name}.txt"} | parameters
        params = "".join(f'<param name="{key}" value="{value}"/>' for key, value in values.items())
        self.writers.append(
            f'<writer id="{name}"'
            f' class="org.example.ScriptWriter"><parameters>{params}</parameters>{mapping}</writer>'
        )

    def conf(self, exchanges: str = "", **properties: str) -> Configuration:
        (self.folder / "index-writers.xml").write_text(
            f"<writers>{''.join(self.writers)}</writers>"
        )
        (self.folder / "exchanges.xml").write_text(f"<exchanges>{exchanges}</exchanges>")
        shipped = Configuration.load([]).get("plugin.folders") or "plugins"
        values = {
            "plugin.includes": "indexer-script|exchange-jexl",
            "plugin.folders": f"{self.folder / 'plugins'},{shipped}",
        }
        return Configuration.load([self.folder], overrides=values | properties)

    def chain(self, **properties: str) -> WriterChain:
        return WriterChain.from_conf(self.conf(**properties), sleep=self.waits.append)

    def said(self, name: str) -> list[str]:
        return (self.folder / f"{name}.txt").read_text().splitlines()


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def actions(*keys: str) -> pl.DataFrame:
    """Documents, deletions with a dash before them."""
    payloads = [None if key.startswith("-") else b"doc" for key in keys]
    return pl.DataFrame(
        {
            "key": [key.removeprefix("-") for key in keys],
            "payload": pl.Series(payloads, dtype=pl.Binary),
        }
    )


def run(chain: WriterChain, frame: pl.DataFrame, *, commit: bool = True) -> None:
    with chain:
        chain.open()
        chain.write(dict.fromkeys(chain.names, frame))
        chain.finish(commit=commit)


def test_batches_go_out_in_order(setup: Setup) -> None:
    setup.add("few", batch=2)
    setup.add("bytes", bytes=9)
    run(setup.chain(), actions("a", "-b", "c", "d", "e"))
    assert setup.said("few") == ["open", "write a -b", "write c d", "write e", "commit", "close"]
    assert setup.said("bytes") == ["open", "write a -b c", "write d e", "commit", "close"]


def test_no_commit(setup: Setup) -> None:
    setup.add("w")
    run(setup.chain(), actions("a"), commit=False)
    assert setup.said("w") == ["open", "write a", "close"]


def test_deletions_go_to_every_writer(setup: Setup) -> None:
    setup.add("one")
    setup.add("two")
    with setup.chain() as chain:
        chain.open()
        chain.delete(["x", "y"])
        chain.finish()
    assert setup.said("one") == setup.said("two") == ["open", "write -x -y", "commit", "close"]


def test_a_busy_writer_is_asked_again_after_longer_and_longer_pauses(setup: Setup) -> None:
    setup.add("w", busy=3)
    run(setup.chain(), actions("a", "b"))
    assert setup.said("w") == ["open", *["busy 2"] * 3, "write a b", "commit", "close"]
    assert setup.waits == [0.1, 0.2, 0.4]


def test_it_says_how_long(setup: Setup) -> None:
    setup.add("w", busy=2, wait=7)
    run(setup.chain(), actions("a"))
    assert setup.waits == [7.0, 7.0]


def test_only_the_rest_of_a_batch_is_sent_again(setup: Setup) -> None:
    setup.add("w", busy=2, half="true")
    run(setup.chain(), actions("a", "b", "c"))
    assert setup.said("w") == ["open", "busy 3", "busy 2", "write c", "commit", "close"]


def test_patience_ends(setup: Setup) -> None:
    setup.add("before")
    setup.add("w", busy=9)
    with pytest.raises(IndexWriterError, match="index writer w: too many"):
        run(setup.chain(), actions("a"))
    assert setup.said("w") == ["open", *["busy 1"] * 4, "abort"]
    assert setup.said("before") == ["open", "write a", "abort"]


@pytest.mark.parametrize(("step", "seen"), [("open", 0), ("write", 1), ("commit", 2), ("close", 3)])
def test_a_writer_that_fails_ends_the_job(setup: Setup, step: str, seen: int) -> None:
    setup.add("w", fail=step)
    with pytest.raises(IndexWriterError, match=f"index writer w: {step} fails"):
        run(setup.chain(), actions("a"))
    done = ["open", "write a", "commit", "close"][: seen + 1]
    assert setup.said("w") == (done if step == "close" else [*done, "abort"])


def test_nothing_is_committed_where_another_writer_fails(
    setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    setup.add("good", batch=1)
    setup.add("bad", fail="write")
    with pytest.raises(IndexWriterError), caplog.at_level(logging.WARNING):
        run(setup.chain(), actions("a"))
    assert setup.said("good") == ["open", "write a", "abort"]
    assert "Index writer good had taken 1 action; nothing is committed" in caplog.text


def test_refused_documents_are_counted_and_named(
    setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    setup.add("w", refuse="b,d", batch=3)
    chain = setup.chain()
    with caplog.at_level(logging.WARNING):
        run(chain, actions("a", "b", "c", "d"))
    assert setup.said("w") == ["open", "write a b c", "write d", "commit", "close"]
    assert chain.counters == {REFUSED: 2}
    assert "Index writer w: b: refused: no such field" in caplog.text


def test_too_many_refused_documents_end_the_job(setup: Setup) -> None:
    setup.add("w", refuse="b,d", batch=1)
    run(setup.chain(**{"minutch.index.max.refused": "2"}), actions("a", "b"))
    with pytest.raises(
        IndexWriterError, match="2 documents refused, the last one for: no such field"
    ):
        run(setup.chain(**{"minutch.index.max.refused": "1"}), actions("a", "b", "c", "d"))
    assert setup.said("w")[-1] == "abort"


def test_what_is_wrong_in_the_files(setup: Setup) -> None:
    conf = setup.conf()
    (setup.folder / "index-writers.xml").write_text("<writers>\n<writer>")
    with pytest.raises(ConfigError, match=r"index-writers\.xml, line 2"):
        configured_writers(conf)
    with pytest.raises(ConfigError, match="nosuch: no such file"):
        configured_writers(setup.conf(**{"indexer.indexwriters.file": "nosuch"}))
    setup.add("w", batch="many")
    with pytest.raises(
        ConfigError, match="writer w: parameter batch: expected a whole number, found 'many'"
    ):
        setup.chain()


def test_writers_of_plugins_that_are_not_active_do_nothing(setup: Setup) -> None:
    setup.writers.append(
        '<writer id="solr" class="org.apache.nutch.indexwriter.solr.SolrIndexWriter"/>'
    )
    assert configured_writers(setup.conf()) == {}
    assert setup.chain().describe() == "No IndexWriters activated - check your configuration"


# -- on the way to the writers ---------------------------------------------------------------------


def documents() -> Documents:
    found = Documents(pl.Series(["http://a.org/", "http://b.org/"]))
    found.add("id", found.keys)
    found.add("host", pl.Series(["a.org", "b.org"]))
    found.add("title", pl.Series(["A", None], dtype=pl.String))
    return found


def test_each_writer_gets_its_mapping(setup: Setup) -> None:
    setup.add("plain")
    mapping = (
        '<mapping><copy><field source="title" dest="search, name"/></copy><rename><field'
        ' source="host" dest="site"/></rename><remove><field source="id"/></remove></mapping>'
    )
    setup.add("mapped", mapping)
    found = documents()
    encoded, _ = Encoders.from_conf(setup.conf()).encode(found, ["http://aa.org/"])
    assert encoded["plain"].rows() == [
        ("http://a.org/", b"host,id,title"),
        ("http://aa.org/", None),
        ("http://b.org/", b"host,id"),
    ]
    assert encoded["mapped"]["payload"].to_list() == [b"name,search,site,title", None, b"site"]
    assert found.names() == ["id", "host", "title"]


EXCHANGE = (
    '<exchange id="{0}" class="org.apache.nutch.exchange.jexl.JexlExchange"><writers><writer'
    ' id="{0}"/></writers><params><param name="expr" value="{1}"/></params></exchange>'
)
DEFAULT = (
    '<exchange id="default" class="default"><writers><writer'
    ' id="rest"/></writers><params/></exchange>'
)


def routed(setup: Setup, exchanges: str) -> tuple[dict[str, list[str]], int]:
    for name in ("a", "b", "rest"):
        setup.add(name)
    encoded, counters = Encoders.from_conf(setup.conf(exchanges)).encode(documents(), [])
    return {name: frame["key"].to_list() for name, frame in encoded.items()}, counters.get(
        NO_WRITER, 0
    )


def test_exchanges(setup: Setup) -> None:
    """Two of one class are told apart, unlike in Nutch."""
    first = EXCHANGE.format("a", "doc.getFieldValue('host') == 'a.org'")
    second = EXCHANGE.format("b", "doc.getField('id').getValues().size() == 7")
    found, lost = routed(setup, first + second + DEFAULT)
    assert (found, lost) == ({"a": ["http://a.org/"], "b": [], "rest": ["http://b.org/"]}, 0)


def test_documents_that_match_nothing_are_counted(setup: Setup) -> None:
    found, lost = routed(setup, EXCHANGE.format("a", "doc.host == 'a.org'"))
    assert (found, lost) == ({"a": ["http://a.org/"], "b": [], "rest": []}, 1)


def test_a_wrong_expression(setup: Setup) -> None:
    with pytest.raises(ConfigError, match=r"exchanges\.xml, exchange a: "):
        routed(setup, EXCHANGE.format("a", "doc.host =="))
