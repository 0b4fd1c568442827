"""Paths of files and folders: on this machine, or in a store such as hdfs:// and s3a://.

    as_path("crawl/crawldb")                a Path
    as_path("hdfs://name:8020/crawl/db")    a StorePath: read in ranges, written whole

A job is written once for paths of both kinds, and asks `is_local` where they differ. What a store
has to be able to do stands here; what does it is an annex, loaded for the first such path.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeGuard

from minutch import annexes
from minutch.errors import ConfigError
from minutch.processwide import StoreSettings

if TYPE_CHECKING:
    from minutch.conf import Configuration

    _PathForTypes = Path  # the signatures of jobs say Path for both kinds
else:
    _PathForTypes = object

SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)")
_HADOOP: Final = ("fs.", "dfs.", "ipc.", "hadoop.")
"""Prefixes of Hadoop's properties in the configuration of a job."""
_SPARK: Final = "spark.hadoop."
_JARS: Final = ("spark.jars", "spark.driver.extraClassPath")


class StorePath(_PathForTypes):
    """The path of a file or folder in a store: those methods of pathlib that databases and segments
    need, and what only stores have.

    It is no `Path` and no `os.PathLike`: `open`, `os`, `shutil`, `mmap` and `Path` raise TypeError
    for it, and what it lacks raises AttributeError.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def renames(self) -> bool:
        """True if the store renames a folder in one step; others copy its files one by one."""

    @property
    @abstractmethod
    def scratch(self) -> Path:
        """A folder on this machine for files in transit, that of all stores."""

    @abstractmethod
    def create(self, content: bytes) -> None:
        """Writes a new file in one step. Raises FileExistsError."""

    @abstractmethod
    def read_range(self, start: int, end: int) -> bytearray:
        """Reads the bytes from `start` to before `end`, or to the end of the file."""

    @abstractmethod
    def remove_tree(self) -> None:
        """Removes a file, or a folder with its contents, if it exists."""

    # -- folders put into their places where nothing `renames`; what a process that was killed has
    # left of it, the next one does

    @abstractmethod
    def begin_moves(self, moves: Iterable[Move]) -> None:
        """Makes these moves, for this folder or in it. FileExistsError if others are unfinished."""

    @abstractmethod
    def resume_moves(self, *, if_abandoned: bool = False) -> None:
        """Makes those that are left; `if_abandoned`, only if the process that began is gone."""

    @abstractmethod
    def has_moves(self) -> bool:
        """Returns whether some are left."""

    @abstractmethod
    def require_no_moves(self, hint: str) -> None:
        """Raises StoreError where some are left, and the folder is not whole."""


Move = tuple[StorePath, StorePath | None]
"""A folder and where it shall be, or None where it shall go."""


def as_path(name: str | Path) -> Path:
    """Returns the path that a name stands for: with a scheme in a store, else on this machine.
    Raises ConfigError.
    """
    if not isinstance(name, str):
        return name
    found = SCHEME.match(name)
    if found is None:
        return Path(name)
    if found[1] == "file":
        return Path(name[found.end() :] or "/")
    if not found[2]:
        raise ConfigError(f"{name} names no host or bucket: expected {found[1]}://HOST/PATH")
    store: type[StorePath] = annexes.load("store")
    return store(name)


def is_local(path: Path) -> bool:
    """Returns whether a path is on this machine."""
    return not isinstance(path, StorePath)


def copies(path: Path) -> TypeGuard[StorePath]:
    """Returns whether renaming a folder there means copying its files one by one."""
    return isinstance(path, StorePath) and not path.renames


def local_scratch(path: Path) -> Path:
    """Returns a folder on this machine for the scratch files of a job: the path itself, or the
    scratch folder of all stores.
    """
    return path.scratch if isinstance(path, StorePath) else path


def store_settings(conf: Configuration) -> StoreSettings:
    """Reads the settings of stores from the configuration of a job: Hadoop's own properties, and
    those that Spark hands on to Hadoop.
    """
    found = {name: conf.get(name, "") for name in conf if name.startswith(_HADOOP)}
    found |= {
        name.removeprefix(_SPARK): conf.get(name, "") for name in conf if name.startswith(_SPARK)
    }
    jars = [
        word for name in _JARS for word in conf.get(name, "").replace(":", ",").split(",") if word
    ]
    return StoreSettings(tuple(sorted(found.items())), tuple(jars))
