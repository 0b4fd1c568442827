"""README, minutch/docs and docstrings: short, complete, and what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

from minutch.commands import flow, pages
from minutch.conf import Configuration
from minutch.inspect.query.crawl import CrawlFolder
from minutch.plugin.chains import URLFilters
from tests.support.docpages import DOCS, PAGES, text, write_files
from tests.support.examples import tabled
from tests.support.golden import PROJECT

CONTRIBUTING = (PROJECT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
DESIGN = (PROJECT / "minutch" / "DESIGN.md").read_text(encoding="utf-8")
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
REASONS = "\n".join(path.read_text(encoding="utf-8") for path in DECISIONS)
ALL = "\n".join([*map(text, PAGES), CONTRIBUTING, DESIGN, REASONS])

_EXAMPLES = """
    a__b code.py ftn ftt ftx io.compression.codec.snappy.buffersize io.seqfile.compress.blocksize
    java.util.Properties lodash.debounce
    my-plugins/urlfilter-short/short.py possibl possibli possibly selectors.py shop.py
    short_line_length
    urlStreamHandler
"""
EXAMPLES = set(_EXAMPLES.split())
"""Names of nothing here: examples, and what is others'."""


def test_pages_are_those_of_help() -> None:
    assert sorted(pages.TOPICS) == sorted(set(PAGES) - {"README"})


def test_the_readme_is_short_and_leads_to_every_page() -> None:
    assert len(text("README").splitlines()) <= 150
    assert re.findall(
        r"^\| \[(\w+)\]\(minutch/docs/\1\.md\)", text("README"), re.MULTILINE
    ) == list(pages.TOPICS)


@tabled("topic", pages.TOPICS)
def test_a_page_has_its_name_its_purpose_in_a_sentence_and_at_most_300_lines(topic: str) -> None:
    lines = text(topic).splitlines()
    assert lines[0].lower() == f"# {topic}"
    assert re.fullmatch(r"[A-Z][^.]{10,130}\.", pages.purpose(topic))
    assert len(lines) <= 300


@tabled("page", [*PAGES.values(), *DECISIONS])
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_decisions_are_in_their_index() -> None:
    index = DOCS / "decisions" / "README.md"
    linked = re.findall(
        r"^\| .* \| \[(\w+)\]\(\1\.md\) \|$", index.read_text("utf-8"), re.MULTILINE
    )
    assert sorted(linked) == sorted(path.stem for path in DECISIONS if path != index)


def test_the_table_of_commands() -> None:
    rows = re.findall(
        r"^\| `([\w-]+)` \| (.*?) ?\| (.*?) ?\| (.*?) \|$", text("crawling"), re.MULTILINE
    )
    commands = [(c.name, c.reads, c.writes, c.help) for c in flow.commands().values()]
    missing = [f"| `{c[0]}` | {c[1]} | {c[2]} | {c[3]} |" for c in commands if c not in rows]
    assert missing == [], "rows that the table in docs/crawling.md lacks, in the order of `flow`"
    assert rows == commands


def test_the_tables_of_sql() -> None:
    """Each table of a crawl has a row in docs/sql, with its columns in their order."""
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", text("sql"), re.MULTILINE))
    stated = {name: re.sub(r" \([^)]*\)", "", row).split(", ") for name, row in rows.items()}
    tables = CrawlFolder(Path("nowhere")).tables.values()
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
            r"(?<![\w/.-])((?:bin|conf|minutch|tests|plugins|\.github|\.ci)/[\w./-]*\w)(?![*\w])",
            ALL,
        )
    )
    assert len(names) > 20
    assert sorted(name for name in names if not (PROJECT / name).exists()) == []


def places() -> set[str]:
    """Every file and folder of the tree by each end of its path, modules also without `.py`."""
    folders = ("minutch", "plugins", "tests", "bin", "conf", ".github", ".ci")
    ends = set()
    for path in (path for folder in folders for path in (PROJECT / folder).rglob("*")):
        parts = path.relative_to(PROJECT).parts
        for start in range(len(parts) if "__pycache__" not in parts else 0):
            end = "/".join(parts[start:])
            ends |= {end, end.removesuffix(".py")}
    return ends


def prose_and_words() -> tuple[dict[str, str], set[str]]:
    """What docs, docstrings and comments say, by file, and every word of the code itself."""
    prose = {
        "docs": re.sub(r"^```.*?^```", "", ALL.replace(text("changes"), ""), flags=re.M | re.S)
    }
    words = set(re.findall(r"[\w.]+", (PROJECT / "conf/nutch-default.xml").read_text("utf-8")))
    for folder in ("minutch", "plugins", "tests"):
        for path in (PROJECT / folder).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            said = [*re.findall(r'"""(.*?)"""', source, re.DOTALL), *re.findall(r"# .*", source)]
            prose[path.relative_to(PROJECT).as_posix()] = "\n".join(said)
            code = re.sub(r"# .*", "", re.sub(r'""".*?"""', "", source, flags=re.DOTALL))
            words.update(re.findall(r"\w+", code), path.with_suffix("").parts)
    return prose, words


def is_there(name: str, known: set[str], words: set[str]) -> bool:
    """Whether a dotted name is one of a module, or of something that a module may have."""
    if name in words:  # a property
        return True
    module = name
    while module.replace(".", "/") not in known and "." in module:
        module = module.rpartition(".")[0]
    rest = name.removeprefix(module).split(".")[1:]
    return words.issuperset(rest) and ("." in module or len(rest) < 2)


def test_what_docs_and_docstrings_name_is_there() -> None:
    """Modules by path or dotted name, and in docstrings all names in backticks: who moves or
    renames something takes them along.

    A name counts as there if code anywhere has its words: that finds what is gone, not what is
    elsewhere. `changes` names what is gone.
    """
    prose, words = prose_and_words()
    known, gone = places(), []
    for where, said in prose.items():
        paths = re.findall(r"(?<![\w/.:-])(?:(?:[\w-]+/)+|(?<=`))[\w-]+\.py\b", said)
        gone += [(where, name) for name in paths if name not in known]
        dotted = re.findall(r"(?<![\w/.])(?:minutch|plugins|tests)(?:\.\w+)+", said)
        gone += [(where, name) for name in dotted if not is_there(name, known, words)]
        names = re.findall(r"`([A-Za-z_]\w*(?:\.\w+)*)(?:\(\))?`", said if where != "docs" else "")
        gone += [
            (where, name)
            for name in names
            if not (name in words or words.issuperset(name.split(".")))
        ]
    assert [found for found in gone if found[1] not in EXAMPLES] == []


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
        r"\.(?:\w+\.)?(?:xml|txt|py|md|json)$|^minutch\.(?:open|jobs|plugins|engine\b|parse\b|job\.|version\.|__)|^index\.md$"
    )
    assert len(names) > 60
    assert sorted(name for name in names if name not in known and not files.search(name)) == []
