"""Runs the functions of a job: in threads of this process, or on an engine of `minutch.annexes`.

Begin with interface: the verbs that jobs know.

    `interface`        what jobs ask of an engine
    `local`, `pool`    threads of this machine; processes
    `selection`        databases as sources; the best rows, some at a time
"""

from __future__ import annotations

from typing import Final

from minutch import annexes
from minutch.conf import Configuration
from minutch.work.engine.interface import Engine, Partition, Shuffled, Source, Task
from minutch.work.tables.parallel import memory_budget, number_of_parts

__all__ = ["Engine", "Partition", "Shuffled", "Source", "Task", "engine_of", "runs_here"]

PROPERTY: Final = "minutch.engine"
LOCAL: Final = "local"


def runs_here(conf: Configuration) -> bool:
    """Returns True if jobs run in this process. Starts no engine."""
    return conf.get_word(PROPERTY) == LOCAL


def engine_of(conf: Configuration) -> Engine:
    """Returns the engine that `minutch.engine` names. Raises ConfigError where Spark is asked for
    and not installed.
    """
    if runs_here(conf):
        from minutch.work.engine.local import LocalEngine

        return LocalEngine(number_of_parts(conf), memory_budget(conf))
    engine: Engine = annexes.load("engine").of(conf)
    return engine
