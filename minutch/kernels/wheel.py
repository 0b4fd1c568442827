"""A hook of the build backend: compiles and links the kernels, for a wheel or for the source tree.

A wheel fits one kind of machine and every Python there: its library needs neither libpython nor a
certain C library.
"""

from __future__ import annotations

import platform
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_ANY_LINUX: Final = "manylinux_2_17_{0}.musllinux_1_1_{0}"
"""Both C libraries have had memcpy and memset for longer than Python needs others of their
functions.
"""


class KernelsBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Makes the library of kernels before a wheel is packed, or before a link to the source tree is
    installed.
    """

    def dependencies(self) -> list[str]:
        """The packages that the build needs besides the hook's own list: a linker, where the
        machine has none.
        """
        with self._sources():
            from minutch.kernels import link

        return [] if link.linker() else [link.PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is built; `version` is "editable" for a link to the source tree."""
        with self._sources():
            from minutch.kernels import build, library

            if not library.is_built():
                build.build()
            if version != "editable":
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{_platform()}"
                build_data["force_include"][str(library.PATH)] = (
                    f"minutch/kernels/{library.PATH.name}"
                )

    @contextmanager
    def _sources(self) -> Iterator[None]:
        sys.path.insert(0, self.root)
        try:
            yield
        finally:
            sys.path.remove(self.root)


def _platform() -> str:
    """The platform's name in a wheel's tag."""
    machine = platform.machine().lower()
    if sys.platform == "linux" and machine in {"x86_64", "aarch64"}:
        return _ANY_LINUX.format(machine)
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
