"""Nutch-style command lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from minutch.commands.arguments import Arguments, database, fail, parse
from minutch.commands.declaration import (
    Argument,
    Command,
    Option,
    path,
    segment,
    segments_in,
    switch,
)
from minutch.errors import MinutchError, UsageError

OPTIONS = (
    switch("-force"),
    Option("-topN", "N", int, least=0),
    Option("-segment", "dir", many=True),
    Option("-D", "name=value", repeats=True),
    Option("--wait", "seconds", int, aliases=("-w",)),
)
DB = (Argument("db"), Argument("more", is_optional=True))
JOB = Command("job", java="crawl.Job", arguments=DB, options=OPTIONS)


def given(*words: str, **more: Any) -> Arguments:
    """What a line says to a command with these declarations."""
    return parse(Command("job", **{"options": OPTIONS, "arguments": DB} | more), words)


def test_options_and_words_in_any_order() -> None:
    found = given("db", "-topN", "5", "x", "-force")
    assert found.positional == ["db", "x"] and (found["db"], found["more"]) == ("db", "x")
    assert (found["-force"], found["-topN"], found["--wait"]) == (True, 5, None)
    assert found.get("--wait", 7) == 7 and found.given == {"db", "more", "-topN", "-force"}


def test_a_word_without_a_dash_is_no_option() -> None:
    """`export parquet crawl tables` has a folder `tables`, and an option `-tables`."""
    found = given("crawl", "tables", options=(Option("-tables", "names"),))
    assert found.positional == ["crawl", "tables"] and found["-tables"] is None


def test_many_takes_words_up_to_the_next_option() -> None:
    found = given("db", "-segment", "a", "b", "--force", "-segment", "c")
    assert found["-segment"] == ["a", "b", "c"]
    assert found.positional == ["db"]


def test_repeats_collects() -> None:
    assert given("-D", "a=1", "db", "-D", "b=2")["-D"] == ["a=1", "b=2"]


def test_the_last_value_counts() -> None:
    assert given("db", "-topN", "1", "-topN", "2")["-topN"] == 2


def test_aliases() -> None:
    assert given("db", "-w", "3")["--wait"] == 3
    assert given("db", "-wait", "3")["--wait"] == 3
    assert given("db", "--force")["-force"] is True


def test_case() -> None:
    assert given("db", "-FORCE", ignore_case=True)["-force"]
    with pytest.raises(UsageError, match=r"unknown option -FORCE"):
        given("db", "-FORCE")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-frce"], r"unknown option -frce \(did you mean -force\?\)"),
        (["-topN=5", "db"], "unknown option -topN=5"),
        (["-topN5", "db"], "unknown option -topN5"),
        (["-top", "5"], "unknown option -top "),
        (["-topN"], "-topN needs a value: <N>"),
        (["-wait", "x", "db"], "--wait: expected <seconds>, found 'x'"),
        (["-topN", "x"], "-topN: expected 0 or more, found 'x'"),
        (["-topN", "-1"], "-topN: expected 0 or more, found -1"),
        ([], "^Usage: Job"),
        (["-force"], "too few arguments: no <db>"),
        (["a", "b", "c"], "too many arguments: c"),
    ],
)
def test_wrong_lines(args: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse(JOB, args)
    assert "\nUsage: Job <db> [<more>] [-force]" in f"\n{caught.value}"


def test_negative_numbers_and_a_lone_dash_are_words() -> None:
    words = Argument("words", many=True)
    assert given("-1", "-", "-.5", arguments=(words,))["words"] == ["-1", "-", "-.5"]


def test_values_may_begin_with_a_dash() -> None:
    assert given("db", "-D", "-x")["-D"] == ["-x"]


def test_several_values() -> None:
    options = (Option("-group", "host sum"), switch("-stats"))
    assert given("db", "-group", "a", "b", "-stats", options=options)["-group"] == ("a", "b")
    with pytest.raises(UsageError, match="-group needs a value: <sum>"):
        given("db", "-group", "5", options=options)


@pytest.mark.parametrize(
    ("words", "bits", "db"), [("-near db", 3, "db"), ("-near 5 db", 5, "db"), ("db -near", 3, "db")]
)
def test_a_value_that_may_be_left_out(words: str, bits: int, db: str) -> None:
    options = (Option("-near", "[bits]", lambda word: int(word) if word else 3),)
    found = given(*words.split(), options=options)
    assert (found["-near"], found["db"]) == (bits, db)


def test_choices() -> None:
    options = (Option("-group", "none|host", choices=("none", "host")),)
    assert given("db", "-group", "host", options=options)["-group"] == "host"
    with pytest.raises(UsageError, match="-group: expected none or host, found 'page'"):
        given("db", "-group", "page", options=options)


def test_a_wrong_value_fails_also_where_a_usage_does_not() -> None:
    with pytest.raises(MinutchError, match="-topN: expected 0 or more, found 'x'") as caught:
        given("db", "-topN", "x", usage_exit=0)
    assert not isinstance(caught.value, UsageError)


def test_words_go_to_the_arguments_in_their_order() -> None:
    files = (Argument("file", many=True), Argument("out"))
    found = given("a", "b", "c", arguments=files)
    assert (found["file"], found["out"]) == (["a", "b"], "c")
    with pytest.raises(UsageError, match="too few arguments: no <out>"):
        given("a", arguments=files)


def test_required_options_are_parameters() -> None:
    options = (Option("-in", "dir", required=True), Option("-out", "dir", required=True))
    found = given("-out", "o", "-in", "i", arguments=(), options=options)
    assert found.parameters() == ["i", "o"]
    with pytest.raises(UsageError, match="missing: -in"):
        given("-out", "o", arguments=(), options=options)


def test_segments_come_from_words_and_folders(tmp_path: Path) -> None:
    for name in ("segments/1", "segments/2", "3"):
        (tmp_path / name / "content").mkdir(parents=True)
    arguments = (Argument("db", type=path), Argument("segments", type=segment, many=True))
    options = (Option("-dir", "dir", segments_in, field="segments", repeats=True),)
    words = ["db", "-dir", f"{tmp_path}/segments", f"{tmp_path}/3", f"{tmp_path}/segments/1"]
    _, found = given(*words, arguments=arguments, options=options).parameters()
    assert sorted(one.name for one in found) == ["1", "1", "2", "3"]
    assert given("db", *words[1:3], arguments=arguments, options=options)["segments"] == []
    with pytest.raises(UsageError, match="no <segments>"):
        given("db", arguments=arguments, options=options)


@dataclass
class Settings:
    top_n: int = 9
    filtering: bool | None = None
    naming: str = "nested"
    kinds: frozenset[str] = frozenset()


def test_settings_have_their_own_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minutch.commands.arguments.named", lambda *where: Settings)
    options = (
        Option("-topN", "N", int),
        switch("-noFilter", field="filtering", gives=False),
        switch("-flat", field="naming", gives="flat"),
        switch("-reversed", field="naming", gives="reversed"),
        switch("-a", field="kinds", gives=frozenset("a")),
        switch("-b", field="kinds", gives=frozenset("b")),
    )
    assert given("db", options=options, settings="Settings").settings() == Settings()
    words = "db -noFilter -reversed -flat -b -a -topN 5"
    found = given(*words.split(), options=options, settings="Settings").settings()
    assert found == Settings(5, False, "reversed", frozenset("ab"))


def test_fail_carries_the_usage() -> None:
    with pytest.raises(UsageError) as caught:
        fail("no", JOB)
    assert caught.value.message == "no" and caught.value.usage.startswith("Job <db>")


def test_a_crawls_folder_stands_for_its_database(tmp_path: Path) -> None:
    (tmp_path / "crawl/crawldb/current").mkdir(parents=True)
    assert database(str(tmp_path / "crawl"), "crawldb") == tmp_path / "crawl/crawldb"
    assert database(str(tmp_path / "crawl/crawldb"), "crawldb") == tmp_path / "crawl/crawldb"
    assert database(str(tmp_path / "gone"), "crawldb") == tmp_path / "gone"
