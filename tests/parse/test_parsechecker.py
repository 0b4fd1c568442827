"""parsechecker against the demo site: what it prints, its exit codes and options."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.errors import UsageError
from minutch.job import JobContext
from minutch.parse.parsechecker import run
from tests.support.pages import configuration

PAGE = "<html><head><title>T</title></head><body>text <a href='http://e.org/x'>a link</a></body></html>"


def check(*args: str, stdin: str = "", **properties: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    conf = configuration("protocol-file|parse-(html|text)", **properties).freeze()
    context = JobContext(conf, FakeClock(0), io.StringIO(), io.StringIO(), io.StringIO(stdin))
    code = run(list(args), context)
    assert isinstance(context.out, io.StringIO)
    assert isinstance(context.err, io.StringIO)
    return code, context.out.getvalue(), context.err.getvalue()


@pytest.fixture
def page(tmp_path: Path) -> str:
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    return f"file:{path}"


def test_a_page(page: str) -> None:
    code, out, _ = check(page)
    assert code == 0
    lines = out.splitlines()
    assert lines[:6] == [
        page,
        "Version: 5",
        "Status: success(1,0)",
        "Title: T",
        "Outlinks: 1",
        "  outlink: toUrl: http://e.org/x anchor: a link",
    ]
    assert "text a link" not in out


def test_its_text(page: str) -> None:
    assert check("-dumpText", page)[1].endswith("\nT text a link\n")


def test_forced_type(page: str) -> None:
    assert "<title>T</title>" in check("-dumpText", "-forceAs", "text/plain", page)[1]
    code, _, err = check("-forceAs", "image/png", page)
    assert code == 255
    assert "image/png" in err


def test_pages_from_stdin(page: str) -> None:
    code, out, err = check("-stdin", stdin=f"{page}\nfile:/no/such/file\n{page}\n")
    assert code == 0
    assert out.count("Version: 5") == 2
    assert "Fetch failed with protocol status: notfound(14)" in err


def test_failures(page: str) -> None:
    code, out, err = check("file:/no/such/file")
    assert (code, out) == (255, "\n")
    assert err.startswith("Fetch failed with protocol status: notfound(14)")
    assert check("nosuch:thing")[0] == 255


@pytest.mark.parametrize("args", [[], ["-forceAs"], ["-unknown", "http://e.org/"], ["http://e.org/", "-unknown"]])
def test_usage(args: list[str]) -> None:
    if args == ["http://e.org/", "-unknown"]:
        args = ["http://e.org/", "-unknown", "x"]
    with pytest.raises(UsageError) as caught:
        check(*args)
    assert caught.value.exit_code == 255
