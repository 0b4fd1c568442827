"""The wheel in an environment of its own, in another folder, with no source on the path.

On each Python that minutch is for and that is here. `--installed` runs these; a share of the other
tests runs against the product as it was installed, the command lines of the docs among them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.docs.test_commands import PROPERTIES
from tests.support.demo import write_seeds
from tests.support.golden import PROJECT
from tests.support.siteserver import SiteServer

pytestmark = pytest.mark.installed

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
CHOSEN = f"3.{sys.version_info.minor}"
PLUGINS = "browser,cloudsearch,geoip,kafka,keystores,rabbitmq,tables"
"""The extras that plugins need."""
SHARE = (
    ["-m", "smoke", "tests", "--ignore=tests/benchmarks", "--ignore=tests/faults"],
    ["--all", "tests/docs/test_commands.py", "tests/cycle/test_crawl_command.py"],
)
"""The first test of each module; then what reaches every command and most plugins. One Python runs
them.
"""
OF_SOURCES = (
    "test_layers.py",
    "test_module_state.py",
    "test_planted.py",
    "test_processwide.py",
    "test_rooms.py",
    "test_scripts.py",
    "test_security_claims.py",
    "conf/test_check.py",
    "conf/test_keys.py",
    "conf/test_settings.py",
    "conf/test_own_properties.py",
    "docs/test_pages.py",
    "docs/test_recipes.py",
    "kernels/test_library.py",
)
"""Modules that are about the checkout: its sources, scripts and build."""

GUARD = """import sys
from pathlib import Path

import minutch

assert Path(minutch.__file__).is_relative_to(sys.prefix), minutch.__file__
"""
"""The conftest beside the copied tests."""

LOAD = """import importlib, importlib.util, sys
from minutch.commands import flow
from minutch.commands.declaration import named
from minutch.conf import Configuration
from minutch.plugin.points import POINTS
from minutch.plugin.repository import PluginRepository

assert importlib.util.find_spec("plugins") is None, "plugins are on the path"
for command in (*flow.commands().values(), *flow.classes()):
    for where in filter(None, (command.code, command.job, command.finish)):
        assert callable(named(where))
active = PluginRepository(Configuration.load([]).with_values({"plugin.includes": ".*"}))
print(*sorted(active.active))
for point in POINTS:
    for extension in active.extensions(point):
        extension.load()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    words = ["-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(PROJECT)]
    run([sys.executable, *words], folder)
    return next(folder.glob("*.whl"))


def run(command: list[str], folder: Path) -> str:
    """The output of a program that knows nothing of the checkout."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYTEST", "MINUTCH", "NUTCH", "VIRTUAL_ENV"))
        and name != "TMPDIR"  # a session in this one's folder has no sockets: 108 characters
    }
    ran = subprocess.run(
        command, cwd=folder, env=kept, capture_output=True, text=True, check=False, timeout=900
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-6000:]
    return ran.stdout


def test_the_wheel_has_every_file(wheel: Path) -> None:
    """And the compiled library, which is no source, for its platform; nothing for developers."""
    listed = run(["git", "ls-files", "minutch", "conf", "plugins"], PROJECT).split()
    assert len(listed) > 600
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [about] = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(about).decode()
    packed = {name.removeprefix("minutch/_home/") for name in names}
    assert [name for name in listed if name not in packed] == ["minutch/DESIGN.md"]
    assert any(re.fullmatch(r"minutch/kernels/_kernels\..*\.so", name) for name in names)
    assert re.search(r"-py3-none-(?!any)[\w.]+\.whl$", wheel.name)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"minutch"}
    for field in ("Author", "Keywords", "License-Expression", "Requires-Python"):
        assert f"\n{field}: " in metadata


@pytest.mark.parametrize("version", PYTHONS)
def test_as_it_is_installed(version: str, wheel: Path, tmp_path: Path) -> None:
    """Every plugin and command loads, a crawl is indexed; on one Python, a share of the tests."""
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no python{version} with its venv module here")
    run([found, "-m", "venv", "--without-pip", str(tmp_path / "venv")], tmp_path)
    python = str(tmp_path / "venv" / "bin" / "python")
    install = ["-m", "pip", "--python", python, "install", "-q", "--no-compile"]
    run(
        [sys.executable, *install, f"{wheel}[{'test' if version == CHOSEN else PLUGINS}]"], tmp_path
    )
    loaded = run([python, "-I", "-c", LOAD], tmp_path).split()
    assert len(loaded) == len(list((PROJECT / "plugins").glob("*/plugin.xml")))
    crawl_and_index(tmp_path / "venv" / "bin" / "minutch", tmp_path / "empty")
    if version == CHOSEN:
        folder = beside(tmp_path / "work", tmp_path / "venv")
        for words in SHARE:
            run([python, "-m", "pytest", "-n", "auto", *words], folder)


def interpreter(version: str) -> str | None:
    """A Python of this version: on the path, or beside the one that runs (pyenv)."""
    beside = Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python{version}")
    for candidate in (shutil.which(f"python{version}"), *map(str, beside)):
        words = [candidate or "", "-c", "import venv, ensurepip, sys; print(*sys.version_info[:2])"]
        try:
            if run(words, Path("/")).split() == version.split("."):
                return candidate
        except (AssertionError, OSError):
            continue
    return None


def crawl_and_index(minutch: Path, folder: Path) -> None:
    """`minutch crawl -i` and `index`, as somebody runs them who has nothing but a site."""
    (folder / "conf").mkdir(parents=True)
    values = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in PROPERTIES.items()
    )
    (folder / "conf" / "nutch-site.xml").write_text(f"<configuration>{values}</configuration>")
    with SiteServer() as server:
        write_seeds(folder, server.site)
        run([str(minutch), "crawl", "-i", "seeds/", "crawl/", "1"], folder)
    (segment,) = (folder / "crawl" / "segments").iterdir()
    run([str(minutch), "index", "crawl/crawldb", str(segment)], folder)
    assert "http" in run([str(minutch), "search", "crawl", "page"], folder)


def beside(folder: Path, environment: Path) -> Path:
    """A folder with the tests, and what they look for beside themselves as it was installed.

    `minutch` is a folder without `__init__.py` there, and so never the one that is imported.
    """
    (package,) = environment.glob("lib/python3*/site-packages/minutch")
    left_out = shutil.ignore_patterns("__pycache__", *(Path(name).name for name in OF_SOURCES))
    shutil.copytree(PROJECT / "tests", folder / "tests", ignore=left_out)
    (folder / "minutch").mkdir()
    (folder / "minutch" / "docs").symlink_to(package / "docs")
    for name in ("conf", "plugins"):
        (folder / name).symlink_to(package / "_home" / name)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(PROJECT / name, folder)
    (folder / "conftest.py").write_text(GUARD)
    return folder
