"""TextProfileSignature and EncodingDetector by class name."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.cycle.parse.signature import TextProfileSignature
from minutch.errors import StoreError, UsageError
from minutch.records.protocol import Content
from tests.support.commands import encodingdetector, textprofilesignature
from tests.support.golden import needs_golden
from tests.support.nutchruns import COMMANDS, context_for


@needs_golden("commands/classes/textprofile/texts")
def test_signatures_of_files() -> None:
    """Nutch's own main ends with a NullPointerException at the first file."""
    folder = COMMANDS / "classes/textprofile/texts"
    conf = Configuration.load([])
    context, printed = context_for(conf)
    assert textprofilesignature.run([str(folder)], context) == 0
    lines = [line.split("\t") for line in printed.getvalue().splitlines()]
    assert [name for name, _ in lines] == [str(folder / f"{number}.txt") for number in range(1, 5)]
    for name, signature in lines:
        data = Path(name).read_bytes()
        text = data.decode().rstrip("\n")
        assert signature == TextProfileSignature(conf).calculate(Content(content=data), text).hex()
    assert len({signature for _, signature in lines}) > 1


def test_hostile_files_have_signatures(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "folder").mkdir()
    context, printed = context_for(Configuration.load([]))
    assert textprofilesignature.run([str(tmp_path)], context) == 0
    assert len(printed.getvalue().splitlines()) == 2
    with pytest.raises(StoreError):
        textprofilesignature.run([str(tmp_path / "nosuch")], context)
    with pytest.raises(UsageError):
        textprofilesignature.run([], context)


@pytest.mark.parametrize(
    ("page", "name"),
    [
        (b'<html><meta charset="koi8-r">', "koi8-r"),
        ("<html>\u017elu\u0165ou\u010dk\u00fd k\u016f\u0148 \u4e2d\u6587".encode(), "utf-8"),
        (b"\xff\xfe<\0h\0t\0m\0l\0>\0", "utf-16le"),
        (b"", "windows-1252"),
    ],
)
def test_charsets(page: bytes, name: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(page)
    context, printed = context_for(Configuration.load([]))
    assert encodingdetector.run([str(tmp_path / "page.html")], context) == 0
    assert printed.getvalue() == f"Guessed encoding: {name}\n"
