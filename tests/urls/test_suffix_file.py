"""A public suffix list in the configuration folder is taken, as with Nutch."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from minutch import processwide
from minutch.commands import flow
from minutch.commands.cli import run_job
from minutch.conf import Configuration


def test_the_configurations_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "effective_tld_names.dat").write_text("org\nfoo.org\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("http://x.a.foo.org/\nhttp://b.foo.org/\n"))
    values = {"plugin.includes": "urlfilter-domain", "urlfilter.domain.rules": "a.foo.org"}
    command = flow.find("filterchecker")
    assert command is not None
    try:
        assert run_job(command, ["-stdin"], Configuration.load([tmp_path]).with_values(values)) == 0
    finally:
        processwide.change(suffix_list=None)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "+http://x.a.foo.org/",
        "-http://b.foo.org/",
    ]
