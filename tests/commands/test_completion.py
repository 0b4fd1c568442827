"""Shell completion: what the shells themselves make of the scripts."""

from __future__ import annotations

import io
import shutil
import subprocess

import pytest

from minutch.commands import flow, pages
from minutch.commands.completion import options_of
from minutch.conf import Configuration
from minutch.errors import UsageError
from minutch.job import JobContext
from tests.support.commands import command

run = command("completion").run


def script(shell: str) -> str:
    out = io.StringIO()
    assert run([shell], JobContext(Configuration.load([]), out=out)) == 0
    return out.getvalue()


def test_options_are_those_of_the_usage() -> None:
    command = flow.find("updatedb")
    assert command is not None
    assert options_of(command) == [
        "-dir",
        "-force",
        "-normalize",
        "-filter",
        "-noAdditions",
        "-D",
        "--help",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["minutch", "rea"], ["readdb", "readhostdb", "readlinkdb", "readseg"]),
        (["minutch", "updatedb", "crawl", "-no"], ["-normalize", "-noAdditions"]),
        (["minutch", "crawl", "--dedup-g"], ["--dedup-group"]),
        (["minutch", "inject", "/etc/host"], None),
        (["minutch", "help", "cl"], ["clean", "cluster"]),
        (["minutch", "help", "docs/r"], ["docs/report"]),
        (["minutch", "export", "w"], ["wacz", "warc", "wat", "wet"]),
        (["minutch", "import", "wac"], ["wacz"]),
        (["minutch", "crawl", "-D", "fetcher.server."], None),
    ],
)
def test_bash(line: list[str], expected: list[str] | None) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    words = " ".join(line)
    call = (
        f"COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _minutch; printf '%s\\n'"
        ' "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        [bash, "-c", f"{script('bash')}\n{call}"], capture_output=True, text=True, check=True
    )
    found = done.stdout.split()
    if expected is None:
        assert "/etc/hosts" in found or found == [
            "fetcher.server.delay=",
            "fetcher.server.min.delay=",
        ]
    else:
        assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_others_read_their_script(shell: str) -> None:
    program = shutil.which(shell)
    text = script(shell)
    assert all(name in text for name in [*flow.commands(), *pages.names(), "help"])
    if program is None:
        pytest.skip(f"no {shell}")
    subprocess.run([program, "-n"], input=text, text=True, check=True)


def test_no_other_shell() -> None:
    with pytest.raises(UsageError, match="no completion for 'csh', only for bash, zsh, fish"):
        run(["csh"], JobContext(Configuration()))
