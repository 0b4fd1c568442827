"""Plugins are active as configured, in order, and their classes can be made."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.commands import cli
from minutch.conf import Configuration
from minutch.errors import ConfigError, PluginError, UrlError
from minutch.job import JobContext
from minutch.plugin.chains import URLFilters
from minutch.plugin.points import POINTS, Protocol, URLFilter
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.plugin.repository import PluginRepository, plugin_folders
from minutch.urls import parts
from tests.plugin.places import configuration, write_plugin

IMPORT = "from minutch.plugin.points import URLFilter\n"
FILTER = """
from minutch.plugin.points import URLFilter

class A(URLFilter):
    def filter(self, url):
        return url + self.parameters.get("tail", "a")

class B(A):
    def filter(self, url):
        return url + "b"
"""


def active(folder: Path, includes: str = ".*", **more: str) -> list[str]:
    return list(PluginRepository(configuration(folder, includes, **more)).active)


def test_all_thirteen_points_are_declared() -> None:
    repository = PluginRepository(configuration(Path("/nonexistent"), "nutch-extensionpoints"))
    assert repository.points == set(POINTS)
    assert len(POINTS) == 13
    assert all(repository.extensions(point) == [] for point in POINTS)


def test_every_shipped_plugin_loads() -> None:
    repository = PluginRepository(configuration(Path("/nonexistent")))
    for point, base in POINTS.items():
        for extension in repository.extensions(point):
            assert issubclass(extension.load(), base), extension.id


def test_includes_and_excludes_match_the_whole_id(tmp_path: Path) -> None:
    for name in ("example-a", "example-ab", "my-example-a"):
        write_plugin(tmp_path, name, requires=())
    assert active(tmp_path, "example-a") == ["example-a"]
    assert active(tmp_path, "example-a.*", plugin__excludes="example-ab") == ["example-a"]
    assert active(tmp_path, "", plugin__excludes="x") == []


def test_requirements_are_activated(tmp_path: Path) -> None:
    write_plugin(tmp_path, "lib-x", requires=("lib-y",))
    write_plugin(tmp_path, "lib-y", requires=())
    write_plugin(tmp_path, "needs-x", requires=("lib-x",))
    assert set(active(tmp_path, "needs-x")) == {"needs-x", "lib-x", "lib-y"}


def test_without_auto_activation_they_have_to_be_included(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_plugin(tmp_path, "lib-x", requires=())
    write_plugin(tmp_path, "needs-x", requires=("lib-x",))
    more = {"plugin__auto-activation": "false"}
    assert active(tmp_path, "needs-x", **more) == []
    assert "plugin needs-x requires lib-x, which is missing, the plugin is left out" in caplog.text
    assert set(active(tmp_path, "needs-x|lib-x", **more)) == {"needs-x", "lib-x"}


def test_a_circle_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_plugin(tmp_path, "a", requires=("b",))
    write_plugin(tmp_path, "b", requires=("a",))
    write_plugin(tmp_path, "c", requires=())
    assert active(tmp_path, "a|b|c") == ["c"]
    assert "circular requirement a → b → a" in caplog.text


def test_a_point_that_nobody_declares(tmp_path: Path) -> None:
    write_plugin(tmp_path, "x", classes={"X": "code:X"}, point="org.example.None")
    with pytest.raises(
        PluginError, match=r"plugin x: extension point org\.example\.None does not exist"
    ):
        active(tmp_path, "x")
    write_plugin(tmp_path, "alone", classes={"X": "code:X"}, requires=())
    with pytest.raises(PluginError, match="plugin alone: extension point"):
        active(tmp_path, "alone")


def test_a_point_of_a_users_own(tmp_path: Path) -> None:
    write_plugin(
        tmp_path,
        "x",
        FILTER,
        classes={"X": "code:A"},
        points=("org.example.Mine",),
        point="org.example.Mine",
    )
    repository = PluginRepository(configuration(tmp_path, "x"))
    assert [extension.id for extension in repository.extensions("org.example.Mine")] == ["X"]


def test_asking_for_a_point_that_is_not_there() -> None:
    with pytest.raises(PluginError, match="is nutch-extensionpoints included"):
        PluginRepository(configuration(Path("/nonexistent"), "nothing")).extensions(
            URLFilter.point_id
        )


def test_order_by_any_of_its_names(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_plugin(
        tmp_path,
        "one",
        FILTER,
        classes={"org.example.A": "code:A"},
        extra='nutch-class="org.example.JavaA"',
    )
    write_plugin(tmp_path, "two", FILTER, classes={"org.example.B": "code:B"})

    def order(text: str) -> list[str]:
        conf = configuration(tmp_path, "one|two", urlfilter__order=text)
        return [
            type(f).__name__ for f in PluginRepository(conf).ordered(URLFilter, "urlfilter.order")
        ]

    assert order("org.example.B org.example.A") == ["B", "A"]
    assert order("org.example.JavaA  org.example.B") == ["A", "B"]
    assert order("code:B code.A") == ["B", "A"]
    assert order("org.example.B") == ["B"]  # what an order doesn't name is not run
    assert sorted(order("")) == ["A", "B"]
    assert order("org.example.Other org.example.A") == ["A"]
    assert "urlfilter.order: org.example.Other is not in an active plugin" in caplog.text


def test_extensions_come_in_the_order_of_javas_hash_map(tmp_path: Path) -> None:
    names = ["example-a", "my-filter", "other-filter", "third", "lib-words"]
    for name in names:
        write_plugin(tmp_path, name, requires=())
    # what HashMap.keySet() of JDK 17 prints
    assert active(tmp_path, "|".join(names)) == [
        "other-filter",
        "third",
        "example-a",
        "lib-words",
        "my-filter",
    ]


def test_one_object_per_configuration(tmp_path: Path) -> None:
    write_plugin(tmp_path, "one", FILTER, classes={"A": "code:A"}, parameters={"tail": "!"})
    conf = configuration(tmp_path, "one")
    (extension,) = PluginRepository.of(conf).extensions(URLFilter.point_id)
    assert PluginRepository.of(conf) is PluginRepository.of(conf)
    assert not extension.is_instantiated
    made = extension.instance()
    assert extension.is_instantiated
    assert extension.instance() is made
    assert isinstance(made, URLFilter)
    assert made.conf is conf
    assert made.filter("x") == "x!"
    assert PluginRepository.of(configuration(tmp_path, "one")) is not PluginRepository.of(conf)


STAMP = """
from minutch.plugin.points import URLFilter

class Stamp(URLFilter):
    def __init__(self, conf, parameters):
        super().__init__(conf, parameters)
        self.started = self.clock.now()

    def filter(self, url):
        return f"{url}?{self.started}-{self.clock.now()}"
"""


def test_the_clock_of_a_job_reaches_its_plugins(tmp_path: Path) -> None:
    write_plugin(tmp_path, "stamp", STAMP, classes={"Stamp": "code:Stamp"})
    conf = configuration(tmp_path, "stamp").freeze()
    clock = FakeClock(1000)
    context = JobContext(conf, clock=clock)
    filters = URLFilters(context.conf)
    assert filters.filter("x") == "x?1000-1000"
    clock.advance(2)
    assert filters.filter("x") == "x?1000-3000"
    changed = context.conf.with_values({"some.property": "1"})
    assert URLFilters(changed).filter("x") == "x?3000-3000"


def test_a_repository_can_be_given_a_clock(tmp_path: Path) -> None:
    write_plugin(tmp_path, "stamp", STAMP, classes={"Stamp": "code:Stamp"})
    (stamp,) = PluginRepository(configuration(tmp_path, "stamp"), FakeClock(7)).ordered(
        URLFilter, "urlfilter.order"
    )
    assert stamp.filter("x") == "x?7-7"


def test_plugins_of_one_name_in_two_places_do_not_share_modules(tmp_path: Path) -> None:
    for place, tail in (("p", "1"), ("q", "2")):
        write_plugin(
            tmp_path / place, "one", FILTER.replace('"a"', f'"{tail}"'), classes={"A": "code:A"}
        )
    results = []
    for place in ("p", "q"):
        (extension,) = PluginRepository(configuration(tmp_path / place, "one")).extensions(
            URLFilter.point_id
        )
        instance = extension.instance()
        assert isinstance(instance, URLFilter)
        results.append(instance.filter("x"))
    assert results == ["x1", "x2"]


def test_a_later_folder_replaces(tmp_path: Path) -> None:
    first = write_plugin(tmp_path / "p", "one", requires=())
    second = write_plugin(tmp_path / "q", "one", requires=())
    both = configuration(tmp_path, plugin__folders=f"{tmp_path / 'p'},{tmp_path / 'q'}")
    assert PluginRepository(both).available["one"].folder == second
    assert first != second


def test_a_plugin_may_import_from_what_it_requires(tmp_path: Path) -> None:
    write_plugin(tmp_path, "lib-rules", "WORD = 'from the library'", requires=())
    write_plugin(
        tmp_path,
        "user",
        "from minutch.plugin.points import URLFilter\nfrom ..lib_rules.code import WORD\n"
        "class X(URLFilter):\n    def filter(self, url): return WORD\n",
        classes={"X": "code:X"},
        requires=("nutch-extensionpoints", "lib-rules"),
    )
    (made,) = PluginRepository(configuration(tmp_path, "user")).ordered(
        URLFilter, "urlfilter.order"
    )
    assert made.filter("") == "from the library"


def test_a_plugin_may_import_its_other_modules(tmp_path: Path) -> None:
    """Wherever its folder is: on no path that Python searches."""
    folder = write_plugin(
        tmp_path,
        "user",
        "from minutch.plugin.points import URLFilter\nfrom .words import WORD\n"
        "from .deep.more import MORE\n"
        "class X(URLFilter):\n    def filter(self, url): return WORD + MORE\n",
        classes={"X": "code:X"},
    )
    (folder / "words.py").write_text("WORD = 'beside'")
    (folder / "deep").mkdir()
    (folder / "deep" / "more.py").write_text("from ..words import WORD\nMORE = WORD.upper()")
    (made,) = PluginRepository(configuration(tmp_path, "user")).ordered(
        URLFilter, "urlfilter.order"
    )
    assert made.filter("") == "besideBESIDE"


@pytest.mark.parametrize(
    ("code", "path", "message"),
    [
        ("", "code:Gone", "can't be loaded: AttributeError"),
        ("", "gone:X", "can't be loaded: ModuleNotFoundError"),
        ("", "code.X", 'expected class="module:Class" in plugin.xml'),
        ("1 / 0", "code:X", "can't be loaded: ZeroDivisionError"),
        ("class X: pass", "code:X", r"is no URLFilter \(minutch\.plugin\.points\)"),
        ("X = len", "code:X", "is no URLFilter"),
        (f"{IMPORT}class X(URLFilter): pass", "code:X", r"has no method filter\(self, url\)"),
        (
            f"{IMPORT}class X(URLFilter):\n    def filtr(self, url): return url",
            "code:X",
            r"has no method filter\(self, url\)",
        ),
        (
            f"{IMPORT}class X(URLFilter):\n    def filter(self): return ''",
            "code:X",
            r"its method filter has to take \(self, url\)",
        ),
    ],
)
def test_a_broken_plugin_is_named(tmp_path: Path, code: str, path: str, message: str) -> None:
    write_plugin(tmp_path, "broken", code, classes={"X": path})
    with pytest.raises(PluginError, match=f"plugin broken.*{message}"):
        PluginRepository(configuration(tmp_path, "broken"))


def test_one_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    code = FILTER + "\n    def __init__(self, conf, parameters): raise ValueError('odd')\n"
    write_plugin(tmp_path, "broken", code, classes={"B": "code:B"})
    repository = PluginRepository(configuration(tmp_path, "broken"))
    with pytest.raises(PluginError, match=r"plugin broken.*can't be made: ValueError: odd"):
        repository.ordered(URLFilter, "urlfilter.order")


@pytest.mark.parametrize(
    ("point", "code", "message"),
    [
        (
            "scoring.ScoringFilter",
            "def injected_score(self, url, datum): pass",
            "has none of the methods of ScoringFilter: inject_score, ",
        ),
        (
            "scoring.ScoringFilter",
            "def inject_score(self, url): pass",
            r"its method inject_score has to take \(self, url, datum\)",
        ),
        (
            "protocol.Protocol",
            "def get_protocol_output(self, url, datum): pass\n"
            "    async def get_robot_rules(self, url, datum, robots_content): pass",
            "its method get_protocol_output has to be async",
        ),
    ],
)
def test_methods_that_would_never_be_called_or_fail(
    point: str, code: str, message: str, tmp_path: Path
) -> None:
    code = f"from minutch.plugin.points import *\nclass X({point.split('.')[1]}):\n    {code}\n"
    write_plugin(tmp_path, "x", code, classes={"X": "code:X"}, point=f"org.apache.nutch.{point}")
    with pytest.raises(PluginError, match=f"class code:X: {message}"):
        PluginRepository(configuration(tmp_path, "x"))


def test_every_shipped_plugin_is_what_its_point_wants() -> None:
    repository = PluginRepository(configuration(Path("/nonexistent")))
    for point in POINTS:
        for extension in repository.extensions(point):
            extension.check()


@pytest.mark.parametrize("point", ["parse.Parser", "parse.HtmlParseFilter", "net.URLFilter"])
def test_a_job_with_a_broken_plugin_ends_at_its_start_in_a_line(
    point: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_plugin(
        tmp_path / "mine", "x", "", classes={"X": "code:X"}, point=f"org.apache.nutch.{point}"
    )
    words = ["-D", "plugin.folders=mine", "-D", "plugin.includes=x", "-D", "http.agent.name=me"]
    assert cli.main(["crawl", *words, "http://127.0.0.1:9/", "crawl", "1"]) == 255
    lines = capsys.readouterr().err.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("error: "))
    said = " ".join(" ".join(lines[at:]).split())
    assert said.startswith(
        "error: plugin x (mine/x), class code:X: can't be loaded: AttributeError"
    )
    assert "Traceback" not in "".join(lines)


def test_the_scheme_of_a_protocol_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PROTOCOLS", parts.PROTOCOLS.copy())
    code = (
        "from minutch.plugin.points import Protocol\nclass X(Protocol):\n"
        "    async def get_protocol_output(self, url, datum): pass\n"
        "    async def get_robot_rules(self, url, datum, robots_content): pass\n"
    )
    write_plugin(
        tmp_path,
        "x",
        code,
        classes={"X": "code:X"},
        point=Protocol.point_id,
        parameters={"protocolName": "memo,https"},
    )
    with pytest.raises(UrlError, match="unknown protocol: memo"):
        parts.parse("memo://a/b")
    conf = configuration(tmp_path, "x")
    assert type(ProtocolFactory(conf).get_protocol("memo://a/b")).__name__ == "X"
    assert parts.PROTOCOLS["https"] == 443


def test_a_plugins_own_error_stays_what_it_is(tmp_path: Path) -> None:
    code = (
        "from minutch.errors import ConfigError\nfrom minutch.plugin.points import URLFilter\nclass"
        " X(URLFilter):\n    def __init__(self, conf, parameters): raise ConfigError('rules.txt,"
        " line 3: odd')\n    def filter(self, url): return url\n"
    )
    write_plugin(tmp_path, "strict", code, classes={"X": "code:X"})
    with pytest.raises(ConfigError, match=r"^rules\.txt, line 3: odd$"):
        PluginRepository(configuration(tmp_path, "strict")).ordered(URLFilter, "urlfilter.order")


def test_unreadable_and_java_plugins_are_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_plugin(tmp_path, "java", classes={"X": "org.example.X"}, requires=())
    (write_plugin(tmp_path, "bad", requires=()) / "plugin.xml").write_text("<plugin")
    (tmp_path / "no plugin").mkdir()
    with caplog.at_level(logging.INFO):
        assert "java" not in active(tmp_path)
    assert f"{tmp_path}: 1 plugin written in Java and not used" in caplog.text
    assert "bad/plugin.xml, line 1: " in caplog.text


def test_unknown_ids_are_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_plugin(tmp_path, "known", requires=())
    with caplog.at_level(logging.INFO):
        active(tmp_path, "known|never-(heard|seen)-of")
        active(tmp_path, "known|never-(heard|seen)-of")
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert lines == [
        ("WARNING", "plugin.includes: no plugin never-heard-of"),
        ("WARNING", "plugin.includes: no plugin never-seen-of"),
    ]


def test_misspelt_ids_are_told_apart_from_plugins_that_minutch_lacks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_plugin(tmp_path, "java", classes={"X": "org.example.X"}, requires=())
    conf = configuration(
        tmp_path,
        "urlfilter-regx|indexer-dumy|java|protocol-foo|lib-nekohtml",
        plugin__excludes="parse-htmll",
    )
    with caplog.at_level(logging.INFO):
        PluginRepository.of(conf)
    assert (
        "plugin.includes: plugins of Nutch that minutch does not have: protocol-foo, lib-nekohtml"
        in caplog.text
    )
    assert "plugin.includes: no plugin urlfilter-regx, did you mean urlfilter-regex" in caplog.text
    assert "plugin.includes: no plugin indexer-dumy, did you mean indexer-dummy" in caplog.text
    assert "plugin.excludes: no plugin parse-htmll, did you mean parse-html" in caplog.text


def test_the_shipped_defaults_have_no_misspelt_id(caplog: pytest.LogCaptureFixture) -> None:
    PluginRepository.of(Configuration.load([]))
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    "name", ["protocol-http", "protocol-okhttp", "protocol-httpclient", "protocol-(http|okhttp)"]
)
def test_every_http_client_of_nutchs_is_ours(name: str) -> None:
    conf = configuration(Path("/nonexistent"), name)
    repository = PluginRepository(conf)
    assert [e.id for e in repository.extensions(Protocol.point_id)] == [
        "org.apache.nutch.protocol.http.Http"
    ]
    assert "protocol-http" not in active(Path("/nonexistent"), name, plugin__excludes="protocol-.*")


def test_a_wrong_pattern(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"plugin\.includes \(program\): expected a regular expression"
    ):
        active(tmp_path, "a(")


def test_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    conf = configuration(tmp_path, plugin__folders="plugins, mine ,gone")
    shipped = conf.home / "plugins"
    assert plugin_folders(conf) == [shipped, Path("mine")]
    assert "plugin.folders: no folder gone" in caplog.text


@pytest.mark.parametrize("name", ["mine", "mine/a", "mine/a/module.py", "mine/link"])
@pytest.mark.parametrize("how", ["owned", "world"])
def test_anybodys_plugins_of_the_working_folder(
    name: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are run: who wants them has to name them by their whole path."""
    (tmp_path / "mine" / "a").mkdir(parents=True)
    (tmp_path / "mine" / "a" / "module.py").touch()
    (tmp_path / "elsewhere").touch()
    (tmp_path / "mine" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "mine" / "a" / "up").symlink_to(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    conf = configuration(tmp_path, plugin__folders="mine")
    assert plugin_folders(conf)[1:] == [Path("mine")]
    if how == "world":
        Path(name).chmod(Path(name).stat().st_mode | 0o002)
    elif os.getuid():
        pytest.skip("only root gives files away")
    else:
        os.chown(name, 65534, -1, follow_symlinks=name != "mine/link")
    with pytest.raises(ConfigError, match=rf"^\./{name} (is user 65534's|may be written)") as found:
        plugin_folders(conf)
    assert str(tmp_path / "mine") in found.value.hint
    named = configuration(tmp_path, plugin__folders=str(tmp_path / "mine"))
    assert plugin_folders(named)[1:] == [tmp_path / "mine"]
