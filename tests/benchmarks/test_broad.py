"""The benchmark of a broad fetch: its bound, its audit, and a small run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.broad.audit import audit
from tests.benchmarks.broad.bound import ideal, limited, mean_latencies
from tests.benchmarks.broad.cases import CASES, QUICK, Case, Mode
from tests.benchmarks.broad.goals import CPU, FASTER, IDLE, verdicts
from tests.benchmarks.broad.measuring import Options, measure
from tests.benchmarks.broad.rates import compare
from tests.benchmarks.broad.requestlog import LEFT, QUESTION, REQUEST, ROBOTS, Requests
from tests.benchmarks.broad.rounds import compare as compare_rounds
from tests.benchmarks.broad.rounds import idle
from tests.benchmarks.broad.runs import Sample
from tests.benchmarks.broad.tables import by_measure
from tests.benchmarks.broad.web import Plan, Web


def log(*rows: tuple[float, float, int, int, int]) -> Requests:
    """Requests: begin and end in seconds, host, page, status."""
    return np.array(
        [(int(b * 1e6), int(e * 1e6), host, page, status, 0) for b, e, host, page, status in rows],
        REQUEST,
    )


def polite(web: Web) -> Requests:
    """What a server sees of an ideal crawler."""
    rows = []
    for host, size in enumerate(web.sizes.tolist()):
        time = 100.0
        for slot in range(size + 1):
            took = int(web.latencies[web.first[host] + slot]) / 1000
            rows.append((time, time + took, host, slot - 1, 200 if slot else 404))
            time += took + (float(web.promised[host]) if slot else 0)
    return log(*rows)


@pytest.fixture(scope="module")
def web() -> Web:
    return Web(Plan(50, 400, 1.0, 0.2))


# -- the bound -------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_the_bound_is_when_an_ideal_crawler_has_each_page(web: Web) -> None:
    requests = polite(web)
    counted = requests[(requests["page"] >= 0) & web.counted[requests["host"]]]
    assert ideal(web).ends == pytest.approx(np.sort(counted["end"] / 1e6 - 100), abs=1e-5)


def test_the_bound_of_two_hosts() -> None:
    web = Web(Plan(2, 6, 2.0, skew=0.0, robots=False))
    web.latencies[:] = [100, 200, 300, 400, 500, 10, 10, 10]  # robots.txt and three pages, twice
    bound = ideal(web)
    assert bound.ends.tolist() == pytest.approx([0.3, 0.51, 2.52, 2.6, 4.53, 5.0])
    assert bound.done(2.55) == 3 and bound.within(0.4, 2.55) == 2
    assert bound.time(0.5) == pytest.approx(2.52) and bound.time(1.0) == pytest.approx(5.0)
    assert mean_latencies(web).tolist() == pytest.approx([0.3, 0.01])


def test_the_bound_of_a_crawler_with_little_cpu(web: Web) -> None:
    whole = ideal(web)
    assert limited(web, 1e9).ends == pytest.approx(whole.ends, abs=1e-3)
    slow = limited(web, 10.0)
    assert slow.pages == whole.pages and (slow.ends >= whole.ends - 1e-9).all()
    assert slow.time(1.0) >= (web.counted_pages + web.counted.sum() - 1) / 10
    one = limited(Web(Plan(1, 3, 1.0, robots=False)), 10.0)
    assert one.ends == pytest.approx(ideal(Web(Plan(1, 3, 1.0, robots=False))).ends, abs=0.1)


def test_an_ideal_fetch_has_all_of_the_bound(web: Web) -> None:
    samples = [Sample(float(at), 0.5 * at, 0.0, 10**8, 10**8, 10**8, 0.0) for at in range(90, 300)]
    found = compare(polite(web), web, ideal(web), samples)
    for what, values in by_measure(found.shares).items():
        assert values and all(value == pytest.approx(1, abs=0.1) for value in values), what
    assert all(share.free and share.done == pytest.approx(1) for share in found.shares)
    assert all(ours == pytest.approx(bound) for _, ours, bound, _ in found.times)
    assert found.rows[0].cores == pytest.approx(0.5) and found.rows[0].megabytes == 100
    assert found.rows[0].hosts == web.counted.sum() and found.rows[0].rate == found.rows[0].bound


def test_a_fetch_that_is_not_complete_has_no_times_and_seconds_without_room_do_not_count(
    web: Web,
) -> None:
    samples = [Sample(float(at), 0.5 * at, 0.45 * at, 0, 0, 0, 0.0) for at in range(90, 300)]
    requests = polite(web)
    found = compare(requests[requests["end"] < 106e6], web, ideal(web), samples)
    assert np.isnan(found.times[-1][1]) and not np.isnan(found.times[0][1])
    assert found.shares and not any(share.free for share in found.shares)  # the CPU
    idle = [Sample(float(at), 0.0, 0.0, 0, 0, 0, 0.0) for at in range(90, 300)]
    assert all(share.free for share in compare(requests, web, ideal(web), idle).shares)
    placed = compare(requests, web, ideal(web), idle, places=2).shares
    assert not placed[0].free and placed[-1].free


# -- the audit -------------------------------------------------------------------------------------


def test_the_audit_finds_nothing_in_a_polite_fetch(web: Web) -> None:
    found = audit(polite(web), web)
    assert found.passed and not found.violations and found.parallel == 1
    assert found.excess == pytest.approx(0, abs=1e-5)
    assert found.twice == found.never == 0 and found.requests == web.pages + 50


def test_the_audit_finds_a_gap_that_is_too_short(web: Web) -> None:
    requests = polite(web)
    host = int(np.flatnonzero(web.counted & (web.sizes > 3))[0])
    at = int(np.flatnonzero((requests["host"] == host) & (requests["page"] == 2))[0])
    requests["begin"][at] -= 100_000
    found = audit(np.random.default_rng(1).permutation(requests), web)
    (violation,) = found.violations
    assert not found.passed and found.parallel == 1
    assert (violation.host, violation.pages, violation.statuses) == (host, (1, 2), (200, 200))
    promised = float(web.promised[host])
    assert violation.begin - violation.end == pytest.approx(promised - 0.1, abs=1e-5)
    assert found.excess == pytest.approx(-0.1, abs=1e-5)
    assert f"host {host}: page 1 (status 200) ends at" in str(violation)


def test_the_audit_finds_two_in_parallel(web: Web) -> None:
    requests = polite(web)
    host = int(np.flatnonzero(web.sizes > 3)[0])
    at = int(np.flatnonzero((requests["host"] == host) & (requests["page"] == 2))[0])
    requests["begin"][at] = requests["begin"][at - 1]
    requests["end"][at] = requests["end"][at - 1] + 50_000
    found = audit(requests, web)
    assert found.parallel == 2 and len(found.violations) == 1


def test_only_after_robots_txt_a_page_may_come_at_once() -> None:
    web = Web(Plan(1, 3, 1.0, robots=False))
    first = (0.0, 0.1, 0, ROBOTS, 404), (0.1, 0.2, 0, 0, 200)
    assert audit(log(*first), web).passed
    assert audit(log(*first, (1.2, 1.3, 0, 1, 200)), web).passed
    again = audit(log(*first, (0.3, 0.4, 0, ROBOTS, 404), (0.5, 0.6, 0, 1, 200)), web)
    assert [violation.pages for violation in again.violations] == [(0, ROBOTS)]
    overlapping = audit(log((0.0, 0.1, 0, ROBOTS, 404), (0.05, 0.2, 0, 0, 200)), web)
    assert len(overlapping.violations) == 1 and overlapping.parallel == 2
    assert audit(log((0.0, 0.1, 0, ROBOTS, 404), (0.0, 0.0, 0, QUESTION, 0)), web).passed


def test_a_long_request_counts_until_its_end_whatever_came_between() -> None:
    web = Web(Plan(1, 3, 1.0, robots=False))
    found = audit(log((0, 9, 0, 0, LEFT), (2, 3, 0, 1, 200), (5, 6, 0, 2, 200)), web)
    assert [violation.end for violation in found.violations] == [9, 9]


def test_the_end_of_a_request_that_the_client_broke_off_is_known_less_exactly() -> None:
    web = Web(Plan(1, 3, 1.0, robots=False))
    for status, gap, polite_ in ((200, 0.985, True), (200, 0.95, False), (LEFT, 0.95, True)):
        assert audit(log((0, 1, 0, 0, status), (1 + gap, 3, 0, 1, 200)), web).passed is polite_
    assert not audit(log((0, 1, 0, 0, LEFT), (1.85, 3, 0, 1, 200)), web).passed


def test_pages_asked_twice_and_never(web: Web) -> None:
    requests = polite(web)
    host = int(np.flatnonzero(web.counted & (web.sizes > 3))[0])
    at = int(np.flatnonzero((requests["host"] == host) & (requests["page"] == 2))[0])
    requests["page"][at] = 1
    found = audit(requests, web)
    assert (found.twice, found.never) == (1, 1)


# -- rounds ----------------------------------------------------------------------------------------


def linked() -> Web:
    """Two hosts of two pages each, the first one's home is the seed: slots 1 and 2, 4 and 5."""
    web = Web(Plan(2, 4, 1.0, skew=0.0, robots=False, links=1))
    web.targets[:] = [[1], [4], [1], [1], [2], [1]]
    return web


def test_a_second_is_idle_if_a_page_that_is_asked_for_later_might_have_been() -> None:
    first = (0.0, 0.1, 0, ROBOTS, 404), (0.1, 0.2, 0, 0, 200)
    # the first answer leads to the other host, which may be asked at once: idle from 0.2 to 5
    late = (5.0, 5.1, 1, ROBOTS, 404), (5.1, 5.2, 1, 0, 200)
    assert idle(log(*first, *late), linked()) == pytest.approx(4.8)
    # its own host had its pause until 1.2, and the link to its second page was known at 5.2
    assert idle(log(*first, *late, (5.3, 5.4, 0, 1, 200)), linked()) == pytest.approx(4.9)
    # none is idle while another is in flight, whatever ends first, and questions are no requests
    held = (0.15, 5.0, 0, ROBOTS, 404), (1.0, 1.1, 1, QUESTION, 0)
    assert idle(log(*first, *held, *late), linked()) == 0


def test_pauses_and_pages_that_nobody_asks_for_are_not_idle() -> None:
    web = linked()
    web.targets[1] = 2
    first = (0.0, 0.1, 0, ROBOTS, 404), (0.1, 0.2, 0, 0, 200)
    assert idle(log(*first, (1.2, 1.3, 0, 1, 200)), web) == 0
    assert idle(log(*first, (1.5, 1.6, 0, 1, 200)), web) == pytest.approx(0.3)
    assert idle(log(*first, (9.0, 9.1, 1, ROBOTS, 404)), web) == 0
    assert idle(log(), web) == 0


# -- a run -----------------------------------------------------------------------------------------


def test_cases_have_names_of_their_own() -> None:
    names = [case.name for case in (*CASES, *QUICK)]
    assert len(set(names)) == len(names)


def test_figures_to_be_reached() -> None:
    few = Case("few", Mode.CPU, Plan(20, 100, 0.0))
    many = Case("many", Mode.CPU, Plan(2000, 4000, 0.0))
    rate = Case("rate", Mode.RATE, Plan(20, 100, 1.0))
    found = {
        many: {CPU: 1400.0, "violations": 0.0},
        few: {CPU: 1000.0, "violations": 1.0},
        rate: {"99% by bound": float("nan"), "first request": 9.0},
    }
    assert [(one.case, one.figure, one.reached) for one in verdicts(found)] == [
        ("many", "violations", True),
        ("few", "violations", False),
        ("rate", "99% by bound", False),
        ("many", f"{CPU}, times that of few", False),
    ]


@pytest.mark.slow  # a whole fetch
def test_a_small_fetch_is_polite_and_complete(tmp_path: Path) -> None:
    plan = Plan(20, 50, 0.2, 0.3, median=30.0)
    web = Web(plan)
    assert web.counted_pages < web.pages
    options = Options({"http.timeout": "1000"}, 20.0, 0, tmp_path)
    result = measure(Case("small", Mode.RATE, plan), options)
    assert result.polite, result.text
    assert result.figures["violations"] == 0 and result.figures["100% by bound"] >= 0.99
    assert " 0 pages answered twice, 0 never." in result.text


@pytest.mark.slow  # two whole crawls
def test_a_small_crawl_in_rounds_is_polite_and_finds_the_same_in_both_ways(tmp_path: Path) -> None:
    case = Case("rounds", Mode.ROUNDS, Plan(6, 20, 0.1, skew=0.3, median=10.0, links=6))
    text, figures, polite = compare_rounds(case, tmp_path, {"fetcher.server.delay": "0.1"}, 2)
    assert polite, text
    assert figures["pages, following"] == figures["pages, overlapping"] >= 8
    assert 0 < figures[f"{IDLE}, following"] < 1
    assert {one.figure for one in verdicts({case: figures})} == {
        "violations",
        FASTER,
        f"{IDLE}, overlapping",
    }
