"""What a fork server has loaded before it forks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.golden import PROJECT

_CODE = """
import sys, threading
from minutch.cycle.fetch import preloaded
from minutch.plugin import repository
sys.path.insert(0, sys.argv[1])
list(repository._installed())
print(threading.active_count(), "polars" in sys.modules, repository._announced.cache_info().misses)
print(*{"minutch.cycle.parse.linkverdicts", "endec"} - sys.modules.keys())
"""


@pytest.mark.slow  # a process
def test_a_page_was_parsed_and_a_fork_still_works() -> None:
    """Without threads, or Polars; a worker, whose path differs, looks for no packages again."""
    words = [sys.executable, "-c", _CODE, str(PROJECT / "tests")]
    said = subprocess.check_output(words, text=True, cwd=PROJECT).splitlines()
    assert said == ["1 False 1", ""]
