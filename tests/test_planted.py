"""No module is taken from the working folder, which may be somebody else's: neither by a command,
from a checkout or as pip installs it, nor by the processes that it starts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.demo import definitions, write_seeds
from tests.support.golden import PROJECT
from tests.support.siteserver import SiteServer

BASH = shutil.which("bash") or ""
INSTALLED = """\
#!{python}
import sys
from minutch.commands.cli import main
if __name__ == "__main__":
    sys.exit(main())
"""
"""What pip makes of `project.scripts`."""
PLANTED = "with open({found!r}, 'a') as found: found.write(__file__ + '\\n')\n"
STAMPS = """\
printf %s "$PWD $(cksum <pyproject.toml)" >.venv/.minutch-
printf %s "$(cat minutch/kernels/*.py | cksum)" >.venv/.minutch-kernels
"""
"""What bin/ leaves when it has installed everything."""


@pytest.fixture(scope="module")
def server() -> Iterator[SiteServer]:
    with SiteServer() as server:
        yield server


def checkout(home: Path) -> Path:
    """A checkout as the first use of bin/ leaves it, with the packages of this Python; returns its
    environment's programs.
    """
    programs = home / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(os.path.realpath(sys.executable))
    (home / ".venv" / "lib").symlink_to(Path(sys.prefix) / "lib")
    base = Path(os.path.realpath(sys.executable)).parent
    (home / ".venv" / "pyvenv.cfg").write_text(f"home = {base}\n")
    shutil.copytree(PROJECT / "bin", home / "bin", symlinks=True)
    for name in ("conf", "plugins", "minutch", "pyproject.toml"):
        (home / name).symlink_to(PROJECT / name)
    subprocess.run([BASH, "-euc", STAMPS], cwd=home, check=True)
    return programs


def plant(folder: Path, found: Path) -> None:
    """Modules under all names that Python, minutch or a package of theirs has."""
    names = {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize"}
    code = PLANTED.format(found=str(found))
    for name in filter(str.isidentifier, names - {"minutch"}):
        (folder / f"{name}.py").write_text(code)
    (folder / "minutch").mkdir()
    for name in ("__init__", "__main__"):
        (folder / "minutch" / f"{name}.py").write_text(code)


@pytest.mark.slow
@pytest.mark.skipif(not BASH, reason="the scripts need bash")
@pytest.mark.parametrize("way", ["a checkout", "installed"])
def test_a_crawl_where_every_module_has_a_namesake(
    way: str, server: SiteServer, tmp_path: Path
) -> None:
    programs = checkout(tmp_path / "checkout")
    (programs / "minutch").write_text(INSTALLED.format(python=programs / "python"))
    command = {
        "a checkout": [str(tmp_path / "checkout/bin/minutch")],
        "installed": [str(programs / "python"), str(programs / "minutch")],
    }[way]
    folder, found = tmp_path / "folder", tmp_path / "found"
    folder.mkdir()
    plant(folder, found)
    write_seeds(folder, server.site)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [*command, "crawl", *definitions(), "seeds", "crawl", "1"],
        cwd=folder,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not found.exists(), found.read_text()
    assert "1 page" in done.stdout
