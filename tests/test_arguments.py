"""Nutch-style command lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.commands.arguments import Flag, database, fail, parse
from minutch.errors import UsageError

FLAGS = (
    Flag("-force"),
    Flag("-topN", "N", int),
    Flag("-segment", "dir", many=True),
    Flag("-D", "name=value", repeats=True),
    Flag("--wait", "seconds", int, aliases=("-w",)),
)
USAGE = "Job <db> [-force]"


def test_flags_and_words_in_any_order() -> None:
    given = parse(["db", "-topN", "5", "x", "-force"], FLAGS, usage=USAGE)
    assert given.positional == ["db", "x"]
    assert (given["-force"], given["-topN"], given["--wait"]) == (True, 5, None)
    assert given.get("--wait", 7) == 7


def test_a_word_without_a_dash_is_no_flag() -> None:
    """`export parquet crawl tables` has a folder `tables`, and a flag `-tables`."""
    given = parse(["crawl", "tables"], (Flag("-tables", "names"),), usage="u")
    assert given.positional == ["crawl", "tables"] and given["-tables"] is None


def test_many_takes_words_up_to_the_next_flag() -> None:
    given = parse(["-segment", "a", "b", "-force", "-segment", "c"], FLAGS, usage=USAGE)
    assert given["-segment"] == ["a", "b", "c"]
    assert given.positional == []


def test_repeats_collects() -> None:
    assert parse(["-D", "a=1", "db", "-D", "b=2"], FLAGS, usage=USAGE)["-D"] == ["a=1", "b=2"]


def test_the_last_value_counts() -> None:
    assert parse(["-topN", "1", "-topN", "2"], FLAGS, usage=USAGE)["-topN"] == 2


def test_aliases() -> None:
    assert parse(["-w", "3"], FLAGS, usage=USAGE)["--wait"] == 3
    assert parse(["-wait", "3"], FLAGS, usage=USAGE)["--wait"] == 3
    assert parse(["--force"], FLAGS, usage=USAGE)["-force"] is True


def test_case() -> None:
    assert parse(["-FORCE"], FLAGS, usage=USAGE, ignore_case=True)["-force"]
    with pytest.raises(UsageError, match=r"unknown option -FORCE"):
        parse(["-FORCE"], FLAGS, usage=USAGE)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-frce"], r"unknown option -frce \(did you mean -force\?\)"),
        (["-topN"], "-topN needs a value: <N>"),
        (["-topN", "x"], "-topN: expected <N>, found 'x'"),
        ([], "^Usage: Job"),
        (["a", "b", "c"], "too many arguments: c"),
    ],
)
def test_wrong_lines(args: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse(args, FLAGS, usage=USAGE, least=1, most=2)
    assert str(caught.value).endswith(f"Usage: {USAGE}")


def test_negative_numbers_and_a_lone_dash_are_words() -> None:
    assert parse(["-1", "-", "-.5"], FLAGS, usage=USAGE).positional == ["-1", "-", "-.5"]


def test_several_values() -> None:
    flags = (Flag("-topN", "nnnn out_dir [min]", (int, str, float), repeats=True), Flag("-stats"))
    given = parse(["-topN", "5", "out", "-stats", "-topN", "6", "out2", "0.5"], flags, usage=USAGE)
    assert given["-topN"] == [(5, "out"), (6, "out2", 0.5)]
    assert [name for name, _ in given.in_order] == ["-topN", "-stats", "-topN"]
    with pytest.raises(UsageError, match="-topN needs a value: <out_dir>"):
        parse(["-topN", "5"], flags, usage=USAGE)


def test_the_order_as_given() -> None:
    given = parse(["a", "-D", "x=1", "b", "-D", "y=2"], FLAGS, usage=USAGE)
    assert given.in_order == [("", "a"), ("-D", "x=1"), ("", "b"), ("-D", "y=2")]


def test_choices() -> None:
    flags = (Flag("-group", "none|host", choices=("none", "host")),)
    assert parse(["-group", "host"], flags, usage=USAGE)["-group"] == "host"
    with pytest.raises(UsageError, match="-group: expected one of none, host, found 'page'"):
        parse(["-group", "page"], flags, usage=USAGE)


def test_lenient_warns(caplog: pytest.LogCaptureFixture) -> None:
    given = parse(["a", "-frce", "b"], FLAGS, usage=USAGE, most=1, lenient=True)
    assert given.positional == ["a", "b"]
    assert caplog.messages == [
        "unknown option -frce (did you mean -force?) (ignored)",
        "too many arguments: b (ignored)",
    ]


def test_fail_carries_the_usage() -> None:
    with pytest.raises(UsageError) as caught:
        fail("no", USAGE)
    assert (caught.value.message, caught.value.usage) == ("no", USAGE)


def test_a_crawls_folder_stands_for_its_database(tmp_path: Path) -> None:
    (tmp_path / "crawl/crawldb/current").mkdir(parents=True)
    assert database(str(tmp_path / "crawl"), "crawldb") == tmp_path / "crawl/crawldb"
    assert database(str(tmp_path / "crawl/crawldb"), "crawldb") == tmp_path / "crawl/crawldb"
    assert database(str(tmp_path / "gone"), "crawldb") == tmp_path / "gone"
