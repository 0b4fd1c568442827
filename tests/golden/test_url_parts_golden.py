"""java.net.URL, java.net.URI, URLUtil, TableUtil: tables/urlparts.jsonl, resolve.jsonl,
pairs.jsonl, every row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from minutch.urls.domains import (
    choose_representative,
    domain_name,
)
from minutch.urls.parts import host_of, parse
from minutch.urls.resolve import resolve, resolver
from minutch.urls.uri import parse_uri
from tests.support.golden import lacks_host, needs_golden
from tests.support.golden_tables import answer, rows, suffix_list

pytestmark = needs_golden

COLUMNS: dict[str, Callable[[str], Any]] = {
    "protocol": lambda url: parse(url).protocol,
    "host": lambda url: parse(url).host,
    "port": lambda url: str(parse(url).port),
    "path": lambda url: parse(url).path,
    "file": lambda url: parse(url).file,
    "query": lambda url: parse(url).query,
    "ref": lambda url: parse(url).ref,
    "userInfo": lambda url: parse(url).user_info,
    "authority": lambda url: parse(url).authority,
    "toString": lambda url: str(parse(url)),
    "defaultPort": lambda url: str(parse(url).default_port),
    "URLUtil.getHost": host_of,
    "URLUtil.getDomainName": domain_name,
    "URI": lambda url: str(parse_uri(url)),
    "URI.host": lambda url: parse_uri(url).host,
}
MALFORMED = "!MalformedURLException"
NOT_USED = {
    "URLUtil.getDomainSuffix",
    "URLUtil.getTopLevelDomainName",
    "URLUtil.getPage",
    "URLUtil.toASCII",
    "URLUtil.toUNICODE",
    "URLUtil.getHostSegments",
    "TableUtil.reverseUrl",
}
"""Functions of Nutch's that nothing of ours has a use for."""
CATCHES = {"URLUtil.getProtocol": lambda url: parse(url).protocol}
"""Nutch's method catches the exception and gives null."""


@pytest.fixture(autouse=True)
def _suffix_list() -> Iterator[None]:
    with suffix_list():
        yield


def resolve_slowly(base: str, target: str) -> str:
    return resolver(base).resolve_slowly(target)


def new_url(base: str, target: str) -> str:
    return str(parse(target, parse(base)))


def test_every_part_of_every_url() -> None:
    table = rows("urlparts.jsonl.gz")
    wrong: Counter[str] = Counter()
    for row in table:
        for column, expected in row.items():
            if column in COLUMNS:
                error = (
                    "!URISyntaxException" if column.startswith("URI") else "!MalformedURLException"
                )
                wrong[column] += answer(COLUMNS[column], row["url"], error=error) != expected
            elif column in CATCHES:
                found = answer(CATCHES[column], row["url"])
                wrong[column] += (None if found and found.startswith("!") else found) != expected
    assert len(table) >= 580
    assert set(table[0]) - {"url"} == COLUMNS.keys() | CATCHES.keys() | NOT_USED
    assert +wrong == Counter()


def resolved(row: dict[str, Any]) -> Any:
    """Nutch's answer; but what lacks its host is no URL, neither as a base nor as a target."""
    if lacks_host(row["base"]) or lacks_host(row["resolveURL"]):
        return MALFORMED
    return row["resolveURL"]


@needs_golden("tables/resolve.jsonl")
def test_every_resolved_target() -> None:
    table = rows("resolve.jsonl")
    wrong = [row for row in table if answer(resolve, row["base"], row["target"]) != resolved(row)]
    assert len(table) >= 820
    assert wrong == []


@needs_golden("tables/resolve.jsonl")
def test_every_target_the_slow_way() -> None:
    wrong = [
        row
        for row in rows("resolve.jsonl")
        if answer(resolve_slowly, row["base"], row["target"]) != resolved(row)
        or answer(new_url, row["base"], row["target"]) != row["newURL"]
    ]
    assert wrong == []


@needs_golden("tables/pairs.jsonl")
def test_every_pair() -> None:
    table = rows("pairs.jsonl")
    wrong = []
    for row in table:
        a, b = row["a"], row["b"]
        found = (
            choose_representative(a, b, True),
            choose_representative(a, b, False),
        )
        if found != (row["chooseRepr-temp"], row["chooseRepr-perm"]):
            wrong.append((row, found))
    assert len(table) >= 800
    assert wrong == []
