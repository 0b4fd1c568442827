"""Properties of plugins that are not Nutch's: each has a test that names it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.support.golden import PROJECT
from tests.test_conf_keys import PROPERTIES, declared

UNTESTED = {"http.accept.encoding", "http.robots.cache.seconds", "http.robots.unreachable.allow"}
"""Those that have none yet."""


def text_of(folder: str) -> str:
    """All Python below a folder of the project, but for this file."""
    files = sorted((PROJECT / folder).rglob("*.py"))
    return "\n".join(path.read_text(encoding="utf-8") for path in files if path != Path(__file__))


@pytest.mark.skipif(not PROPERTIES.is_file(), reason="the list of Nutch's properties is not beside this checkout")
def test_every_property_of_a_plugin_that_nutch_does_not_have_is_tested() -> None:
    with PROPERTIES.open(encoding="utf-8") as stream:
        nutchs = {row[1] for row in csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)}
    plugins, tests = text_of("plugins"), text_of("tests")
    own = {name for name in declared().keys() - nutchs if f'"{name}"' in plugins}
    assert len(own) > 12
    named = {name for name in own if any(name.replace(".", dot) in tests for dot in (".", "_", "__"))}
    assert own - named <= UNTESTED
