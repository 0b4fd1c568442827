"""Puts conf/ and plugins/ into the wheel as minutch/_home; everything else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithHome(build_py):
    """Copies what lies beside the package in a checkout, so that an installed minutch finds it, too."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for name in ("conf", "plugins"):
                target = Path(self.build_lib) / "minutch" / "_home" / name
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(name, target, ignore=shutil.ignore_patterns("__pycache__"))


setup(cmdclass={"build_py": BuildWithHome})
