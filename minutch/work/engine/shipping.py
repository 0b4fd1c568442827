"""Packs what executors on other machines need: minutch with its compiled kernels, plugins, and the
configuration folders.

    minutch/ plugins/ conf/     as in a checkout; kernels lie in minutch/kernels/objects/
    folders/N/                  the N-th folder of the configuration, unless it is the shipped one

Spark unpacks the archive into the executor's working folder, as `minutch-home/`. Functions travel
pickled, and refer to configurations by number; these are made again there, their folders found in
the archive.
"""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from minutch.conf import Configuration

NAME: Final = "minutch-home"
"""The folder that the archive becomes."""
_PACKAGE: Final = Path(__file__).resolve().parents[2]
_LEFT_OUT: Final = ("__pycache__", "_home")


def members(conf: Configuration) -> dict[str, Path]:
    """Name in the archive → folder on this machine."""
    found = {"minutch": _PACKAGE, "plugins": conf.home / "plugins"}
    return found | dict(zip(_names(conf), conf.conf_dirs, strict=True))


def _names(conf: Configuration) -> list[str]:
    """Returns the names in the archive of the folders of a configuration."""
    shipped = conf.home / "conf"
    return [
        "conf" if folder == shipped else f"folders/{number}"
        for number, folder in enumerate(conf.conf_dirs)
    ]


def write_archive(conf: Configuration, path: Path) -> None:
    """Writes the archive for a configuration to a new file."""
    with tarfile.open(path, mode="x") as tar:
        for name, folder in members(conf).items():
            for file in _files(folder):
                tar.add(file, f"{name}/{file.relative_to(folder).as_posix()}", recursive=False)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not set(_LEFT_OUT) & set(path.relative_to(folder).parts):
            yield path


class Packed(NamedTuple):
    """A function as bytes, and the configurations that it refers to, with their folders' names in
    the archive.
    """

    function: bytes
    configurations: bytes

    @classmethod
    def of(cls, function: Any) -> Packed:
        """With all that it refers to."""
        from pyspark import cloudpickle

        found: list[Configuration] = []

        class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
            def persistent_id(self, value: Any) -> int | None:
                if not isinstance(value, Configuration):
                    return None
                if not any(value is other for other in found):
                    found.append(value)
                return next(number for number, other in enumerate(found) if value is other)

        out = io.BytesIO()
        pickler: Any = Pickler
        pickler(out, pickle.HIGHEST_PROTOCOL).dump(function)
        return cls(
            out.getvalue(),
            pickle.dumps([(conf, _names(conf)) for conf in found], pickle.HIGHEST_PROTOCOL),
        )

    def load(self, home: Path) -> Any:
        """Returns the function. The folders of configurations are those in `home`, where there is
        an archive.
        """
        configurations = [
            conf.in_folders(home, [home / name for name in names]) if home.is_dir() else conf
            for conf, names in pickle.loads(self.configurations)
        ]
        unpickler = pickle.Unpickler(io.BytesIO(self.function))
        unpickler.persistent_load = configurations.__getitem__  # type: ignore[method-assign]
        return unpickler.load()
