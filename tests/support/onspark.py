"""Tests of jobs with Spark as their engine: `pytest --on-spark …` runs them so, in one Spark in
this machine.

A test that makes its own configuration gets the engine by it, whoever loads it; one that names an
engine keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from minutch.annexes.spark import session
from minutch.conf import Configuration

PROPERTIES: Final = {
    "minutch.engine": "spark",
    "spark.master": "local[2]",
    "mapreduce.job.maps": "1",
}
"""One fetch list, as in Nutch's local mode, where nobody asks for more."""
STAGES: Final = "stages on Spark: "
"""What the summary of such a run says how many there were after."""

_load = Configuration.load


def switch() -> None:
    """Makes Spark the engine of all configurations that are made from now on."""

    def load(
        conf_dirs: Sequence[Path],
        *,
        overrides: Mapping[str, str] = MappingProxyType({}),
        **more: Any,
    ) -> Any:
        return _load(conf_dirs, overrides=PROPERTIES | overrides, **more)

    Configuration.load = load  # type: ignore[method-assign, assignment]


def stages() -> int:
    """Counts the stages that Spark has run in this process."""
    context = session.running()
    return 0 if context is None else int(context._jsc.sc().dagScheduler().nextStageId())
