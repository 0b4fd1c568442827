"""The report in a browser: sorting, narrow windows, the dark, accessibility, and a crawl that means
harm.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from minutch.inspect.report import reportfile
from tests.inspect.report.conftest import Written
from tests.support.devtools import Chromium, needs_chromium

pytestmark = [pytest.mark.browser, needs_chromium]


@pytest.fixture(scope="module")
def reports(
    harbours: Written, hostile: Written, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The addresses of reports."""
    folder, found = tmp_path_factory.mktemp("reports"), {}
    for name, written in (("harbours", harbours), ("hostile", hostile)):
        path = folder / f"{name}.html"
        path.write_text(reportfile.to_html(written.facts, written.facts), encoding="utf-8")
        found[name] = path.as_uri()
    return found


@pytest.fixture(autouse=True)
def wide_and_light(browser: Chromium) -> None:
    browser.screen(1280)
    browser.send("Emulation.setScriptExecutionDisabled", value=False)
    browser.send("Log.enable")


def column(browser: Chromium, caption: str, number: int) -> list[str]:
    """The texts of a column of a table."""
    rows = (
        "[...document.querySelectorAll('caption')].find(c => c.innerText ==="
        f" {caption!r}).parentNode.tBodies[0].rows"
    )
    return list(browser.run(f"[...{rows}].map(row => row.cells[{number}].innerText)"))


def press(browser: Chromium, caption: str, number: int) -> str | None:
    """Click the head of a column; how it says that it is sorted."""
    head = (
        "[...document.querySelectorAll('caption')].find(c => c.innerText ==="
        f" {caption!r}).parentNode.tHead.rows[0]"
    )
    browser.run(f"{head}.cells[{number}].querySelector('button').click()")
    found = browser.run(f"{head}.cells[{number}].getAttribute('aria-sort')")
    return None if found is None else str(found)


def complaints(browser: Chromium) -> list[object]:
    """Returns the browser's complaints about a page: errors of scripts, refused loads."""
    browser.run("1")
    kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    return [event["params"] for event in browser.events if event.get("method") in kinds]


@pytest.mark.parametrize("name", ["harbours", "hostile"])
def test_nothing_is_asked_for_and_nothing_fails(
    browser: Chromium, reports: dict[str, str], name: str
) -> None:
    browser.go(reports[name])
    threading.Event().wait(0.3)  # for what might come later
    assert complaints(browser) == []
    assert [url for url in browser.requested() if not url.startswith("data:")] == [reports[name]]


def test_a_hostile_crawl_is_text(browser: Chromium, reports: dict[str, str]) -> None:
    browser.go(reports["hostile"])
    threading.Event().wait(0.3)
    assert browser.run("document.title") == "Crawl report: <img src=x onerror=alert(1)>"
    assert browser.run("document.images.length") == 0
    assert browser.run("[...document.scripts].map(s => s.type)") == ["application/json", ""]
    assert (
        browser.run("[...document.links].filter(a => !/^(https?|file):/.test(a.href)).length") == 0
    )
    assert any("</script><script>" in text for text in column(browser, "Broken links", 0))
    assert browser.run("document.location.href") == reports["hostile"]


def test_tables_sort(browser: Chromium, reports: dict[str, str]) -> None:
    browser.go(reports["harbours"])
    for caption, number in (("Most URLs", 1), ("Rounds", 0), ("Response codes", 1)):
        original = column(browser, caption, number)
        assert press(browser, caption, number) == "descending"
        numbers = [int(text.replace(",", "")) for text in column(browser, caption, number)]
        assert numbers == sorted(numbers, reverse=True)
        assert press(browser, caption, number) == "ascending"
        assert [int(text.replace(",", "")) for text in column(browser, caption, number)] == sorted(
            numbers
        )
        assert sorted(column(browser, caption, number)) == sorted(original)
    assert press(browser, "Most URLs", 0) == "ascending"
    hosts = column(browser, "Most URLs", 0)
    assert hosts == sorted(hosts) and len(hosts) > 3
    press(browser, "Rounds", 3)  # sizes and times sort by what they are, not by their words
    assert browser.run("document.querySelectorAll('[aria-sort]').length") == 3


def test_sorting_by_the_keyboard(browser: Chromium, reports: dict[str, str]) -> None:
    browser.go(reports["harbours"])
    browser.run("document.querySelector('#hosts thead button').focus()")
    browser.press("Enter")
    hosts = column(browser, "Most URLs", 0)
    assert hosts == sorted(hosts)
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_without_scripts_all_is_there(browser: Chromium, reports: dict[str, str]) -> None:
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    browser.go(reports["harbours"])
    strings = browser.strings()
    assert "Broken links" in strings and "BUTTON" not in strings


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
def test_everybody_can_read_it(
    browser: Chromium, reports: dict[str, str], axe: str, width: int, dark: bool
) -> None:
    """axe-core finds nothing, nothing is wider than the window, no letters lie on top of each
    other.
    """
    browser.screen(width, dark=dark)
    for name in ("harbours", "hostile") if width == 400 else ("harbours",):
        browser.go(reports[name])
        assert browser.run("document.documentElement.scrollWidth") <= width, name
        assert browser.run("getComputedStyle(document.body).backgroundColor") == (
            "rgb(16, 20, 24)" if dark else "rgb(244, 246, 248)"
        )
        assert overlapping(browser) == []
        browser.send("Runtime.evaluate", expression=axe)
        found = browser.run("axe.run(document).then(r => r.violations)")
        assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == [], (
            name
        )
        if folder := os.environ.get("MINUTCH_PICTURES"):
            (Path(folder) / f"report-{name}-{width}-{'dark' if dark else 'light'}.png").write_bytes(
                browser.picture()
            )


@pytest.mark.parametrize("width", [400, 1280])
def test_lists_of_long_addresses_are_not_cut_off(
    browser: Chromium, reports: dict[str, str], width: int
) -> None:
    """Broken links with long addresses and long anchors were wider than their section."""
    browser.screen(width)
    browser.go(reports["harbours"])
    script = """
    const cell = document.querySelector('#broken-title ~ .wide tbody tr');
    const long = 'https://www.example.org/' + 'reference-manual/'.repeat(9);
    cell.querySelectorAll('a bdi').forEach(e => { e.textContent = long; });
    cell.querySelectorAll('li > bdi').forEach(e => { e.textContent = 'an anchor '.repeat(20); });
    [...document.querySelectorAll('.wide:has(.stacked)')].map(e => e.scrollWidth - e.clientWidth)"""
    found = browser.run(script)
    assert len(found) > 1 and set(found) == {0}


def test_the_first_column_stays_in_a_narrow_window(
    browser: Chromium, reports: dict[str, str]
) -> None:
    """Rows keep their names while the rest of a wide table is looked at."""
    browser.screen(400)
    browser.go(reports["harbours"])
    script = """
    [...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth).map(e => {
      e.scrollLeft = 999;
      const cell = e.querySelector('tbody th').getBoundingClientRect();
      return [e.scrollLeft > 0, Math.round(cell.left - e.getBoundingClientRect().left)];
    })"""
    found = browser.run(script)
    assert len(found) > 2 and all(one == [True, 0] for one in found)


def overlapping(browser: Chromium) -> list[list[str]]:
    """Labels of one plot that overlap each other."""
    script = """
    [...document.querySelectorAll('.plot svg')].flatMap(svg => {
      const texts = [...svg.querySelectorAll('text')].map(t => [
        t.textContent, t.getBoundingClientRect()])
        .filter(([, box]) => box.width);
      return texts.flatMap(([a, x], i) => texts.slice(i + 1).filter(([, y]) =>
        x.left < y.right && y.left < x.right &&
                                                    x.top < y.bottom && y.top < x.bottom)
        .map(([b]) => [a, b]));
    })"""
    return list(browser.run(script))
