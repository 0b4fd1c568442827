"""Hadoop's configuration rules. The table `AS_HADOOP` is what org.apache.hadoop.conf.Configuration
3.4 answers.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from minutch.conf import HOME, Configuration
from minutch.conf.sources import read_properties
from minutch.errors import ConfigError
from tests.support.examples import tabled

FIRST = """<?xml version="1.0"?>
<configuration xmlns:xi="http://www.w3.org/2001/XInclude">
<property><name>twice</name><value>first</value></property>
<property><name>twice</name><value></value></property>
<property><name>empty</name><value></value></property>
<property><name>no value</name></property>
<property><name>blank</name><value> </value></property>
<property><name>x</name><value>X</value></property>
<property><name>yX</name><value>inner</value></property>
<property><name>self</name><value>a${self}</value></property>
<property><name>nested</name><value>${y${x}}</value></property>
<property><name>unbound</name><value>${x} ${nope} ${x}</value></property>
<property><name>several</name><value>${x} ${x} ${x}</value></property>
<property><name>with blank</name><value>${a b} ${} ${x</value></property>
<property>
  <name>environment</name>
  <value>${env.NONE:-one} ${env.NONE-two} ${env.HOME} ${env.EMPTY:-three}</value>
</property>
<property><name>unbound environment</name><value>${user.home} ${env.NONE}</value></property>
<property><name>fixed</name><value>stays</value><final>true</final></property>
<property><name>not fixed</name><value>stays not</value><final> true </final></property>
<property><name> spaced </name><value>s</value></property>
<property name="attribute" value="A" final="true"/>
<xi:include href="included.xml"/>
<xi:include href="missing.xml">
  <xi:fallback><property><name>fallback</name><value>used</value></property></xi:fallback>
</xi:include>
</configuration>
"""
SECOND = """<configuration>
<property><name>fixed</name><value>later</value></property>
<property><name>not fixed</name><value>later</value></property>
<property><name>attribute</name><value>later</value></property>
<property><name>x</name><value></value></property>
</configuration>
"""
INCLUDED = (
    "<configuration><property><name>included</name><value>I</value></property></configuration>"
)

AS_HADOOP = {
    "twice": "first",
    "empty": None,
    "no value": None,
    "blank": " ",
    "x": "X",
    "self": "a${self}",
    "nested": "inner",
    "unbound": "X ${nope} ${x}",
    "several": "X X X",
    "with blank": "${a b} ${} ${x",
    "environment": "one two /home/me three",
    "unbound environment": "/home/me ${env.NONE}",
    "fixed": "stays",
    "not fixed": "later",
    "spaced": "s",
    " spaced ": "s",
    "attribute": "A",
    "included": "I",
    "fallback": "used",
}


@pytest.fixture
def conf(tmp_path: Path) -> Configuration:
    """Two files over an empty home, with an environment."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "nutch-default.xml").write_text("<configuration/>")
    for name, text in (("first.xml", FIRST), ("second.xml", SECOND), ("included.xml", INCLUDED)):
        (tmp_path / name).write_text(text)
    return Configuration.load(
        [],
        extra=[tmp_path / "first.xml", tmp_path / "second.xml"],
        environment={"HOME": "/home/me", "EMPTY": ""},
        system={"user.home": "/home/me"},
        home=tmp_path,
    )


@pytest.mark.parametrize("name", AS_HADOOP)
def test_as_hadoop(conf: Configuration, name: str) -> None:
    assert conf.get(name) == AS_HADOOP[name]


def conf_of(**values: str) -> Configuration:
    return Configuration().with_values(values)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" 12 ", 12),
        ("0x1F", 31),
        ("-0x1F", -31),
        ("0x+2", 2),
        ("0x-2", -2),
        ("+5", 5),
        ("-2147483648", -(1 << 31)),
    ],
)
def test_int(text: str, value: int) -> None:
    assert conf_of(n=text).get_int("n") == value


@tabled("text", ["", "1.0", "0xFFFFFFFF", "2147483648", "1_000", "x", "--1", "-0x-1", "-0x+1", "٣"])
def test_no_int(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^n \(program\): expected a 32-bit number"):
        conf_of(n=text).get_int("n", 1)


def test_long_has_64_bits() -> None:
    conf = conf_of(n="0x7FFFFFFFFFFFFFFF", over="9223372036854775808")
    assert conf.get_long("n") == (1 << 63) - 1
    with pytest.raises(ConfigError, match="64-bit"):
        conf.get_long("over")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" 1.0f ", 1.0),
        (".5d", 0.5),
        ("0x1.8p1", 3.0),
        ("-0x1p9999f", float("-inf")),
        ("1e60", float("inf")),
        ("-1e60", float("-inf")),
        ("0.1", 0.10000000149011612),
    ],
)
def test_float_has_32_bits(text: str, value: float) -> None:
    assert conf_of(n=text).get_float("n") == value


def test_double_has_64_bits() -> None:
    assert conf_of(n="0.1").get_double("n") == 0.1
    assert conf_of(n="Infinity").get_double("n") == float("inf")
    assert str(conf_of(n="NaN").get_double("n")) == "nan"


@pytest.mark.parametrize("text", ["", "1,5", "1e", "inf", "nan", "1__0"])
def test_no_float(text: str) -> None:
    with pytest.raises(ConfigError, match="expected a number"):
        conf_of(n=text).get_float("n")


@pytest.mark.parametrize(
    ("text", "value"), [(" TRUE ", True), ("False", False), ("yes", None), ("", None), ("1", None)]
)
def test_boolean(text: str, value: bool | None) -> None:
    if value is None:
        with pytest.raises(ConfigError, match="n is neither true nor false, and has no default"):
            conf_of(n=text).get_boolean("n")
    else:
        assert conf_of(n=text).get_boolean("n") is value
    assert conf_of(n=text).get_boolean("n", True) is (value is not False)


@pytest.mark.parametrize(
    ("text", "value"),
    [("512m", 512 << 20), ("4g", 4 << 30), ("7", 7), (" 1 K ", 1024), ("2TB", 2 << 40)],
)
def test_size(text: str, value: int) -> None:
    assert conf_of(n=text).get_size("n") == value


def test_no_size() -> None:
    with pytest.raises(ConfigError, match="such as 512m"):
        conf_of(n="many").get_size("n")


def test_lists() -> None:
    conf = conf_of(n=" a , b,,c ,", commas=",", empty="")
    assert conf.get_strings("n") == [" a ", " b", "c "]
    assert conf.get_trimmed_strings("n") == ["a", "b", "", "c"]
    assert (
        conf.get_strings("commas")
        == conf.get_trimmed_strings("commas")
        == conf.get_trimmed_strings("empty")
        == []
    )
    assert conf.get_strings("none", ["d"]) == conf.get_trimmed_strings("none", ["d"]) == ["d"]


@pytest.mark.parametrize("kind", ["int", "long", "float", "double", "boolean", "size"])
def test_neither_a_value_nor_a_default(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"^n (is not set|is neither true nor false), and has no"):
        getattr(Configuration(), f"get_{kind}")("n")


def test_defaults_of_who_asks() -> None:
    conf = Configuration()
    assert conf.get("n", "d") == "d"
    assert (conf.get_int("n", 1), conf.get_long("n", 2), conf.get_size("n", 3)) == (1, 2, 3)
    assert conf.get_boolean("n", True)
    assert conf.get_float("n", 0.1) == 0.10000000149011612
    assert conf.get("n") is conf.get_trimmed("n") is None
    assert conf.get_text("n") == ""


def test_shipped_defaults() -> None:
    """Also where nothing was loaded, where a value is no value, and through variables."""
    for conf in (Configuration(), Configuration.load([])):
        assert conf.get_int("http.content.limit") == 1 << 20
        assert conf.get_float("fetcher.min.crawl.delay") == 5
        assert conf.get_word("fetcher.queue.mode") == "byHost"
        assert conf.get_text("http.agent.rotate.file") == "agents.txt"
        assert conf.get_trimmed_strings("plugin.folders") == ["plugins"]
        assert conf.with_values({"indexer.delete": "maybe"}).get_boolean("indexer.delete") is False
    assert conf_of(**{"fetcher.server.delay": "3"}).get_float("fetcher.min.crawl.delay") == 3


def test_a_loop_is_an_error() -> None:
    with pytest.raises(ConfigError, match="more than 20 variables"):
        conf_of(a="${b}x", b="${a}y").get("a")


def test_layers_of_files(tmp_path: Path) -> None:
    for folder, name, value in (
        ("a", "nutch-site.xml", "site of a"),
        ("b", "nutch-site.xml", "site of b"),
        ("b", "nutch-default.xml", "default"),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(
            f"<configuration><property><name>n</name><value>{value}</value></property>"
            f"<property><name>{folder} {name}</name><value>read</value></property></configuration>"
        )
    conf = Configuration.load([tmp_path / "a", tmp_path / "b"])
    assert conf.get("n") == "site of a"
    assert conf.source("n") == str(tmp_path / "a" / "nutch-site.xml")
    assert "b nutch-default.xml" in conf
    assert "b nutch-site.xml" not in conf
    assert conf.get("db.fetch.retry.max") == "3"
    assert Configuration.load([tmp_path / "a"], overrides={"n": "given"}).get("n") == "given"


def test_the_command_line_wins_over_final(tmp_path: Path) -> None:
    (tmp_path / "nutch-site.xml").write_text(
        "<configuration><property><name>n</name><value>1</value><final>true</final></property></configuration>"
    )
    conf = Configuration.load([tmp_path], overrides={"n": "2"})
    assert conf.get("n") == "2"
    assert conf.source("n") == "command line"


def test_old_names_of_hadoop() -> None:
    conf = conf_of(**{"mapred.reduce.tasks": "3"})
    assert conf.get_int("mapreduce.job.reduces") == conf.get_int("mapred.reduce.tasks") == 3


def test_frozen() -> None:
    conf = conf_of(n="1").freeze()
    with pytest.raises(ConfigError, match="frozen"):
        conf.set("n", "2")
    copy = conf.with_values({"n": "2"})
    copy.set("m", "3")
    assert (conf.get("n"), copy.get("n"), copy.get("m")) == ("1", "2", "3")


def test_a_copy_keeps_its_folders(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("+.")
    copy = pickle.loads(pickle.dumps(Configuration.load([tmp_path]).with_values({})))
    assert copy.read_resource("rules.txt") == "+."
    assert copy.home == HOME


def test_resources(tmp_path: Path) -> None:
    (tmp_path / "nutch-site.xml").write_text("<configuration/>")
    (tmp_path / "mine.txt").write_bytes(b"\xef\xbb\xbfmine\r\n")
    conf = Configuration.load([tmp_path])
    assert conf.resource("nutch-site.xml") == tmp_path / "nutch-site.xml"
    assert conf.resource("nutch-default.xml") == HOME / "conf" / "nutch-default.xml"
    assert conf.resource(str(tmp_path / "mine.txt")) == tmp_path / "mine.txt"
    assert conf.resource("none.txt") is None
    assert conf.read_resource("mine.txt") == "mine\n"
    assert Configuration().resource("nutch-default.xml") == HOME / "conf" / "nutch-default.xml"
    with pytest.raises(ConfigError, match=r"none\.txt: no such file in .*conf"):
        conf.read_resource("none.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<configuration>\n<property>\n</configuration>", "line 3: mismatched tag"),
        ("", "line 1: no element found"),
        (
            '<!DOCTYPE c [<!ENTITY a "aaaa">]>\n<configuration/>',
            "line 1: entity declarations are not allowed",
        ),
        (
            '<!DOCTYPE c [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n<configuration/>',
            "entity declarations",
        ),
        ("<configuration><property><name>a&b;</name></property></configuration>", "line 1: "),
    ],
)
def test_broken_xml_names_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.xml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        read_properties(path)
    assert str(caught.value).startswith(str(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.xml: can't be read"):
        read_properties(tmp_path / "gone.xml")


def test_a_doctype_is_harmless(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(
        '<?xml version="1.0"?><?xml-stylesheet href="configuration.xsl"?>\n'
        '<!DOCTYPE configuration SYSTEM "http://127.0.0.1:9/x.dtd">'
        "<configuration><property><name>a</name><value>1</value></property></configuration>"
    )
    (found,) = read_properties(path)
    assert (found.name, found.value) == ("a", "1")


def test_includes_take_no_network_and_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    head = '<configuration xmlns:xi="http://www.w3.org/2001/XInclude">'
    (tmp_path / "web.xml").write_text(
        f'{head}<xi:include href="http://127.0.0.1:9/a.xml"/></configuration>'
    )
    (tmp_path / "self.xml").write_text(f'{head}<xi:include href="self.xml"/></configuration>')
    assert read_properties(tmp_path / "web.xml") == []
    assert "local files only" in caplog.text
    with pytest.raises(ConfigError, match="nested includes"):
        read_properties(tmp_path / "self.xml")


def test_items_are_expanded_and_sorted() -> None:
    conf = conf_of(b="${a}", a="1")
    assert conf.items() == [("a", "1"), ("b", "1")]
    assert conf.raw("b") == "${a}"
    assert (len(conf), list(conf)) == (2, ["b", "a"])


def test_what_the_files_say_alone(tmp_path: Path) -> None:
    (tmp_path / "nutch-site.xml").write_text(
        "<configuration><property><name>a.b</name><value>site</value></property></configuration>"
    )
    conf = (
        Configuration.load([tmp_path], overrides={"a.b": "line", "c.d": "line"})
        .with_values({"e.f": "program"})
        .freeze()
    )
    files = conf.of_files()
    assert (files.get("a.b"), files.get("c.d"), files.get("e.f")) == ("site", None, None)
    assert files.source("a.b") == str(tmp_path / "nutch-site.xml")
    files.set("a.b", "new")
    assert conf.of_files().get("a.b") == "site" and conf.get("a.b") == "line"
