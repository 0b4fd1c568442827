"""README and minutch/docs: short, complete, and what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minutch.commands import flow, pages
from minutch.conf import Configuration
from minutch.inspect.query.crawl import Crawl
from minutch.plugin.chains import URLFilters
from tests.support.docpages import PAGES, text, write_files
from tests.support.golden import PROJECT

CONTRIBUTING = (PROJECT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
ALL = "\n".join([*map(text, PAGES), CONTRIBUTING])


def test_pages_are_those_of_help() -> None:
    assert sorted(pages.TOPICS) == sorted(set(PAGES) - {"README"})


def test_the_readme_is_short_and_leads_to_every_page() -> None:
    assert len(text("README").splitlines()) <= 150
    assert re.findall(
        r"^\| \[(\w+)\]\(minutch/docs/\1\.md\)", text("README"), re.MULTILINE
    ) == list(pages.TOPICS)


@pytest.mark.parametrize("topic", pages.TOPICS)
def test_a_page_has_its_name_its_purpose_in_a_sentence_and_at_most_300_lines(topic: str) -> None:
    lines = text(topic).splitlines()
    assert lines[0].lower() == f"# {topic}"
    assert re.fullmatch(r"[A-Z][^.]{10,130}\.", pages.purpose(topic))
    assert len(lines) <= 300


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text(page)):
        assert (PAGES[page].parent / target).exists(), target


def test_the_table_of_commands() -> None:
    rows = re.findall(
        r"^\| `([\w-]+)` \| (.*?) ?\| (.*?) ?\| (.*?) \|$", text("crawling"), re.MULTILINE
    )
    commands = [(c.name, c.reads, c.writes, c.help) for c in flow.commands().values()]
    missing = [f"| `{c[0]}` | {c[1]} | {c[2]} | {c[3]} |" for c in commands if c not in rows]
    assert missing == [], "rows that the table in docs/crawling.md lacks; `flow` has their order"
    assert rows == commands


def test_the_tables_of_sql() -> None:
    """Each table of a crawl has a row in docs/sql, with its columns in their order."""
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", text("sql"), re.MULTILINE))
    stated = {name: re.sub(r" \([^)]*\)", "", row).split(", ") for name, row in rows.items()}
    tables = Crawl(Path("nowhere")).tables.values()
    columns = {table.name: list(table.columns) for table in tables}
    assert {name: stated[name] for name in columns} == columns, "docs/sql and the tables differ"


def test_the_glossary() -> None:
    """At most 40 words, each once."""
    glossary = CONTRIBUTING.partition("\n## Words\n")[2].partition("\n## ")[0]
    words = re.findall(r"\*\*([\w ]+)\*\*", glossary)
    assert 30 <= len(words) <= 40
    assert len(set(words)) == len(words)


def test_the_example_plugin(tmp_path: Path) -> None:
    write_files("plugins", tmp_path)
    files = [path for path in (tmp_path / "my-plugins").rglob("*") if path.is_file()]
    assert sum(len(path.read_text().splitlines()) for path in files) <= 20
    conf = Configuration.load(
        [],
        overrides={
            "plugin.folders": str(tmp_path / "my-plugins"),
            "plugin.includes": "urlfilter-short",
        },
    )
    filters = URLFilters(conf)
    assert filters.filter("https://www.example.org/") == "https://www.example.org/"
    assert filters.filter("https://www.example.org/" + "a" * 80) is None


def test_the_scripts_and_files_they_name_are_there() -> None:
    """Files of a crawl's own conf/ are the reader's; they may be among the shipped ones."""
    names = set(
        re.findall(
            r"(?<![\w/.-])((?:bin|conf|minutch|tests|plugins|\.github|\.ci)/[\w./-]*\w)", ALL
        )
    )
    assert len(names) > 20
    assert sorted(name for name in names if not (PROJECT / name).exists()) == []


def test_benchmarks_and_modules_they_name_are_there() -> None:
    for name in set(re.findall(r"\b(tests(?:\.\w+)+)", ALL)):
        path = PROJECT / name.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), name


def test_properties_they_name_exist() -> None:
    known = (PROJECT / "conf" / "nutch-default.xml").read_text(encoding="utf-8")
    known += (PROJECT / "conf" / "index-writers.xml").read_text(encoding="utf-8")
    groups = (
        r"arc|archive|db|fetcher|generate|hostdb|http|index|indexer|indexingfilter|interactiveselenium|lang|link|linkdb"
        r"|linkrank|minutch|naivebayes|nodedumper|page|parser|partition|plugin|rabbitmq|scoring|selenium|sitemap|store|tika"
        r"|tls|urlfilter|urlmeta|warc"
    )
    today = ALL.replace(text("changes"), "")  # which names what is gone, too
    names = set(re.findall(rf"`-?-?(?:D )?'?((?:{groups})\.[\w.]+\w)(?![\w./*(])", today))
    places = {name: PROJECT / name.replace(".", "/") for name in names}
    names = {
        name for name, at in places.items() if not (at.is_dir() or at.with_suffix(".py").exists())
    }
    files = re.compile(
        r"\.(?:\w+\.)?(?:xml|txt|py|md|json)$|^minutch\.(?:open|jobs|engine\b|parse\b|__)|^index\.md$"
    )
    assert len(names) > 60
    assert sorted(name for name in names if name not in known and not files.search(name)) == []
