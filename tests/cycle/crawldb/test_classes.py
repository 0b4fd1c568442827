"""The schedules by class name: Nutch's own simulations, line for line."""

from __future__ import annotations

from types import ModuleType

import pytest

from minutch.errors import UsageError
from tests.support.commands import adaptivefetchschedule, mimeadaptivefetchschedule
from tests.support.golden import needs_golden
from tests.support.nutchruns import NutchRun, context_for

MODULES = {
    "adaptive-schedule": adaptivefetchschedule,
    "mime-adaptive-schedule": mimeadaptivefetchschedule,
}


@needs_golden("commands/classes")
@pytest.mark.parametrize(("case", "module"), MODULES.items(), ids=MODULES)
def test_simulations_are_nutchs(case: str, module: ModuleType) -> None:
    """The golden consoles have the first and the last lines."""
    nutch = NutchRun(f"classes/{case}")
    (logger,) = {"AdaptiveFetchSchedule", "MimeAdaptiveFetchSchedule"} & {
        nutch.console[0].rpartition(".")[2]
    }
    theirs = "\n".join(nutch.logged(logger)).splitlines()
    context, printed = context_for(nutch.conf())
    assert module.run([], context) == 0
    ours = printed.getvalue().splitlines()
    gap = next(number for number, line in enumerate(theirs) if line.startswith("[\u2026 "))
    head, tail = theirs[:gap], theirs[gap + 1 :]
    assert [line.rstrip() for line in ours[:gap]] == [line.rstrip() for line in head]
    assert ours[-len(tail) :] == tail
    assert len(ours) == gap + int(theirs[gap].split()[1]) + len(tail)
    with pytest.raises(UsageError):
        module.run(["x"], context)
