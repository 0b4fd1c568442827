"""Configuration files from anywhere: an error of ours or a configuration, in bounded time and
memory.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.errors import MinutchError
from tests.support.examples import examples

WHOLE = b"""<?xml version="1.0"?><!DOCTYPE configuration [<!ENTITY a "b">]>
<configuration><property><name>a.b</name><value>${c}&#x41;&lt;</value><final>true</final></property>
<property name="c" value="d"/><include href="none.xml"><fallback/></include></configuration>"""
PIECES = [
    b"<!ENTITY x SYSTEM 'file:///etc/passwd'>",
    b"&x;",
    b"<![CDATA[",
    b"\x00",
    b"\xff\xfe",
    b"<property>",
    b"</",
    b"${a.b}",
]
LONGEST = 10.0
MOST_MEMORY = 64 << 20


def load(tmp_path: Path, data: bytes) -> Configuration | None:
    """The configuration in a file; None if it is refused."""
    path = tmp_path / "hostile.xml"
    path.write_bytes(data)
    try:
        conf = Configuration.load([], extra=[path])
        for name in ("a.b", "c", "a"):
            conf.get(name)
    except MinutchError:
        return None
    return conf


@settings(deadline=None, max_examples=examples(60))
@given(st.binary(max_size=300))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    load(tmp_path_factory.mktemp("conf"), data)


def test_damaged_files(tmp_path: Path) -> None:
    rng = random.Random(11)
    for _ in range(150):
        data = bytearray(WHOLE)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data))
            if rng.random() < 0.5:
                data[at:at] = rng.choice(PIECES)
            else:
                del data[at : at + rng.randrange(30)]
        load(tmp_path, bytes(data))


@pytest.mark.parametrize("levels", [10, 30])
def test_entities_do_not_multiply(tmp_path: Path, levels: int) -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, levels))
    value = f"<property><name>a.b</name><value>&e{levels - 1};</value></property>"
    data = f'<!DOCTYPE c [<!ENTITY e0 "ha">{entities}]><configuration>{value}</configuration>'
    tracemalloc.start()
    began = time.monotonic()
    conf = load(tmp_path, data.encode())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert conf is None or len(conf.get("a.b") or "") < MOST_MEMORY
    assert peak < MOST_MEMORY
    assert time.monotonic() - began < LONGEST


def test_entities_read_no_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    data = f'<!DOCTYPE c [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]><configuration>'
    conf = load(
        tmp_path,
        f"{data}<property><name>a.b</name><value>&x;</value></property></configuration>".encode(),
    )
    assert conf is None or "secret" not in (conf.get("a.b") or "")


def test_variables_do_not_multiply(tmp_path: Path) -> None:
    values = [
        f"<property><name>v{n}</name><value>{f'${{v{n + 1}}}' * 10}</value></property>"
        for n in range(12)
    ]
    values.append("<property><name>v12</name><value>haha</value></property>")
    values.append("<property><name>a.b</name><value>${v0}</value></property>")
    conf = load(tmp_path, f"<configuration>{''.join(values)}</configuration>".encode())
    assert conf is None or len(conf.get("a.b") or "") < MOST_MEMORY
