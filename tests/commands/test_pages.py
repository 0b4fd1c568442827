"""The docs in a terminal: which names show a page, and how it is laid out."""

from __future__ import annotations

import re

import pytest

from minutch.commands import cli, flow, pages
from tests.support.examples import tabled


def test_a_command_comes_before_a_page_of_its_name() -> None:
    assert pages.find("crawling") == pages.find("docs/crawling") == "crawling"
    assert pages.find("sql") is None
    assert pages.find("docs/sql") == "sql"
    assert pages.find("docs/crawl") is None
    assert [pages.find(name) for name in pages.names()] == list(pages.TOPICS)


def test_a_commands_help_names_the_page_about_it() -> None:
    assert pages.about("sql") == "docs/sql"
    assert pages.about("generate") == "crawling"
    assert pages.about("serve") == "indexing"
    assert pages.about("no-such-command") is None
    without = [name for name in flow.commands() if pages.about(name) is None]
    assert set(without) <= {"arc2segment"}, "no `sh` block of minutch/docs runs these commands"


@tabled("topic", pages.TOPICS)
def test_prose_and_tables_fit_80_columns(topic: str) -> None:
    lines = [line for line in pages.rendered(topic).splitlines() if not line.startswith("    ")]
    assert lines[1] == "=" * len(topic)
    wide = [line for line in lines if len(line) > 80 and not re.search(r"\S{30}", line)]
    # tables with long words are wider
    assert [line for line in wide if len(line) > 100 or "  " not in line] == []
    assert not any(re.match(r"[|#]|```", line) for line in lines)


def test_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "text", lambda topic: MARKDOWN)
    assert pages.rendered("any").split("\n") == SHOWN.split("\n")


MARKDOWN = """# Title

See [other](other.md) **now**.

- one
  more
- two

## Part

```sh
minutch help

minutch
```

| name | n |
|---|--:|
| a \\| b | 5 |
| c | 10 |

| | |
|---|---|
| left | right |
"""
SHOWN = """Title
=====

See other now.

- one more
- two

Part
----

    minutch help

    minutch

name    n
-----  --
a | b   5
c      10

left  right"""


def test_help_shows_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["help", "docs/sql"]) == 0
    assert capsys.readouterr().out.startswith("SQL\n===\n\nHow to ask a crawl any question")
    assert cli.main(["help", "sql"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("minutch sql: ")
    assert "\nMore:    minutch help docs/sql\n" in out


@tabled(
    ("command", "page"),
    [
        ("export", "archives"),
        ("export warc", "archives"),
        ("export edges", "docs/sql"),
        ("arc2segment", "archives"),
        ("fsck", "operating"),
        ("indexchecker", "indexing"),
        ("robotsparser", "docs/explain"),
        ("text", "maintext"),
        ("fetch", "crawling"),
        ("sql", "docs/sql"),
    ],
)
def test_help_of_a_command_names_the_page_that_documents_it(command: str, page: str) -> None:
    assert pages.about(command) == page


@tabled("command", flow.commands())
def test_the_page_about_a_command_speaks_of_it(command: str) -> None:
    page = pages.about(command)
    assert page is not None
    topic = pages.find(page)
    assert topic is not None
    assert re.search(rf"(`|\bminutch ){re.escape(command)}\b", pages.text(topic))


def test_near_names_are_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["help", "compatibilty"]) == flow.UNKNOWN
    assert (
        capsys.readouterr().err
        == "error: there is no command or page compatibilty\nhint: did you mean compatibility?\n"
    )
