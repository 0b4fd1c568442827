"""URLUtil and ResolveUrls by class name."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from minutch.commands import cli
from minutch.conf import Configuration
from minutch.errors import UrlError, UsageError
from minutch.urls import hostname
from tests.support.commands import resolveurls, urlutil
from tests.support.nutchruns import context_for


def test_registered_domains() -> None:
    context, printed = context_for(Configuration.load([]))
    for url in ("http://www.a.example.co.uk/x", "http://127.0.0.1/"):
        assert urlutil.run([url], context) == 0
    assert printed.getvalue().splitlines() == ["example.co.uk", "127.0.0.1"]
    with pytest.raises(UrlError):
        urlutil.run(["no url"], context)
    with pytest.raises(UsageError):
        urlutil.run([], context)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """No question leaves the machine: these names have addresses, others have none."""
    known = {"localhost", "127.0.0.1", "a.example"}
    asked: set[str] = set()

    def getaddrinfo(host: str, port: None) -> list[str]:
        asked.add(host)
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return ["address"]

    monkeypatch.setattr(hostname.socket, "getaddrinfo", getaddrinfo)
    return asked


def test_resolving_ends(names: set[str], tmp_path: Path) -> None:
    """The order is that of the file; every line is counted once."""
    (tmp_path / "u.txt").write_text(
        "http://localhost/x\nhttp://127.0.0.1:80/\n\nhttp://nosuch.invalid/\nbad\n" * 50
    )
    context, printed = context_for(Configuration.load([]))
    assert resolveurls.run(["-urls", str(tmp_path / "u.txt"), "-numThreads", "3"], context) == 0
    lines = printed.getvalue().splitlines()
    found = [line.rpartition(",")[0] for line in lines[:4]]
    assert found == [
        "Resolved: localhost",
        "Resolved: 127.0.0.1",
        "Error Resolving: nosuch.invalid",
        "Error Resolving: null",
    ]
    assert lines[-1].startswith("Total: 200, Resolved: 100, Errored: 100, Average Time: ")
    assert names == {"localhost", "127.0.0.1", "nosuch.invalid"}


def test_nothing_to_resolve(tmp_path: Path) -> None:
    (tmp_path / "u.txt").write_text("")
    context, printed = context_for(Configuration.load([]))
    assert resolveurls.run(["-urls", str(tmp_path / "u.txt")], context) == 0
    assert printed.getvalue() == "Total: 0, Resolved: 0, Errored: 0, Average Time: 0\n"
    assert resolveurls.run([], context) == 0
    assert "usage: ResolveUrls" in printed.getvalue()
    with pytest.raises(OSError, match="nosuch"):
        resolveurls.run(["-urls", str(tmp_path / "nosuch")], context)


def test_a_name_that_hangs_does_not_hold_up_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(hostname.socket, "getaddrinfo", lambda *_: answered.wait(60))
    answers = hostname.look_up_hosts((f"http://h{n}/" for n in range(10)), 1)
    threading.Timer(0.05, answered.set).start()
    assert next(answers).found
    answers.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["org.apache.nutch.tools.DmozParser", "tools.DmozParser"])
def test_what_came_after_dmoz(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "content.rdf.u8"]) == 255
    error = capsys.readouterr().err
    assert error.startswith(
        f"error: {name} is no longer a command\nhint: the directory closed in 2017; "
    )
