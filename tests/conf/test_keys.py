"""Properties: those in the sources are in conf/nutch-default.xml, and those marked as inert are in
no source.
"""

from __future__ import annotations

import ast
import csv
import re
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

from minutch.conf import Configuration
from minutch.conf.properties import INERT
from minutch.version import __version__
from tests.conf.tested import is_set
from tests.support.golden import PROJECT, SHARED

LISTS = {"properties.py"}
DEFAULTS = PROJECT / "conf" / "nutch-default.xml"
PROPERTIES = SHARED / "nutch" / "properties.tsv"
CHANGED = {
    "fetcher.queue.depth.multiplier",
    "fetcher.threads.fetch",
    "http.agent.version",
    "http.tls.certificates.check",
    "plugin.includes",
    "selenium.driver",
    "selenium.grid.driver",
    "webdriver.chrome.driver",
}
"""Defaults that differ from Nutch's, on purpose (see the head of nutch-default.xml)."""

_READ = re.compile(
    r"(?:(?<!parameters)\.(?:get|get_[a-z_]+|raw)|\bprop)\(\s*\"([A-Za-z][\w-]*(?:\.[\w-]+)+)\""
)
_WORD = re.compile(r"[\w.-]+")


@cache
def sources() -> str:
    """All Python of minutch and its plugins, without the lists of inert properties and of kinds of
    values.
    """
    return "\n".join(
        path.read_text(encoding="utf-8") for path in source_files() if path.name not in LISTS
    )


def source_files() -> list[Path]:
    """The modules of minutch and its plugins."""
    return sorted(path for top in ("minutch", "plugins") for path in (PROJECT / top).rglob("*.py"))


@cache
def strings() -> frozenset[str]:
    """Every name-like string constant in the sources."""
    return frozenset(re.findall(r"[\"']([A-Za-z][\w.-]*)[\"']", sources()))


@cache
def made_up() -> tuple[re.Pattern[str], ...]:
    """Names that the sources put together: `f"http.agent.{part}"` as a pattern."""
    texts = re.findall(r"f\"([a-z][\w-]*\.[\w.-]*\{[\w{}.-]*)\"", sources())
    return tuple(
        re.compile(re.sub(r"\\{.*?\\}", r"[\\w-]+", re.escape(text))) for text in sorted(set(texts))
    )


def is_named(name: str) -> bool:
    """Tells whether a source names the property, as it is or put together."""
    return name in strings() or any(pattern.fullmatch(name) for pattern in made_up())


def declared() -> dict[str, str]:
    """Property → default of nutch-default.xml."""
    root = ElementTree.parse(DEFAULTS).getroot()
    return {p.findtext("name", ""): p.findtext("value", "") for p in root.iter("property")}


def test_each_property_is_described_once() -> None:
    root = ElementTree.parse(DEFAULTS).getroot()
    names = [p.findtext("name", "") for p in root.iter("property")]
    assert len(names) == len(set(names))
    assert [
        p.findtext("name")
        for p in root.iter("property")
        if not (p.findtext("description") or "").strip()
    ] == []


def test_properties_read_in_the_sources_are_in_the_file() -> None:
    known = set(_WORD.findall(DEFAULTS.read_text(encoding="utf-8")))
    missing = set(_READ.findall(sources())) - known
    assert missing == set(), "properties that conf/nutch-default.xml does not describe"


def test_a_default_stands_once() -> None:
    """Who reads a property that has a default in the file gives none of his own; nobody gives two
    to one that has none there.
    """
    defaults, given = declared(), defaultdict[str, set[str]](set)
    for path in source_files():
        text = path.read_text(encoding="utf-8")
        if not re.search(r"conf\s*\.get", text):
            continue  # most modules, of which no tree has to be made
        for call in ast.walk(ast.parse(text)):
            match call:
                case ast.Call(func=ast.Attribute(value=owner, attr=getter), args=[name, default]):
                    whose = ast.unparse(owner)
                    if getter.startswith("get") and whose.endswith("conf"):
                        key = _evaluated(name, path)
                        given[key].add(_evaluated(default, path))
                case ast.Call(func=ast.Name("prop"), args=[name, *_], keywords=keywords):
                    for default in (word.value for word in keywords if word.arg == "default"):
                        given[_evaluated(name, path)].add(_evaluated(default, path))
    of_no_plugins = {"plugin.includes"}  # a configuration without any file has none
    assert len(given) > 20
    assert {name for name in given if defaults.get(name)} == of_no_plugins
    assert {name: values for name, values in given.items() if "." in name and len(values) > 1} == {}


def _evaluated(expression: ast.expr, path: Path) -> str:
    """A constant of a module, whoever has defined it; else the expression as it is."""
    names = ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")
    text = ast.unparse(expression)
    try:
        return str(eval(text, dict(vars(import_module(names)))))
    except (NameError, AttributeError):
        return text


def test_inert_properties_are_those_that_no_source_names() -> None:
    unnamed = {name for name in declared() if not is_named(name)}
    assert unnamed - set(INERT) == set(), "described, but read nowhere: INERT lacks them"
    assert set(INERT) - unnamed == set(), "read by now: they leave INERT"


def test_each_inert_property_has_a_reason() -> None:
    for name, reason in INERT.items():
        assert len(reason.split()) > 3, name


@pytest.mark.skipif(
    not PROPERTIES.is_file(), reason="the list of Nutch's properties is not beside this checkout"
)
def test_every_other_property_is_set_by_a_test() -> None:
    """To another value than its default; the test that sets it is there to see what it does."""
    defaults = declared()
    acting = [name for name in _nutchs() if name not in INERT]
    assert len(acting) > 300
    assert [name for name in acting if not is_set(name, defaults[name])] == []


@pytest.mark.skipif(
    not PROPERTIES.is_file(), reason="the list of Nutch's properties is not beside this checkout"
)
def test_all_of_nutchs_properties_have_nutchs_defaults() -> None:
    theirs, defaults = _nutchs(), declared()
    assert len(theirs) == 324
    assert {name for name, value in theirs.items() if defaults.get(name) != value} == CHANGED


def _nutchs() -> dict[str, str]:
    """Nutch's properties and their defaults."""
    with PROPERTIES.open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return {row[1]: row[2] for row in rows}


def test_hidden_properties_are_described() -> None:
    path = SHARED / "nutch" / "properties-hidden.md"
    if not path.is_file():
        pytest.skip("the list of hidden properties is not beside this checkout")
    text = DEFAULTS.read_text(encoding="utf-8")
    names = re.findall(
        r"^- `([a-z][\w.]+)(?:=[^`]*)?`", path.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(names) > 25
    assert [name for name in names if name not in text] == []


def test_hidden_properties_have_no_default() -> None:
    conf = Configuration.load([])
    assert all(
        name not in conf
        for name in ("generate.topN", "injector.current.time", "mapreduce.job.reduces")
    )


def test_the_agents_version_is_this_one() -> None:
    assert Configuration.load([]).get("http.agent.version") == f"minutch-{__version__}"
