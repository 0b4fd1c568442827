"""The public names of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import minutch


def test_every_name_is_there() -> None:
    for name in minutch.__all__:
        assert getattr(minutch, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = minutch.nothing


def test_the_import_alone_is_light() -> None:
    code = "import minutch, sys; print(sorted(m for m in sys.modules if m.startswith('minutch') or m == 'polars'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['minutch']"


def test_the_life_of_a_url_names_real_modules() -> None:
    import re

    from tests.support.golden import PROJECT

    for path in re.findall(r"\S+\.py", minutch.__doc__ or ""):
        assert (PROJECT / "minutch" / path).is_file(), path
