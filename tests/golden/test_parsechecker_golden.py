"""parsechecker with all parse plugins, on the golden site: what Nutch printed, and its exit codes.

Times and the guess of a language are left out (Nutch asks Optimaize, minutch py3langid), and
`Connection`: Nutch asks for the end of each connection.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator

import pytest

from minutch.clock import SystemClock
from minutch.conf import Configuration
from minutch.job import JobContext
from tests.golden.test_fetch import SMALL, Site
from tests.support.commands import command
from tests.support.golden import GOLDEN, needs_golden

run = command("parsechecker").run

CASES = (
    "forceas",
    "gz_html",
    "home",
    "metatarget_html",
    "noindex_html",
    "nosuch_html",
    "page1_html",
    "r301",
    "rmeta_html",
    "utf16_html",
)
_LEFT_OUT = re.compile(r"^  (?:nutch\.fetch\.time|language|Connection) = .*\n", re.MULTILINE)
_LOG = re.compile(r"^\d{4}-\d\d-\d\d .*\n", re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(SMALL, tmp_path_factory.mktemp("golden") / "site")
    yield site
    site.process.kill()
    site.process.wait()


@needs_golden("commands/parsechecker/{case}", "commands/conf/reparse")
@pytest.mark.parametrize("case", CASES)
def test_as_nutch_prints_it(site: Site, case: str) -> None:
    console = (GOLDEN / "commands" / "parsechecker" / case / "console.txt").read_text()
    command, _, printed = console.partition("\n")
    printed = printed.partition("\n")[2]
    port = site.port.decode()
    words = [word.replace("8832", port) for word in shlex.split(command)[3:]]
    out, _, err = _LOG.sub("", printed).partition("\n# stderr\n")
    folders = [GOLDEN / "commands/conf/reparse", SMALL / "conf-rich"]
    values = {
        "http.filter.ipaddress.include": "loopback",
        "http.agent.name": "minutch-oracle",
        "parser.character.encoding.detect": "false",
    }
    context = JobContext(
        Configuration.load(folders, overrides=values).freeze(),
        SystemClock(),
        io.StringIO(),
        io.StringIO(),
    )
    code = run(words, context)
    assert isinstance(context.out, io.StringIO)
    expected = int(re.findall(r"\[exit (\d+)\]", console)[0])
    assert code % 256 == expected
    ours, theirs = (_LEFT_OUT.sub("", text).strip() for text in (context.out.getvalue(), out))
    if expected:
        assert isinstance(context.err, io.StringIO)
        assert context.err.getvalue().strip() == err.partition("[exit")[0].strip().replace(
            "8832", port
        )
    assert ours == theirs.partition("[exit")[0].strip().replace("8832", port).replace("8810", port)
