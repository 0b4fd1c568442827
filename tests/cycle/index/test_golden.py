"""Every run of real Nutch's index and clean whose plugins are here: the same files, the same
counters.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from minutch.errors import ConfigError, StoreError, UsageError
from tests.cycle.index.commands import Golden
from tests.support.golden import GOLDEN, needs_golden

pytestmark = needs_golden(
    "commands/index", "commands/clean", "crawl-small/run-rich-r2/crawl/segments"
)

CASES = (
    "default-all",
    "default-basic",
    "rich-all",
    "rich-anchor",
    "rich-anchor-dedup",
    "rich-basic",
    "rich-basic-more-options",
    "rich-binary",
    "rich-binary-base64",
    "rich-cc",
    "rich-csv-options",
    "rich-csv-quoting",
    "rich-deletegone",
    "rich-dir-nolinkdb",
    "rich-dummy-nodelete",
    "rich-feed",
    "rich-filter",
    "rich-jexl",
    "rich-jexl-doc",
    "rich-jexl-false",
    "rich-jexl-simple",
    "rich-lang",
    "rich-links",
    "rich-links-host",
    "rich-mapping",
    "rich-metadata",
    "rich-metadata-sep",
    "rich-mimefilter",
    "rich-more",
    "rich-more-map",
    "rich-more-noparts",
    "rich-nocrawldb",
    "rich-none",
    "rich-normalize",
    "rich-nowriter",
    "rich-order",
    "rich-params",
    "rich-reltag",
    "rich-reparsed-all",
    "rich-reparsed-cc",
    "rich-reparsed-feed",
    "rich-reparsed-lang",
    "rich-reparsed-metadata",
    "rich-reparsed-metadata-sep",
    "rich-reparsed-more",
    "rich-reparsed-reltag",
    "rich-reparsed-robots-noindex",
    "rich-replace",
    "rich-robots-noindex",
    "rich-skip-notmodified",
    "rich-static",
    "rich-static-seps",
    "rich-subcollection",
    "rich-subcollection-ci",
    "rich-tika-more",
    "rich-tld",
    "rich-urlmeta",
)
"""The runs that are equal. The others have tests of their own below."""
FILES = ("csvindexwriter/nutch.csv", "deep/csv/nutch.csv", "dummy-index.txt")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that paths of writers are relative to."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parsed_again(folder: Path, parses: str, console: str) -> None:
    """The segments of the crawl with what other parsers made of them."""
    for number, segment in enumerate(
        sorted((GOLDEN / "crawl-small/run-rich-r2/crawl/segments").iterdir())
    ):
        again = GOLDEN / "commands/parse" / f"{parses}-{number}" / "segments" / segment.name
        if f"segments/{segment.name}" in console:
            shutil.copytree(again, folder / segment.name)
            for name in ("crawl_fetch", "content", "crawl_generate"):
                shutil.copytree(segment / name, folder / segment.name / name)


@pytest.mark.parametrize("name", CASES)
def test_index_writes_what_nutch_writes(name: str, here: Path) -> None:
    run = Golden("index", name)
    if "reparsed" in name or "tika" in name:
        parsed_again(here / "segments", "rich-tika" if "tika" in name else "rich-all", run.console)
    code, _, counters = run.run()
    assert code == run.exit_code
    for file in FILES:
        theirs, ours = run.folder / file, here / file
        assert theirs.exists() == ours.exists()
        if theirs.exists():
            assert ours.read_bytes() == theirs.read_bytes()
    assert run.counters.items() <= counters.items()
    more = {name for name, count in counters.items() if count and name not in run.counters}
    assert more <= {
        "skipped_not_fetched_total",
        "skipped_not_parsed_total",
        "skipped_by_url_filter_total",
    }


@pytest.mark.parametrize("name", ["rich-exchange", "rich-exchange-nosandbox"])
def test_an_exchange_matches_where_nutchs_never_does(name: str, here: Path) -> None:
    run = Golden("index", name)
    assert run.run()[0] == 0
    rows = (here / FILES[0]).read_bytes().decode().split("\r\n")[1:]
    assert {row.partition(",")[0].split("/")[2] for row in rows if row.startswith("http")} == {
        "127.0.0.1:8810"
    }
    others = (here / "dummy-index.txt").read_text().splitlines()
    nutchs = (run.folder / "dummy-index.txt").read_text().splitlines()
    assert others == [line for line in nutchs if "//127.0.0.1:" not in line]


def test_a_java_class_that_makes_fields() -> None:
    """Nutch goes on without the field, here as with any class that its reflection refuses."""
    with pytest.raises(ConfigError, match=r"java\.lang\.String .* Java classes can't be called"):
        Golden("index", "rich-arbitrary").run()


def test_nothing_to_index() -> None:
    with pytest.raises(UsageError, match="At least one segment is required!"):
        Golden("index", "rich-missing-segment").run()


@pytest.mark.parametrize("name", ["default", "rich", "rich-csv", "rich-nocommit", "rich-nodelete"])
def test_clean_deletes_what_nutch_deletes(name: str, here: Path) -> None:
    """In the order of the CrawlDb; Nutch's is that of its threads."""
    run = Golden("clean", name)
    code, _, counters = run.run()
    assert code == 0
    assert f"deleted a total of {counters['deleted_documents_total']} documents" in run.console
    for file in FILES:
        theirs, ours = run.folder / file, here / file
        assert theirs.exists() == ours.exists()
        if theirs.exists():
            assert sorted(ours.read_bytes().splitlines()) == sorted(
                theirs.read_bytes().splitlines()
            )
    if (here / "dummy-index.txt").exists() and name != "rich-nocommit":
        assert (here / "dummy-index.txt").read_text().endswith("commit\n")


def test_clean_without_a_crawldb() -> None:
    with pytest.raises(StoreError, match="Input path does not exist"):
        Golden("clean", "missing").run()
