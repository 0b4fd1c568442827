"""The same questions to the JDK and to us: java.net.URL, java.net.URI, java.util.regex, on
thousands of odd inputs.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from minutch.errors import ConfigError, UrlError
from minutch.urls.javaregex import JavaRegex
from minutch.urls.parts import parse
from minutch.urls.uri import parse_uri
from tests.urls.strategies import PIECES
from tests.urls.test_javaregex import FINDS, REFUSED
from tests.urls.test_resolve import BASES

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK on this machine"),
]

ORACLE = Path(__file__).parent / "java" / "UrlOracle.java"
NOT_NUTCHS = re.compile(r"\s*(url:)?(mailto|jar|jrt|jmod):", re.IGNORECASE)
"""Schemes that the bare JDK knows and Nutch doesn't, and jar, whose fragments keep blanks there."""


def write(text: str | None) -> str:
    if text is None:
        return "!null"
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [units[i] << 8 | units[i + 1] for i in range(0, len(units), 2)]
    return "".join(chr(c) if 32 < c < 127 and c != 92 else f"\\u{c:04x}" for c in codes)


def ask(question: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """The JDK's answers."""
    lines = "".join("\t".join(map(write, row)) + "\n" for row in rows)
    command = ["java", "-Xshare:auto", str(ORACLE), question]
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, encoding="ascii", check=True
    )
    return done.stdout.splitlines()


def differences(
    question: str, rows: Sequence[tuple[str, ...]], answer: Callable[..., str]
) -> list[tuple[tuple[str, ...], str, str]]:
    """Rows that we answer otherwise than the JDK: the row, its answer, ours."""
    wrong = []
    for row, theirs in zip(rows, ask(question, rows), strict=True):
        try:
            ours = answer(*row)
        except (UrlError, ConfigError):
            ours = "!"
        if ours != theirs:
            wrong.append((row, theirs, ours))
    return wrong


def odd_urls(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    starts = ("http://", "https://", "http:", "file:", "ftp://h", "", "//", "url:http://")
    texts = (
        chance.choice(starts) + "".join(chance.choices(PIECES, k=chance.randrange(8)))
        for _ in range(count)
    )
    return [text for text in texts if not NOT_NUTCHS.match(text)]


def one_url(text: str) -> str:
    url = parse(text)
    fields = (
        url.protocol,
        url.user_info,
        url.host,
        str(url.port),
        url.authority,
        url.path,
        url.query,
        url.ref,
    )
    return "\t".join(map(write, (*fields, str(url))))


def test_urls() -> None:
    assert differences("url", [(text,) for text in odd_urls(6000, 1)], one_url) == []


def test_relative_urls() -> None:
    chance = random.Random(2)
    rows = [(chance.choice(BASES), text) for text in odd_urls(6000, 3)]
    assert (
        differences("resolve", rows, lambda base, text: write(str(parse(text, parse(base))))) == []
    )


def test_uris() -> None:
    def one_uri(text: str) -> str:
        uri = parse_uri(text)
        return f"{write(uri.host)}\t{'!null' if uri.opaque is not None else write(uri.path)}"

    assert differences("uri", [(text,) for text in odd_urls(6000, 4)], one_uri) == []


def test_regular_expressions() -> None:
    rows = [(pattern, text) for pattern, text, _ in FINDS] + [(pattern, "a") for pattern in REFUSED]
    assert (
        differences(
            "find", rows, lambda pattern, text: str(JavaRegex(pattern).search(text)).lower()
        )
        == []
    )
