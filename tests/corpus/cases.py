"""Reads the cases of the corpus."""

from __future__ import annotations

import gzip
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parent / "data"
PAGES: Final = "http://pages.example"


@dataclass(frozen=True)
class Answer:
    """What a server says."""

    status: int = 200
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""


@dataclass(frozen=True)
class Case:
    """One case: `kind` is page, robots or sitemap."""

    kind: str
    table: dict[str, Any]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """What it is about, unique in its kind."""
        return str(self.table["name"])

    @property
    def url(self) -> str:
        """Where it lies."""
        path = self.table.get("path", "/robots.txt" if self.kind == "robots" else "/sitemap.xml")
        return f"{PAGES}/d/{self.name}" if self.kind == "page" else f"{self.host}{path}"

    @property
    def host(self) -> str:
        """The origin of a robots.txt or sitemap."""
        return f"http://{self.name}.example"

    def answers(self) -> dict[str, Answer]:
        """What is served for it, by URL."""
        more = self.table.get("more", {})
        return {self.url: answer_of(self.table)} | {
            self.host + path: answer_of({"type": "application/xml", "body": body})
            for path, body in more.items()
        }


def answer_of(table: dict[str, Any]) -> Answer:
    """Returns the answer that a table describes."""
    body = (
        table["raw"].encode("latin-1")
        if "raw" in table
        else table.get("body", "").encode(table.get("in", "utf-8"))
    )
    body = (b"#" * 99 + b"\n") * (table.get("fill", 0) // 100) + body
    if table.get("gzip"):
        body = gzip.compress(body, mtime=0)
    headers = dict(table.get("headers", {}))
    if "type" in table:
        headers["Content-Type"] = table["type"]
    lines = [
        (name.encode(), value.encode("latin-1"))
        for name, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    return Answer(table.get("status", 200), lines, body)


@cache
def cases(kind: str) -> list[Case]:
    """Returns the cases of a kind, of all files."""
    return [
        Case(kind, table)
        for path in sorted(DATA.glob("*.toml"))
        for table in tomllib.loads(path.read_text(encoding="utf-8")).get(kind, [])
    ]
