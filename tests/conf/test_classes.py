"""Classes that properties name are found at their old places, too."""

from __future__ import annotations

from importlib import import_module

import pytest

from minutch.conf import Configuration
from minutch.conf.properties import MOVED, class_named
from minutch.cycle.parse.simhash import SimHashSignature
from minutch.errors import ConfigError


@pytest.mark.parametrize("separator", [":", "."])
def test_a_class_is_found_where_it_was_and_where_it_is(separator: str) -> None:
    for module in ("minutch.parse.simhash", "minutch.cycle.parse.simhash"):
        name = f"{module}{separator}SimHashSignature"
        found = class_named(Configuration.load([]), "db.signature.class", name, {}, object)
        assert found is SimHashSignature


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_moved_modules_are_where_the_table_says(old: str, new: str) -> None:
    assert import_module(new)
    with pytest.raises(ImportError):
        import_module(old)


def test_no_class_of_that_name() -> None:
    with pytest.raises(ConfigError):
        class_named(Configuration.load([]), "x", "minutch.parse.simhash:No", {}, object)
