"""indexchecker on the golden site: the documents that Nutch printed, and its exit codes. Times are
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cycle.index.commands import Golden
from tests.golden.test_fetch import SMALL, Site
from tests.support.golden import needs_golden

CASES = (
    "basic",
    "conf-anchor",
    "conf-more",
    "conf-static",
    "doindex",
    "jexl-false",
    "nosuch_html",
    "r301",
    "robots",
)
"""The runs that Nutch came through; in the others it dies of a field without a value."""
_LEFT_OUT = re.compile(r"^(?:tstamp|date) :\t.*\n", re.MULTILINE)
_LOG = re.compile(r"^\d{4}-\d\d-\d\d .*\n", re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(SMALL, tmp_path_factory.mktemp("golden") / "site")
    yield site
    site.process.kill()
    site.process.wait()


def check(site: Site, run: Golden, **properties: str) -> tuple[int, str]:
    """Exit code and output of a run's words."""
    code, out, _ = run.run(
        *(word.replace("8832", site.port.decode()) for word in run.words),
        http__filter__ipaddress__include="loopback",
        http__agent__name="minutch-oracle",
        parser__character__encoding__detect="false",
        **properties,
    )
    return code, out


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that paths of writers are relative to."""
    monkeypatch.chdir(tmp_path)


@needs_golden("commands/indexchecker/{case}")
@pytest.mark.parametrize("case", CASES)
def test_as_nutch_prints_it(site: Site, case: str) -> None:
    run = Golden("indexchecker", case)
    printed = _LOG.sub("", run.console.partition("\n")[2].partition("\n")[2]).partition(
        "\n# stderr\n"
    )[0]
    code, out = check(site, run)
    assert code % 256 == run.exit_code
    ours, theirs = (
        _LEFT_OUT.sub("", text).strip() for text in (out, printed.partition("[exit")[0])
    )
    assert ours == theirs.replace("8832", site.port.decode())


@needs_golden("commands/indexchecker/page1_html")
def test_a_host_without_a_public_suffix(site: Site) -> None:
    """Nutch dies of the field `tld`, which has no value."""
    run = Golden("indexchecker", "page1_html")
    assert "NullPointerException" in run.console
    code, out = check(
        site, run, plugin__includes="protocol-http|parse-html|index-(basic|static)|tld"
    )
    assert code == 0
    assert "src :\tgolden\n" in out
    assert "tld" not in out
