"""What is learned of webs that are made up: twins, traps and soft 404s have their rules, honest
sites have none that loses a page.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.inspect.learn.rules import FILTER, NORMALIZE
from tests.inspect.learn.webs import H, becomes, learned, words

N = range(8)
"""Pages of a kind."""


def both(*forms: str, host: str = H) -> dict[str, str]:
    """Pages that are the same in each form of their URLs; `{i}` is the number of a page, `{j}` one
    that differs by form."""
    return {
        (form if "://" in form else host + form).format(i=i, j=97 * i + 13 * at + 1000): words(i)
        for i in N
        for at, form in enumerate(forms)
    }


TWINS = {
    "parameter": (both("/p/{i}", "/p/{i}?track={j}"), "/p/5?track=77", "/p/5"),
    "parameter first of several": (
        both("/p?id={i}&x=1", "/p?track={j}&id={i}&x=1"),
        "/p?track=5&id=3&x=1",
        "/p?id=3&x=1",
    ),
    "parameter in the middle": (
        both("/p?id={i}&x=1", "/p?id={i}&track={j}&x=1"),
        "/p?id=3&track=a&x=1",
        "/p?id=3&x=1",
    ),
    "one value": (both("/p/{i}", "/p/{i}?view=print"), "/p/7?view=print", "/p/7"),
    "parameter without a value": (both("/p/{i}", "/p/{i}?print"), "/p/7?print", "/p/7"),
    "parameter of the path": (both("/p/{i}", "/p/{i};v={j}"), "/p/2;v=9", "/p/2"),
    "session in the path": (both("/p/{i}", "/(S({j}abc))/p/{i}"), "/(S(71abcd))/p/2", "/p/2"),
    "print view": (both("/p/{i}", "/p/{i}/print"), "/p/7/print", "/p/7"),
    "print view in front": (both("/p/{i}", "/print/p/{i}"), "/print/p/7", "/p/7"),
    "print script": (both("/p.php?i={i}", "/print.php?i={i}"), "/print.php?i=9", "/p.php?i=9"),
    "index file": (both("/d{i}/", "/d{i}/default.asp"), "/d5/default.asp", "/d5/"),
    "slash": (both("/d/x{i}", "/d/x{i}/"), "/d/x1/", "/d/x1"),
    "case": (both("/Goods/{i}", "/goods/{i}", "/goods/{i}?a"), "/GOODS/3", "/goods/3"),
    "scheme": (both("https://www.example.org/p{i}", "/p{i}"), "/p4", "https://www.example.org/p4"),
    "mirror": (both("/p{i}", "http://m.example.org/p{i}"), "http://m.example.org/p4", H + "/p4"),
    "order": (both("/p?a=1&b={i}&c=2", "/p?c=2&b={i}&a=1"), "/p?c=5&b=6&a=7", "/p?a=7&b=6&c=5"),
}


@pytest.mark.parametrize(("web", "url", "expected"), TWINS.values(), ids=TWINS)
def test_twins(tmp_path: Path, web: dict[str, str], url: str, expected: str) -> None:
    found = learned(tmp_path, web)
    whole = [one if "://" in one else H + one for one in (url, expected)]
    assert becomes(found.offered, whole[0]) == whole[1]
    assert becomes(found.offered, whole[1]) == whole[1]
    rule = found.offered[0]
    assert rule.file == NORMALIZE
    assert rule.touches >= len(N) - 1
    assert len(rule.examples) == 3
    assert all(before in web for before, _ in rule.examples)


def test_a_parameter_that_no_url_lacks_gets_one_value(tmp_path: Path) -> None:
    found = learned(tmp_path, both("/p?id={i}&track={j}", "/p?id={i}&track=x{j}"))
    one, two = (becomes(found.offered, f"{H}/p?id=3&track={value}") for value in ("a", "b"))
    assert one == two
    assert becomes(found.offered, f"{H}/p?id=4&track=a") != one


def test_a_session_that_no_path_lacks_gets_one_value(tmp_path: Path) -> None:
    found = learned(tmp_path, both("/s/a{j}f/p{i}", "/s/b{j}f/p{i}"))
    one, two = (becomes(found.offered, f"{H}/s/{value}/p3") for value in ("a7777f", "b8888e"))
    assert one == two
    assert becomes(found.offered, f"{H}/s/a7777f/p4") != one
    assert becomes(found.offered, f"{H}/other/a7777f/p3") == f"{H}/other/a7777f/p3"


@pytest.mark.parametrize(
    "change",
    [
        {f"{H}/p/1?track=1013": "another page"},  # contradicted
        {f"{H}/p/{i}?track={97 * i + 1013}": words(i, "x") for i in range(6)},
    ],
)
def test_what_is_contradicted_is_no_rule(tmp_path: Path, change: dict[str, str]) -> None:
    web = both("/p/{i}", "/p/{i}?track={j}")
    web[f"{H}/p/1?track=1110"] = words(1)
    assert not learned(tmp_path, web | change | {f"{H}/p/1?track=1110": "new"}).offered


def test_what_is_gone_in_its_other_form_contradicts(tmp_path: Path) -> None:
    web = both("/p/{i}?track={j}", "/p/{i}")
    for i in N[:4]:
        del web[f"{H}/p/{i}"]
    assert learned(tmp_path / "a", web).offered
    assert not learned(tmp_path / "b", web, gone=[f"{H}/p/0"]).offered


def test_a_parameter_is_dropped_where_it_was_proved(tmp_path: Path) -> None:
    web = both("/p/{i}", "/p/{i}?q={j}") | {f"{H}/search?q={i}": words("search", i) for i in N}
    rules = learned(tmp_path, web).offered
    assert becomes(rules, f"{H}/p/9?q=x") == f"{H}/p/9"
    assert becomes(rules, f"{H}/search?q=x") == f"{H}/search?q=x"


def test_a_parameter_is_dropped_everywhere_if_each_page_is_a_place_of_its_own(
    tmp_path: Path,
) -> None:
    slugs = [words("slug", i, count=1) for i in N]
    web = {
        f"{H}/{slug}{more}": words(slug) for slug in slugs for more in ("", "?reply=1", "?reply=2")
    }
    web |= {f"{H}/{slug}?reply=3": words(slug) for slug in slugs}
    assert becomes(learned(tmp_path, web).offered, f"{H}/new?reply=4") == f"{H}/new"


HONEST = {
    "catalogue": {f"{H}/shop?page={i}": words(i) for i in range(60)} | {f"{H}/shop": words(1)},
    "forum": {
        f"{H}/thread?t={t}&start={20 * m}": words(t, m) for t in range(30) for m in range(1 + t % 3)
    }
    | {f"{H}/thread?t={t}": words(t, 0) for t in range(30)},
    "wiki": {f"{H}/w?title=P{i}": words(i) for i in range(40)}
    | {f"{H}/w?title=P{i}&action=history": words(i, "history") for i in range(40)}
    | {
        f"{H}/w?title=P{i}&oldid={7 * i + o}": words(i, *([o] * (o < 3)))
        for i in N
        for o in range(4)
    },
    "languages": {
        f"{H}/a/{i}{query}": words(i, language)
        for i in range(30)
        for query, language in (("", "en"), ("?lang=en", "en"), ("?lang=de", "de"))
    },
    "languages in paths, some untranslated": {
        f"{H}/{language}/p{i}": words(i, language if i > 5 else "en")
        for language in ("en", "de", "fr")
        for i in range(20)
    },
    "ids": {f"{H}/p?id={i}": words(i) for i in range(40)},
    "empty categories": {
        f"{H}/c{i}/": "There is nothing in here yet" if i % 3 else words(i) for i in range(60)
    },
    "hosts that share a few pages": {
        f"http://{host}.example.org/{page}": words(page, host if page[0] == "p" else "")
        for host in ("www", "blog")
        for page in ("imprint", "terms", "contact", "about", *(f"{host}{i}" for i in N))
    },
    "wiki's pages are the same as their newest versions": {
        f"{H}/w?title=P{i}{more}": words(i) for i in range(40) for more in ("", f"&oldid={i}")
    },
}


@pytest.mark.parametrize("web", HONEST.values(), ids=HONEST)
def test_honest_sites_lose_nothing(tmp_path: Path, web: dict[str, str]) -> None:
    found = learned(tmp_path, web)
    assert all(rule.lost == 0 for rule in found.offered)
    assert kept(web, found.offered) == set(web.values())


def kept(web: dict[str, str], rules: object) -> set[str]:
    """The texts that a web's URLs, or what they become, have."""
    ends = {becomes(rules, url) for url in web}  # type: ignore[arg-type]
    return {web[url] for url in ends if url in web}


def test_calendars_are_left_out_but_for_one_page(tmp_path: Path) -> None:
    web = {f"{H}/calendar?month={i}": "There are no events in this month" for i in range(40)}
    web |= {f"{H}/p{i}": words(i) for i in N}
    (rule,) = learned(tmp_path, web).offered
    assert rule.file == FILTER
    assert rule.touches == 39
    assert sum(becomes([rule], url) is not None for url in web) == 1 + len(N)
    assert becomes([rule], f"{H}/calendar?month=9999") is None


def test_paths_that_repeat_themselves(tmp_path: Path) -> None:
    web = {f"{H}/{f'c{i}/' * depth}p": words(i) for depth in range(5) for i in range(6)}
    rules = learned(tmp_path, web).offered
    assert becomes(rules, f"{H}/c9/c9/c9/p") is None
    assert becomes(rules, f"{H}/p9") == f"{H}/p9"
    assert kept(web, rules) == set(web.values())


@pytest.mark.parametrize("text", ["The page {} was not found on this server", "{} was not found"])
def test_soft_404(tmp_path: Path, text: str) -> None:
    bad = [*(f"/gone/{i}" for i in range(9)), "/old.html", "/x?y=1", "/lost/page"]
    web = {H + path: text.format(path) for path in bad} | {f"{H}/p{i}": words(i) for i in N}
    (rule,) = learned(tmp_path, web).offered
    assert rule.kind == "soft-404"
    assert sum(becomes([rule], H + path) is not None for path in bad) == 1
    assert all(becomes([rule], f"{H}/p{i}") for i in N)


def test_soft_404_with_proposals_that_change(tmp_path: Path) -> None:
    """Only the title is the same; it is said of the address in other words and another language."""
    bad = [*(f"/gone/{i}" for i in range(9)), "/old.html", "/x?y=1", "/lost/page"]
    web = {H + path: f"Did you mean {words(path)}" for path in bad}
    (rule,) = learned(tmp_path, web, title="Seite nicht gefunden").offered
    assert sum(becomes([rule], url) is not None for url in web) == 1


def test_soft_404_that_is_the_first_page(tmp_path: Path) -> None:
    bad = ["/gone/1", "/old.html", "/x?y=1", "/lost/page", "/more", "/again"]
    web = {H + path: words("home") for path in ("/", *bad)} | {f"{H}/p{i}": words(i) for i in N}
    (rule,) = learned(tmp_path, web).offered
    assert becomes([rule], H + "/") == H + "/"
    assert [path for path in bad if becomes([rule], H + path)] == []


@pytest.mark.parametrize("said", ["No products were found here, come again", "404 new offers"])
def test_equal_pages_of_unlike_urls_are_no_soft_404(tmp_path: Path, said: str) -> None:
    web = {f"{H}/{kind}/": said for kind in ("hats", "shoes", "ties", "coats", "belts", "bags")}
    assert not learned(tmp_path, web | {f"{H}/p{i}": words(i) for i in N}).offered


def test_soft_404_by_what_the_host_says_of_a_url_that_cannot_exist(tmp_path: Path) -> None:
    bad = ["/gone/1", "/old.html", "/x?y=1", "/lost/page", "/more", "/again"]
    web = {H + path: "Welcome to our little site about everything" for path in bad}
    web |= {f"{H}/p{i}": words(i) for i in N}
    asked = learned(tmp_path / "a", web)
    assert not asked.offered
    (probe,) = asked.probes
    web[probe] = web[H + "/more"]
    (rule,) = learned(tmp_path / "b", web).offered
    assert sum(becomes([rule], H + path) is None for path in bad) == len(bad) - 1


def test_patterns_of_few_new_pages_are_left_to_budgets(tmp_path: Path) -> None:
    web = {f"{H}/list?sort={i}": words(i % 3) for i in range(60)}
    (rule,) = learned(tmp_path, web).rules
    assert (rule.kind, rule.is_offered) == ("budget", False)


PARTS = st.sampled_from(["a", "b", "A", "index.html", "print", "s12345", "s67890", ""])
URLS = st.builds(
    "{}://{}/{}{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["h", "www.h"]),
    st.lists(PARTS, max_size=3).map("/".join),
    st.lists(st.sampled_from(["a=1", "a=2", "b=1", "b=2", "b=3", "s"]), max_size=3).map(
        lambda items: "?" + "&".join(items) if items else ""
    ),
)


WEBS = st.dictionaries(URLS, st.integers(0, 6), min_size=10, max_size=60)


@settings(max_examples=5, deadline=None)
@given(WEBS)
def test_no_learned_rule_loses_a_unique_page(
    tmp_path_factory: pytest.TempPathFactory, classes: dict[str, int]
) -> None:
    loses_nothing(tmp_path_factory.mktemp("web"), classes)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(WEBS)
def test_no_learned_rule_loses_a_unique_page_of_many_webs(
    tmp_path_factory: pytest.TempPathFactory, classes: dict[str, int]
) -> None:
    loses_nothing(tmp_path_factory.mktemp("web"), classes)


def loses_nothing(folder: Path, classes: dict[str, int]) -> None:
    """Learns, and looks for the content of each class among what is left."""
    web = {url: words(content) for url, content in classes.items()}
    rules = learned(folder, web).offered
    ends = {url: becomes(rules, url) for url in web}
    found = {web[end] for end in ends.values() if end in web}
    # what nobody has asked for gives what all say that become it
    for end in {*ends.values()} - {*web, None}:
        said = {web[url] for url in web if ends[url] == end}
        found |= said if len(said) == 1 else set()
    assert found == set(web.values())
