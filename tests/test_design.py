"""minutch/DESIGN.md describes the tree as it is: every module, nothing else, and paths that are there."""

from __future__ import annotations

import re

from tests.support.design import DESIGN, listed, on_disk, updated
from tests.support.golden import PROJECT

TEXT = DESIGN.read_text(encoding="utf-8")
HINT = "`python -m tests.support.design` adds and removes lines"


def test_every_module_is_listed_and_nothing_else() -> None:
    shown = {f"{folder}{name}" for folder, lines in listed(TEXT).items() for name in lines}
    there = {f"{folder}{name}" for folder, modules in on_disk().items() for name in modules}
    assert sorted(there - shown) == [], HINT
    assert sorted(shown - there) == [], HINT


def test_every_module_has_a_line_of_its_own() -> None:
    lines = [line for modules in listed(TEXT).values() for line in modules.values()]
    assert "" not in lines
    assert len(lines) == len(set(lines))


def test_a_text_that_is_up_to_date_stays_as_it_is() -> None:
    assert updated(TEXT) == TEXT


def test_a_module_that_is_missing_is_added_with_its_docstring() -> None:
    without = re.sub(r"^errors +.*\n", "gone  A module that is no more\n", TEXT, count=1, flags=re.MULTILINE)
    tree = listed(updated(without))["minutch/"]
    assert "gone" not in tree
    assert tree["errors"].startswith("The error tree")


def test_the_files_it_names_are_there() -> None:
    named = set(re.findall(r"`((?:bin|conf|minutch|tests|plugins)/[\w./-]*\w/?)`", TEXT))
    named |= {f"minutch/{name}" for name in re.findall(r"`((?:crawldb|fetchlist|fetch|parse|linkdb)/\w+\.py)`", TEXT)}
    assert len(named) > 20
    assert sorted(name for name in named if not (PROJECT / name).exists()) == []
