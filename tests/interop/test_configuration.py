"""The same configuration files read by Hadoop's Configuration and by ours."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from xml.sax.saxutils import escape

import pytest

from minutch.conf import Configuration
from minutch.conf.sources import read_properties
from minutch.errors import ConfigError
from tests.interop.harness import Harness, read_records, write_records
from tests.support.golden import PROJECT

pytestmark = pytest.mark.jvm

PIECES = (
    *(
        "${a}",
        "${b}",
        "${c1}",
        "${a${b}}",
        "${",
        "}",
        "$",
        "${ a}",
        "${none}",
        "${a b}",
        "{a}",
        "\\",
    ),
    *(
        "true",
        "FALSE",
        "yes",
        "1",
        "-1",
        "+2",
        "0x1F",
        "-0xff",
        "0x",
        "1.5",
        "1e3",
        ".5f",
        "2d",
        "NaN",
        "Infinity",
    ),
    *(
        "99999999999",
        "1e60",
        "0x1p3",
        " ",
        "\t",
        "\n",
        ",",
        ", ",
        ",,",
        "x",
        "ü",
        "漢",
        "&",
        "<",
        "\u00a0",
        "\u3000",
    ),
)
NAMES = ("a", "b", "c1", "d.e", "X", "1", "ü")
GETTERS = ("get", "int", "long", "float", "double", "boolean", "strings", "trimmed")


def a_value(random: Random) -> str:
    return "".join(random.choice(PIECES) for _ in range(random.choice((0, 1, 1, 1, 2, 3, 5))))


def a_file(random: Random) -> str:
    """Makes properties with repeats, finals, empty values, attributes instead of elements, nested
    configurations.
    """
    items = []
    for _ in range(random.randint(0, 12)):
        name, value = random.choice(NAMES), escape(a_value(random))
        final = random.choice(
            ("", "", "<final>true</final>", "<final>false</final>", "<final> true</final>")
        )
        item = f"<property><name>{name}</name><value>{value}</value>{final}</property>"
        shapes = (item, item, item, f"<property><name> {name} </name>{final}</property>")
        nested = f"<configuration>{item}</configuration>"
        items.append(
            random.choice((*shapes, nested, f'<property name="{name}" value="attribute"/>'))
        )
    return (
        f"<?xml version='1.0' encoding='UTF-8'?>\n<configuration>{''.join(items)}</configuration>"
    )


ASK: dict[str, Callable[[Configuration, str], str]] = {
    "get": lambda conf, name: "null" if (value := conf.get(name)) is None else f"={value}",
    "int": lambda conf, name: str(conf.get_int(name, -7)),
    "long": lambda conf, name: str(conf.get_long(name, -7)),
    "float": lambda conf, name: str(
        struct.unpack(">i", struct.pack(">f", conf.get_float(name, -7.0)))[0]
    ),
    "double": lambda conf, name: str(
        struct.unpack(">q", struct.pack(">d", conf.get_double(name, -7.0)))[0]
    ),
    "boolean": lambda conf, name: (
        f"{conf.get_boolean(name, True)} {conf.get_boolean(name, False)}".lower()
    ),
    "strings": lambda conf, name: "|".join(conf.get_strings(name)),
    "trimmed": lambda conf, name: "|".join(conf.get_trimmed_strings(name)),
}


def ours(conf: Configuration, getter: str, name: str) -> str:
    try:
        return ASK[getter](conf, name)
    except ConfigError:
        return "error"


def test_random_files(hadoop: Harness, tmp_path: Path) -> None:
    random = Random(20)
    questions = [(getter, name) for getter in GETTERS for name in (*NAMES, "none")]
    asked = write_records(tmp_path / "questions", [(g.encode(), n.encode()) for g, n in questions])
    cases: list[list[Path]] = []
    for case in range(300):
        files = [tmp_path / f"{case}-{number}.xml" for number in range(random.randint(1, 3))]
        for path in files:
            path.write_text(a_file(random), encoding="utf-8")
        cases.append(files)
    hadoop.run(
        [
            ["configuration", asked, tmp_path / f"answers-{i}", *files]
            for i, files in enumerate(cases)
        ]
    )
    different = []
    for i, files in enumerate(cases):
        conf = Configuration()
        for path in files:
            _read(conf, path)
        answers = [answer.decode() for (answer,) in read_records(tmp_path / f"answers-{i}")]
        for (getter, name), theirs in zip(questions, answers, strict=True):
            mine = ours(conf, getter, name)
            if mine != theirs:
                different.append((i, getter, name, conf.raw(name), mine, theirs))
    assert different == []


def _read(conf: Configuration, path: Path) -> None:
    for item in read_properties(path):
        conf._put(item, str(path))


def test_our_defaults_as_hadoop_reads_them(hadoop: Harness, tmp_path: Path) -> None:
    path = PROJECT / "conf" / "nutch-default.xml"
    conf = Configuration()
    _read(conf, path)
    names = list(conf)
    asked = write_records(tmp_path / "questions", [(b"get", name.encode()) for name in names])
    hadoop.run([["configuration", asked, tmp_path / "answers", path]])
    answers = [answer.decode() for (answer,) in read_records(tmp_path / "answers")]
    assert dict(zip(names, answers, strict=True)) == {name: f"={conf.get(name)}" for name in names}
