"""Commands by the words of their command lines: `jobs.NAME(*words, conf=...)` for `minutch NAME`.

    from minutch import Configuration, jobs

    conf = Configuration.load([Path("conf")], overrides={"http.agent.name": "my-crawler"})
    counters = jobs.readdb("crawl/crawldb", "-stats", conf=conf, out=sys.stdout)

For programs the jobs are functions with typed options: `minutch.inject`, `minutch.generate`, ...
This is for what has no function, and for words that come from elsewhere. What a command prints goes
to `out`, its progress to `err`; the log goes where the program sends it.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import TextIO

from minutch.clock import Clock, SystemClock
from minutch.commands import flow
from minutch.conf import Configuration
from minutch.conf.sources import conf_of
from minutch.errors import MinutchError
from minutch.job import Counters, JobContext, set_up_process

NOTHING_DUE = 1
"""generate's exit code when it made no segment: no error."""


def run(
    name: str,
    *arguments: object,
    conf: Configuration | None = None,
    clock: Clock | None = None,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> Counters:
    """Runs a command; returns all its counters. Raises MinutchError for what the command line says
    as `error: …`.
    """
    command = flow.find(name)
    if command is None:
        raise MinutchError(f"there is no command {name}")
    words = [str(word) for word in arguments]
    used = (conf or Configuration.load([], crawl=conf_of(words))).with_values({}).freeze()
    set_up_process(used)
    context = JobContext(
        used, clock or SystemClock(), out or io.StringIO(), err or io.StringIO(), io.StringIO()
    )
    code = command.run(words, context)
    if code not in (0, NOTHING_DUE):
        raise MinutchError(f"{name} failed with exit code {code}")
    counters = Counters()
    for report in context.reports.values():
        counters.merge(report)
    return counters


def __getattr__(name: str) -> Callable[..., Counters]:
    if name in flow.commands():
        return partial(run, name)
    raise AttributeError(f"minutch has no command {name}")


def __dir__() -> list[str]:
    return sorted(["run", *flow.commands()])
