"""Paths that clients name, kept within one folder: whatever `..` or links are in them, they lead
nowhere else.
"""

from __future__ import annotations

from pathlib import Path

from minutch.errors import MinutchError


class Refused(MinutchError):
    """A request that can't be done as it is; the text goes to the client."""


class Root:
    """The folder that the service works in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def path(self, text: object, what: str = "path") -> Path:
        """The absolute path that `text` means, links followed. Raises Refused for one outside."""
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            raise Refused(f"{what}: expected a path, found {text!r}")
        try:
            path = (self.folder / text.removeprefix("file:")).resolve()
        except (OSError, RuntimeError) as exc:
            raise Refused(f"{what}: {text} can't be followed") from exc
        if path != self.folder and self.folder not in path.parents:
            raise Refused(f"{what}: {text} lies outside of the service's folder")
        return path

    def shown(self, path: Path) -> str:
        """A path as clients have it: within the folder."""
        return str(path.relative_to(self.folder))
