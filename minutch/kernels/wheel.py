"""A hook of the build backend: a wheel carries the kernels, compiled for the kind of machine that it is built on.

On other machines, and from a wheel whose hook failed, kernels are compiled when they are first used (`library`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Compiles kernels into the source tree and has them put into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel is built; `version` is "editable" for a link to the source tree."""
        sys.path.insert(0, self.root)
        try:
            from minutch.kernels import library

            found = library.PACKAGE / library.version()
            if not found.is_dir():
                library.install(library.compile_all())
            if version != "editable" and found.is_dir():
                build_data["force_include"][str(found)] = str(Path("minutch/kernels/objects") / found.name)
        except Exception as exc:  # a wheel without them works
            self.app.display_warning(f"kernels are not compiled: {exc}")
        finally:
            sys.path.remove(self.root)
