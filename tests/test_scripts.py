"""bin/: each script makes .venv on first use, again when pyproject.toml has changed, and hands its
arguments over.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.golden import PROJECT

BASH = shutil.which("bash") or ""
SETPRIV = shutil.which("setpriv") or ""
pytestmark = pytest.mark.skipif(not BASH, reason="the scripts need bash")

# Stands in for Python: notes what it was called with; `-m venv` puts a copy of itself into the
# environment.
FAKE = """#!{bash}
echo "$(basename "$0") $*" >> "{log}"
case "$*" in
    "-P -m venv"*) mkdir -p "${{@: -1}}/bin" && cp "$0" "${{@: -1}}/bin/python" ;;
    *"pip install"*)
        [ -z "${{PIP_FAILS:-}}" ] || {{ echo "no such package"; exit 1; }}
        echo "  Installing build dependencies: started"
        echo "  Installing backend dependencies: started"
        echo "  Preparing editable metadata (pyproject.toml): started"
        echo "Collecting httpx>=0.28 (from minutch==0.1.0)"
        echo "  Building editable for minutch (pyproject.toml): started"
        echo "Installing collected packages: httpx, minutch" ;;
    *"minutch.kernels.build") [ -z "${{BUILD_FAILS:-}}" ] || {{ echo "no linker" >&2; exit 1; }} ;;
    "-P -c import numba") [ -n "${{HAS_NUMBA:-}}" ] ;;
    *" ruff check"*) [ -z "${{RUFF_FAILS:-}}" ] ;;
    "-P -m minutch"*) echo "$MINUTCH_PROGRAM" ;;
    "-I -c import sys, venv"*) [ -z "${{TOO_OLD:-}}" ] ;;
esac
"""
_INSTALL = (
    "python -P -m pip install --disable-pip-version-check --no-input --no-compile"
    " --progress-bar off"
)
OURS = f"{_INSTALL} --no-deps -e ."
BUILD = "python -P -m minutch.kernels.build"
TOOLS = ("basename", "bash", "cat", "cksum", "cp", "dirname", "flock", "mkdir", "readlink", "tail")


class Checkout:
    """A folder with the scripts, and a PATH on which the fake is the only Python."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "checkout"
        shutil.copytree(PROJECT / "bin", self.home / "bin")
        (self.home / "pyproject.toml").write_text("[project]\n")
        (self.home / "minutch/kernels").mkdir(parents=True)
        self.change_a_kernel("kernel")
        self.log = folder / "log"
        self.path = folder / "path"
        self.path.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            if found:
                (self.path / tool).symlink_to(found)
        python = self.path / "python3"
        python.write_text(FAKE.format(bash=BASH, log=self.log))
        python.chmod(0o755)

    def run(
        self,
        script: str,
        *args: str,
        cwd: Path | None = None,
        by: Sequence[str] = (),
        **more: str,
    ) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.path), "HOME": os.environ.get("HOME", "/"), **more}
        command = [*by, str(self.home / "bin" / script), *args]
        return subprocess.run(
            command,
            env=environment,
            cwd=cwd or self.home,
            capture_output=True,
            text=True,
            check=False,
        )

    def change_a_kernel(self, source: str) -> None:
        (self.home / "minutch/kernels/sequencefile.py").write_text(source)

    def calls(self) -> list[str]:
        """Returns the arguments of the fake's calls since the last look; look-ups of versions are
        left out.
        """
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line for line in lines if line.startswith("python") and " -c " not in line]

    @property
    def installs(self) -> set[str]:
        """The calls that install what is needed and the project itself, at the same time."""
        return {OURS, f"{_INSTALL} -r {self.home / '.venv' / 'needed.txt'}"}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize("script", sorted(path.name for path in (PROJECT / "bin").iterdir()))
def test_bash_reads_it(script: str) -> None:
    assert subprocess.run([BASH, "-n", str(PROJECT / "bin" / script)], check=False).returncode == 0


@pytest.mark.parametrize(
    ("script", "handed"),
    [
        ("minutch", "python -P -m minutch inject a b"),
        ("nutch", "python -P -m minutch inject a b"),
        ("crawl", "python -P -m minutch crawl inject a b"),
        ("demo", "python -P -m tests.support.demo inject a b"),
        ("test", "python -m pytest -n auto -rs inject a b"),
    ],
)
def test_the_first_use_installs(checkout: Checkout, script: str, handed: str) -> None:
    done = checkout.run(script, "inject", "a", "b")
    assert done.returncode == 0, done.stderr
    first, *installs, last = checkout.calls()
    assert first == f"python3 -P -m venv --clear {checkout.home / '.venv'}"
    assert (set(installs), last) == (checkout.installs, handed)
    checkout.run(script, "inject", "a", "b")
    assert checkout.calls() == [handed]
    (checkout.home / "pyproject.toml").write_text("[project]\nname = 'changed'\n")
    checkout.run(script, "inject", "a", "b")
    *installs, last = checkout.calls()
    assert (set(installs), last) == (checkout.installs, handed)


@pytest.mark.parametrize("script", ["minutch", "crawl"])
def test_messages_can_repeat_what_was_typed(checkout: Checkout, script: str) -> None:
    """So that what they say can be typed: with bin/crawl it is the minutch beside it."""
    folder = checkout.home / "seeds"
    folder.mkdir()
    done = subprocess.run(
        [f"../bin/{script}"],
        env={"PATH": str(checkout.path)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "../bin/minutch\n"


def test_from_anywhere_and_through_a_link(checkout: Checkout, tmp_path: Path) -> None:
    link = tmp_path / "minutch"
    link.symlink_to(checkout.home / "bin" / "minutch")
    done = subprocess.run(
        [str(link), "x y"],
        env={"PATH": str(checkout.path)},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert checkout.calls()[-1] == "python -P -m minutch x y"


def test_no_python_is_said_clearly(checkout: Checkout) -> None:
    done = checkout.run("minutch", TOO_OLD="1")
    assert done.returncode == 1
    assert "minutch needs Python 3.11 or newer" in done.stderr
    assert not (checkout.home / ".venv").exists()


def test_a_failed_installation_shows_why_and_is_tried_again(checkout: Checkout) -> None:
    done = checkout.run("minutch", PIP_FAILS="1")
    assert done.returncode == 1
    assert "no such package" in done.stderr
    assert "the installation failed" in done.stderr
    checkout.calls()
    assert checkout.run("minutch").returncode == 0
    assert checkout.calls()[-1] == "python -P -m minutch"


def test_every_step_of_the_installation_is_said(checkout: Checkout) -> None:
    first, second, *steps, last = checkout.run("minutch").stderr.splitlines()
    assert first == f"minutch: making .venv with {checkout.path / 'python3'}"
    assert second.startswith("minutch: installing what it needs into .venv")
    assert set(steps) == {
        "minutch:   fetching the build backend",
        "minutch:   fetching the compiler of kernels (Numba)",
        "minutch:   compiling and linking kernels (about 20 s)",
        "minutch:   fetching httpx",
        "minutch:   installing packages",
    }
    assert last == "minutch: installed"
    assert "Collecting httpx>=0.28" in (checkout.home / ".venv" / "install.log").read_text()


def test_changed_kernels_are_compiled(checkout: Checkout) -> None:
    checkout.run("minutch")
    checkout.change_a_kernel("another")
    checkout.calls()
    assert "minutch: compiling and linking kernels" in checkout.run("minutch", HAS_NUMBA="1").stderr
    assert checkout.calls() == [BUILD, "python -P -m minutch"]
    assert checkout.run("minutch").stderr == ""
    checkout.calls()
    checkout.change_a_kernel("a third")
    assert checkout.run("minutch").returncode == 0
    *installs, last = checkout.calls()
    assert (set(installs), last) == (checkout.installs, "python -P -m minutch")


def test_kernels_that_cannot_be_compiled_stop_the_script(checkout: Checkout) -> None:
    checkout.run("minutch")
    checkout.change_a_kernel("another")
    done = checkout.run("minutch", HAS_NUMBA="1", BUILD_FAILS="1")
    assert done.returncode == 1
    assert "no linker" in done.stderr
    checkout.calls()
    assert checkout.run("minutch", HAS_NUMBA="1").returncode == 0
    assert checkout.calls()[0] == BUILD


def test_lint_runs_all_its_tools_and_fails_if_one_does(checkout: Checkout) -> None:
    tools = [
        "python -m ruff check .",
        "python -m ruff format --check .",
        "python -m codespell_lib",
        "python -m mypy",
    ]
    assert checkout.run("lint").returncode == 0
    assert checkout.calls()[-4:] == tools
    assert checkout.run("lint", RUFF_FAILS="1").returncode == 1
    assert checkout.calls() == tools


@pytest.mark.skipif(os.getuid() != 0 or not SETPRIV, reason="needs root and setpriv")
def test_a_prepared_checkout_works_for_every_user() -> None:
    """Who may not write to it is told what to do where it has changed since."""
    nobody = [SETPRIV, "--reuid=65534", "--regid=65534", "--clear-groups"]
    with TemporaryDirectory(dir="/tmp") as folder:  # where others may look, too
        Path(folder).chmod(0o755)
        checkout = Checkout(Path(folder))
        refused = checkout.run("nutch", by=nobody)
        assert checkout.run("minutch").returncode == 0
        checkout.log.chmod(0o666)
        done = checkout.run("nutch", "inject", by=nobody)
        assert (done.returncode, done.stderr) == (0, "")
        assert checkout.calls()[-1] == "python -P -m minutch inject"
        (checkout.home / "pyproject.toml").write_text("[project]\nname = 'changed'\n")
        for answer in (refused, checkout.run("nutch", by=nobody)):
            assert answer.returncode == 1
            assert "they run bin/minutch once, after which it works for everybody" in answer.stderr


def test_the_tests_run_in_the_checkout(checkout: Checkout, tmp_path: Path) -> None:
    assert checkout.run("test", "tests/x.py", cwd=tmp_path).returncode == 0
    assert checkout.calls()[-1] == "python -m pytest -n auto -rs tests/x.py"


def test_an_extra_brings_those_that_it_names(checkout: Checkout) -> None:
    """pip cannot look them up in a project that is not installed yet."""
    (checkout.home / "pyproject.toml").write_text(
        "[project]\ndependencies = ['httpx>=0.28']\n[project.optional-dependencies]\n"
        "tables = ['pyarrow']\ntest = ['pytest', 'minutch[tables]']\ndev = ['ruff']\n"
    )
    script = f'source "{checkout.home}/bin/_venv.sh"; python="{sys.executable}"; needs test'
    done = subprocess.run(
        [BASH, "-c", script], cwd=checkout.home, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["httpx>=0.28", "pytest", "pyarrow"]
