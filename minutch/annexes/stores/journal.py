"""Folders moved into their places where a rename copies file by file (s3a and the like).

    <folder>/.journal := JSON {"owner": the process that is at it, as in a lock,
                               "moves": [[source, target], ...]}     what is left to do, in this
                               order

The folder is a database, or a segment. Sources and targets are paths below the folder above it;
without a target, the source is removed. The journal is one file, there or not. Once it is written,
all that is to come is complete: whoever goes on does the rest, file by file, each of which may be
done again. In between the folder is not whole: nobody may read it, and readers of segments look for
the journal first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from minutch import strictjson
from minutch.errors import StoreError
from minutch.paths import Move, StorePath
from minutch.work.tables.lock import Owner
from minutch.work.tables.parallel import for_each

JOURNAL: Final = ".journal"
_AT_A_TIME: Final = 16
"""Files that are moved side by side: the store copies them, and each takes it a while."""


def begin(folder: StorePath, moves: Iterable[Move]) -> None:
    """Makes these moves, for `folder` or in it. Raises FileExistsError if it has a journal."""
    own = Owner.current().content.decode().strip()
    pending = PendingMoves(
        own, [(_name(folder, source), _name(folder, target)) for source, target in moves]
    )
    (folder / JOURNAL).create(pending.text.encode())
    _do(folder, pending)


def resume(folder: StorePath, *, if_abandoned: bool = False) -> None:
    """Makes the moves that a journal has left; does nothing without one. Nobody else may be working
    on it: `if_abandoned`, nothing is done unless the process that began is gone.
    """
    pending = _read(folder / JOURNAL)
    if pending is not None and (pending.is_abandoned or not if_abandoned):
        _do(folder, pending)


def is_there(folder: StorePath) -> bool:
    """Returns whether a folder has a journal."""
    return (folder / JOURNAL).exists()


def require_none(folder: StorePath, hint: str) -> None:
    """Raises StoreError where a folder has a journal."""
    pending = _read(folder / JOURNAL)
    if pending is not None:
        raise StoreError(
            f"{folder} is not whole: process {pending.owner} is, or was, putting its files in"
            f" place; {hint}"
        )


class PendingMoves(NamedTuple):
    """The moves that a journal records."""

    owner: str
    moves: Sequence[tuple[str, str]]

    @property
    def text(self) -> str:
        """Returns the text of the journal."""
        return json.dumps(self._asdict())

    @property
    def is_abandoned(self) -> bool:
        """True if its process certainly no longer runs."""
        owner = Owner.parse(self.owner)
        return owner is not None and (owner == Owner.current() or owner.is_gone())


def _do(folder: StorePath, pending: PendingMoves) -> None:
    while pending.moves:
        source, target = (folder.parent / name if name else None for name in pending.moves[0])
        assert source is not None
        if target is not None:
            for_each(_move, list(_files(source, target)), _AT_A_TIME)
        source.remove_tree()
        pending = pending._replace(moves=pending.moves[1:])
        if pending.moves:
            (folder / JOURNAL).write_text(pending.text, encoding="utf-8")
    (folder / JOURNAL).unlink()


def _name(folder: StorePath, path: StorePath | None) -> str:
    return "" if path is None else "/".join(path.parts[len(folder.parts) - 1 :])


def _read(journal: StorePath) -> PendingMoves | None:
    try:
        found = strictjson.loads(journal.read_text(encoding="utf-8"))
        moves = [
            (_checked(str(source)), _checked(str(target)) if target else "")
            for source, target in found["moves"]
        ]
        return PendingMoves(str(found["owner"]), moves)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as exc:
        raise StoreError(
            f"{journal}: expected JSON with owner and moves, found something else ({exc})"
        ) from exc


def _checked(name: str) -> str:
    """Returns a path that leads down from the folder above. Raises ValueError for any other."""
    if not all(part.strip(".") for part in name.split("/")):
        raise ValueError(f"a path that leads elsewhere: {name!r}")
    return name


def _files(source: StorePath, target: StorePath) -> Iterator[tuple[StorePath, StorePath]]:
    """Yields the files of a folder, of which some may be in place already, and their places."""
    if not source.is_dir():
        return
    target.mkdir(exist_ok=True)
    for path in source.iterdir():
        if path.is_dir():
            yield from _files(path, target / path.name)
        else:
            yield path, target / path.name


def _move(places: tuple[StorePath, StorePath]) -> None:
    source, target = places
    source.replace(target)
