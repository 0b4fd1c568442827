"""Configurations that are probably wrong: warnings and errors, and none for those that are
right.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import pytest

from minutch.commands import cli
from minutch.commands.declaration import FAILED
from minutch.conf import Configuration
from minutch.conf.check import DIVIDED, FLOATS, RENAMED, UNLISTED, check
from minutch.conf.properties import KINDS
from minutch.conf.settings import PROPERTY
from minutch.errors import ConfigError
from tests.conf.test_settings import declared
from tests.support.golden import PROJECT


def site(folder: Path, text: str) -> Path:
    path = folder / "nutch-site.xml"
    path.write_text(f"<configuration>\n{text}\n</configuration>")
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fetcher.server.dely", "is not a property of Nutch: did you mean fetcher.server.delay?"),
        ("http.agent.nam", "is not a property of Nutch: did you mean http.agent.name?"),
        ("plugin.include", "is not a property of Nutch: did you mean plugin.includes?"),
        ("generate.topn", "is not a property of Nutch: did you mean generate.topN?"),
        ("db.max.inlinks", "is not read any more, its successor is linkdb.max.inlinks"),
        (
            "fetcher.threads.per.host",
            "is not read any more, its successor is fetcher.threads.per.queue",
        ),
    ],
)
def test_names(name: str, message: str, caplog: pytest.LogCaptureFixture) -> None:
    check(Configuration.load([], overrides={name: "1"}))
    assert caplog.messages == [f"{name} (command line) {message}"]


@pytest.mark.parametrize(
    "name",
    [
        "my.word",
        "urlnormalizer.order.inject",
        "index.arbitrary.fieldName.7",
        "mapreduce.job.reduces",
        "x",
    ],
)
def test_names_of_ones_own(name: str, caplog: pytest.LogCaptureFixture) -> None:
    check(Configuration.load([], overrides={name: "1"}))
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("name", "value", "expected", "hint"),
    [
        ("fetcher.parse", "yes", "true or false", "did you mean true?"),
        ("fetcher.parse", "off", "true or false", "did you mean false?"),
        ("db.ignore.external.links", "maybe", "true or false", "the default is false"),
        ("fetcher.threads.fetch", "many", "a whole number", "the default is -1"),
        ("fetcher.threads.fetch", "2.5", "a whole number", "the default is -1"),
        ("fetcher.server.delay", "5s", "a number", "the default is 5.0"),
        ("generate.min.score", "high", "a number", "the default is 0"),
    ],
)
def test_types(name: str, value: str, expected: str, hint: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"^{name} \(command line\): expected {expected}, found '{value}'$"
    ) as caught:
        check(Configuration.load([], overrides={name: value}))
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fetcher.parse", "TRUE"),
        ("fetcher.parse", " "),
        ("fetcher.threads.fetch", "0x10"),
        ("fetcher.server.delay", "5"),
        ("fetcher.server.delay", "1.5f"),
        ("generate.min.score", "0.25"),
        ("fetcher.min.crawl.delay", "${fetcher.server.delay}"),
    ],
)
def test_right_types(name: str, value: str, caplog: pytest.LogCaptureFixture) -> None:
    check(Configuration.load([], overrides={name: value}))
    assert caplog.messages == []


def test_a_default_that_is_anothers_value_is_of_its_kind(caplog: pytest.LogCaptureFixture) -> None:
    """A delay of 1 s is no sign that another delay has to be a whole number."""
    for name in ("fetcher.min.crawl.delay", "fetcher.exceptions.per.queue.delay"):
        for value in ("0.5", "2", "1.5f", "1e1"):
            check(Configuration.load([], overrides={"fetcher.server.delay": "1", name: value}))
        with pytest.raises(ConfigError, match=rf"^{name} .*: expected a number, found 'soon'$"):
            check(Configuration.load([], overrides={"fetcher.server.delay": "1", name: "soon"}))
    assert caplog.messages == []


def test_links_of_parse_and_of_invertlinks(caplog: pytest.LogCaptureFixture) -> None:
    check(Configuration.load([], overrides={"db.ignore.internal.links": "true"}))
    assert caplog.messages == []
    check(Configuration.load([], overrides={"db.ignore.internal.links": "false"}))
    assert caplog.messages == [
        "db.ignore.internal.links (command line) is for parse alone; "
        "invertlinks reads linkdb.ignore.internal.links, which is true"
    ]


def test_what_is_shipped_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    check(Configuration.load([PROJECT / "conf"]))
    assert caplog.messages == []


def test_elements(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = site(
        tmp_path,
        "<propery><name>a</name><value>1</value></propery>\n<property><name>b</name><valu>1</valu><description>see"
        " <a>there</a></description></property>\n<property><value>1</value></property>",
    )
    conf = Configuration.load([tmp_path])
    assert "a" not in conf
    assert caplog.messages == [
        f"{path}, line 2: unknown element <propery> is left out: did you mean <property>?",
        f"{path}, line 3: unknown element <valu> is left out: did you mean <value>?",
        f"{path}, line 4: a property without a name is left out",
    ]


def test_through_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def minutch(folders: str) -> str:
        monkeypatch.setenv("NUTCH_CONF_DIR", folders)
        assert cli.main(["readdb", str(tmp_path / "nothing"), "-stats"]) == FAILED
        return capsys.readouterr().err

    site(tmp_path, "<property><name>fetcher.server.dely</name><value>1</value></property>")
    assert "did you mean fetcher.server.delay?" in minutch(str(tmp_path))
    said = minutch(f"{tmp_path}:{tmp_path / 'nowhere'}")
    assert said == f"error: NUTCH_CONF_DIR: no folder {tmp_path / 'nowhere'}\n"
    site(tmp_path, "<property><name>fetcher.parse</name><value>yes</value></property>")
    assert minutch(str(tmp_path)).splitlines() == [
        f"error: fetcher.parse ({tmp_path}/nutch-site.xml): expected true or false, found 'yes'",
        "hint: did you mean true?",
    ]


def test_the_lists_hold(caplog: pytest.LogCaptureFixture) -> None:
    defaults = Configuration.load([]).defaults
    assert set(DIVIDED) | set(DIVIDED.values()) <= set(defaults)
    assert not set(RENAMED) & set(defaults)
    assert not UNLISTED & set(defaults)
    assert {new for new in RENAMED.values() if new not in defaults and new not in UNLISTED} == set()


def test_defaults_say_how_properties_are_read() -> None:
    """A property read as a fraction has a default with a point, or stands in FLOATS; a whole number
    has none.
    """
    conf = Configuration.load([])
    defaults, seen = conf.defaults, set()
    for found in declared().values():
        for item in fields(found):  # type: ignore[arg-type]
            name = item.metadata.get(PROPERTY)
            if name not in KINDS and item.type in {"int", "float"} and name is not None:
                with suppress(ConfigError):
                    item.metadata["read"](conf.with_values({name: "0.5"}))
                    seen.add(name)
    seen = {name for name in seen if defaults.get(name, "").lstrip("-").isdigit()}
    for path in [*(PROJECT / "minutch").rglob("*.py"), *(PROJECT / "plugins").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        if "get_float(" not in text and "get_double(" not in text:
            continue  # most modules, of which no tree has to be made
        for node in ast.walk(ast.parse(text)):
            if not (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args
            ):
                continue
            getter, first = node.func.attr, node.args[0]
            if getter not in ("get_float", "get_double") or not isinstance(first, ast.Constant):
                continue
            name = str(first.value)
            if defaults.get(name, "").lstrip("-").isdigit():
                seen.add(name)
    assert seen == FLOATS
