"""Replace a directory of a database where a rename copies file by file (s3a and the like).

    <db>/.journal := JSON {"step": "retire" | "place",      what is being moved: the old folder, or the new one
                           "new": its name now, "name": its name to be, "old": what is kept of the one before, or ""}

The journal is one file, there or not. Once it is written, the complete database in `new` will be `current`: whoever
holds the lock next does the rest, file by file, each of which may be done again. In between `current` is not whole, so
that on such a file system nobody may read a database while a job replaces it.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from minutch.errors import StoreError
from minutch.stores import StorePath, remove_tree

JOURNAL: Final = ".journal"
_RETIRE, _PLACE = "retire", "place"


def begin(database: StorePath, new: StorePath, name: str, old: str) -> None:
    """Make `new`, a complete folder in `database`, the one of that name; what was there before is kept as `old`."""
    _note(database, Noted(_RETIRE, new.name, name, old))
    go_on(database)


def go_on(database: StorePath) -> None:
    """Do what a journal says is left to do; nothing without one."""
    noted = _read(database / JOURNAL)
    if noted is None:
        return
    current, new = database / noted.name, database / noted.new
    if noted.step == _RETIRE:
        if noted.old:
            _move(current, database / noted.old)
        remove_tree(current)
        _note(database, noted._replace(step=_PLACE))
    _move(new, current)
    remove_tree(new)
    (database / JOURNAL).unlink()


class Noted(NamedTuple):
    """What a journal says."""

    step: str
    new: str
    name: str
    old: str


def _read(journal: StorePath) -> Noted | None:
    try:
        return Noted(**json.loads(journal.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as exc:
        raise StoreError(
            f"{journal}: expected JSON with step, new, name and old, found something else ({exc})"
        ) from exc


def _note(database: StorePath, noted: Noted) -> None:
    (database / JOURNAL).write_text(json.dumps(noted._asdict()), encoding="utf-8")


def _move(source: StorePath, target: StorePath) -> None:
    """Move the files of a folder, of which some may be there already."""
    if not source.is_dir():
        return
    target.mkdir(exist_ok=True)
    for path in source.iterdir():
        if path.is_dir():
            _move(path, target / path.name)
        else:
            path.replace(target / path.name)
