"""Every property that has a type is held to it, whatever file its value is in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.conf.check import FLOATS, check
from minutch.conf.properties import KINDS
from minutch.errors import ConfigError
from tests.support.examples import tabled

CONF = Configuration.load([])
DEFAULTS = {name: CONF.expand(value).strip() for name, value in CONF.defaults.items()}
TRUTHS = sorted(name for name, value in DEFAULTS.items() if value in ("true", "false"))
FRACTIONS = sorted(
    {name for name, value in DEFAULTS.items() if re.fullmatch(r"-?\d*\.\d+[fd]?", value)} | FLOATS
)
WHOLE = sorted({name for name, value in DEFAULTS.items() if re.fullmatch(r"-?\d+", value)} - FLOATS)
WRONG = (
    [(name, "perhaps", "true or false") for name in TRUTHS]
    + [(name, "many", "a whole number") for name in WHOLE]
    + [(name, "1.5", "a whole number") for name in WHOLE]
    + [(name, "much", "a number") for name in FRACTIONS]
    + [(name, kind.wrong, kind.expected) for name, kind in KINDS.items()]
)


def conf_with(folder: Path, name: str, value: str) -> Configuration:
    (folder / "nutch-site.xml").write_text(
        f"<configuration><property><name>{name}</name><value>{value}</value></property></configuration>",
        encoding="utf-8",
    )
    return Configuration.load([folder])


def test_there_are_many() -> None:
    assert min(len(TRUTHS) / 100, len(WHOLE) / 80, len(FRACTIONS) / 10, len(KINDS) / 25) >= 1
    assert set(KINDS) <= set(DEFAULTS), "each is described in nutch-default.xml"


def test_a_word_for_a_number_names_file_property_value_and_what_is_allowed(tmp_path: Path) -> None:
    """For all properties of all types, one after the other."""
    for name, value, expected in WRONG:
        with pytest.raises(ConfigError) as caught:
            check(conf_with(tmp_path, name, value))
        assert (
            str(caught.value)
            == f"{name} ({tmp_path}/nutch-site.xml): expected {expected}, found {value!r}"
        )


def test_defaults_and_nothing_are_right(tmp_path: Path) -> None:
    for name, kind in KINDS.items():
        assert not DEFAULTS[name] or kind.fits(DEFAULTS[name]), name
        check(conf_with(tmp_path, name, " "))


@tabled(
    ("name", "right", "wrong"),
    [
        ("fetcher.queue.mode", ["byHost", "byDomain", "byIP"], ["byhost", "byPort"]),
        ("db.ignore.external.links.mode", ["bydomain"], ["byIP"]),
        (
            "http.filter.ipaddress.include",
            ["10.0.0.0/8, loopback", "fd00::/8"],
            ["10.0.0.0/33", "localnet"],
        ),
        ("http.connection.pool.okhttp", ["8, 800, 300"], ["8", "8,800,0", "a,b,c"]),
        ("db.stats.score.quantiles", ["0.5", "0,1"], ["2", "half"]),
        ("hostdb.percentiles", ["50,99.9"], ["101"]),
        ("minutch.memory", ["512m", "4G", "100", "1.5g"], ["much", "1.5.g"]),
        ("scoring.similarity.ngrams", ["1", "1,2"], ["1,2,3", "one"]),
        ("plugin.includes", ["a|b"], ["a|(b", "["]),
        ("lang.extraction.policy", ["identify,detect"], ["guess"]),
        ("urlnormalizer.basic.host.idn", ["toASCII"], ["ascii"]),
    ],
)
def test_kinds(name: str, right: list[str], wrong: list[str]) -> None:
    assert [KINDS[name].fits(value) for value in right] == [True] * len(right)
    assert [KINDS[name].fits(value) for value in wrong] == [False] * len(wrong)


@pytest.mark.parametrize(
    "name",
    ["db.signature.class", "db.fetch.schedule.class", "parser.character.encoding.default",
     "generate.restrict.status",
     "parser.html.outlinks.kinds", "scoring.depth.override.pattern"],
)  # fmt: skip
def test_what_takes_more_than_a_look_is_said_by_its_reader(name: str, tmp_path: Path) -> None:
    from minutch.cycle.crawldb.schedule import fetch_schedule
    from minutch.cycle.fetchlist.due import Conditions
    from minutch.cycle.parse.charset import CharsetDetector
    from minutch.cycle.parse.signature import make_signature
    from plugins.lib_html.elements import kinds_of
    from plugins.scoring_depth.depth import DepthScoring

    readers = {
        "db.signature.class": make_signature,
        "db.fetch.schedule.class": fetch_schedule,
        "parser.character.encoding.default": CharsetDetector,
        "generate.restrict.status": lambda conf: Conditions.from_conf(conf, now=0, expression=None),
        "parser.html.outlinks.kinds": kinds_of,
        "scoring.depth.override.pattern": lambda conf: DepthScoring(conf, {}),
    }
    place = re.escape(f"{name} ({tmp_path}/nutch-site.xml): expected ")
    with pytest.raises(ConfigError, match=rf"^{place}.+, found '\(no such'$"):
        readers[name](conf_with(tmp_path, name, "(no such"))
