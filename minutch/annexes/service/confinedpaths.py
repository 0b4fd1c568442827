"""Confines the paths that clients name to a folder, even if they contain `..` or symbolic links."""

from __future__ import annotations

from pathlib import Path

from minutch.errors import MinutchError


class RequestRefused(MinutchError):
    """A request that is not accepted; the text is sent to the client."""


class Root:
    """The folder that the service works in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def path(self, text: object, name: str = "path") -> Path:
        """Returns the absolute path of `text`, links resolved. Raises RequestRefused if outside."""
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            raise RequestRefused(f"{name}: expected a path, found {text!r}")
        try:
            path = (self.folder / text.removeprefix("file:")).resolve()
            path.is_dir()  # raises for a name that is too long
        except (OSError, RuntimeError) as exc:
            raise RequestRefused(f"{name}: {text} can't be followed") from exc
        if path != self.folder and self.folder not in path.parents:
            raise RequestRefused(f"{name}: {text} lies outside of the service's folder")
        return path

    def shown(self, path: Path) -> str:
        """Returns a path as clients see it: relative to the folder."""
        return str(path.relative_to(self.folder))
