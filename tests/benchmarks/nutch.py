"""Apache Nutch as a peer: an installation (NUTCH_HOME, which `nutchhome` can build), or the
published jars without its plugins.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from minutch.commands.flow import commands
from tests.interop.harness import _OPENED
from tests.interop.jars import NUTCH_VERSIONS, NoJars, nutch_jars
from tests.interop.nutchconf import write_configuration


@dataclass(frozen=True)
class Nutch:
    """An installation of Nutch whose commands are run."""

    name: str
    home: Path | None
    class_path: str

    @property
    def has_plugins(self) -> bool:
        """Returns whether it can filter and normalize."""
        return self.home is not None

    def command(
        self, name: str, properties: dict[str, str], arguments: Sequence[str | Path]
    ) -> list[str | Path]:
        """The words of a command line."""
        given = [f"-D{key}={value}" for key, value in properties.items()]
        if self.home is not None:
            return [self.home / "bin" / "nutch", name, *given, *arguments]
        opened = [word for package in _OPENED for word in ("--add-opens", f"{package}=ALL-UNNAMED")]
        return [
            "java",
            "-Xmx4096m",
            *opened,
            "-cp",
            self.class_path,
            commands()[name].nutch_class,
            *given,
            *arguments,
        ]


def find(folder: Path) -> Nutch | str:
    """Nutch, or the reason why there is none; its configuration goes below `folder`."""
    home = os.environ.get("NUTCH_HOME")
    if home:
        return Nutch(f"Apache Nutch in {Path(home).name}", Path(home), "")
    try:
        jars = nutch_jars(NUTCH_VERSIONS[-1])
    except NoJars as exc:
        return str(exc)
    shutil.rmtree(folder, ignore_errors=True)  # that of an earlier run
    folder.mkdir(parents=True)
    conf = write_configuration(folder)
    return Nutch(
        f"Apache Nutch {NUTCH_VERSIONS[-1]} (published jar, no plugins)",
        None,
        os.pathsep.join(map(str, [conf, *jars])),
    )
