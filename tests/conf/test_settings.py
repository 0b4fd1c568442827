"""Settings are read by what their fields declare, and each property that one declares is there."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path

import pytest

from minutch.conf import Configuration, Settings, made_by, prop
from minutch.conf.settings import PROPERTY, at_least, trimmed
from minutch.errors import ConfigError
from tests.conf.test_keys import DEFAULTS, source_files
from tests.support.golden import PROJECT


@dataclass(frozen=True)
class Part(Settings):
    compress: bool = prop("http.partial.truncated")


@dataclass(frozen=True, slots=True)
class Sample(Settings):
    name: str
    depth: int = prop("fetcher.follow.outlinks.depth", divided=1)
    jitter: float = prop("fetcher.exceptions.per.queue.jitter", Configuration.get_double)
    mode: str = prop("fetcher.queue.mode")
    agent: str = prop("http.agent.name", trimmed)
    hosts: tuple[str, ...] = prop("http.robots.agents")
    processes: int = prop("minutch.fetch.processes", at_least(2))
    split: int = prop("mapreduce.input.fileinputformat.split.maxsize", default=7)
    part: Part = made_by(Part.from_conf)
    places: int = 3


def declared() -> dict[str, type[Settings]]:
    """The classes of settings of minutch and its plugins, by their full name."""
    for path in source_files():
        if re.search(r"^class \w+\(Settings\):", path.read_text(encoding="utf-8"), re.MULTILINE):
            import_module(".".join(path.relative_to(PROJECT).with_suffix("").parts))
    return {
        f"{found.__module__}.{found.__name__}": found
        for found in Settings.__subclasses__()
        if found.__module__ != __name__ and hasattr(found, "__dataclass_fields__")
    }


def test_a_setting_is_read_as_its_annotation_says() -> None:
    values = {
        "fetcher.follow.outlinks.depth": " 0x10 ",
        "http.agent.name": " me ",
        "http.robots.agents": "a, b",
        "http.partial.truncated": "TRUE",
        "minutch.fetch.processes": "1",
    }
    found = Sample.from_conf(Configuration().with_values(values), name="x", places=4)
    assert found == Sample("x", 16, 0.1, "byHost", "me", ("a", "b"), 2, 7, Part(True), 4)
    assert [dict(item.metadata).get("divided") for item in fields(Sample)][:2] == [None, 1]


def test_what_is_given_is_not_read() -> None:
    conf = Configuration().with_values({"fetcher.follow.outlinks.depth": "deep"})
    assert Sample.from_conf(conf, name="x", depth=2).depth == 2


def test_without_a_configuration_the_shipped_defaults_hold() -> None:
    assert Sample("x") == Sample.from_conf(Configuration.load([]), name="x")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("fetcher.follow.outlinks.depth", "deep", "a 32-bit number"),
        ("fetcher.exceptions.per.queue.jitter", "much", "a number"),
        ("fetcher.queue.mode", "byPort", "byHost, byDomain or byIP"),
        ("minutch.fetch.processes", "few", "a 32-bit number"),
    ],
)
def test_an_error_names_property_origin_and_what_is_allowed(
    name: str, value: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "nutch-site.xml").write_text(
        f"<configuration><property><name>{name}</name><value>{value}</value></property></configuration>"
    )
    with pytest.raises(ConfigError) as caught:
        Sample.from_conf(Configuration.load([tmp_path]), name="x")
    said = f"{name} ({tmp_path}/nutch-site.xml): expected {expected}, found {value!r}"
    assert str(caught.value) == said


def test_declared_properties_are_in_the_file_and_their_defaults_can_be_read() -> None:
    conf, known = Configuration.load([]), set(re.findall(r"[\w.-]+", DEFAULTS.read_text("utf-8")))
    classes = declared()
    assert len(classes) > 3
    plain = {"bool": (bool,), "int": (int,), "float": (float, int), "str": (str,)}
    for where, found in classes.items():
        for item in fields(found):  # type: ignore[arg-type]
            if PROPERTY in item.metadata:
                assert item.metadata[PROPERTY] in known, f"{where}.{item.name}"
                value = item.metadata["read"](conf)
                assert type(value) in plain.get(str(item.type), (type(value),)), item
