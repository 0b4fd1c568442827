"""What the README shows works: the example plugin is taken out of it and used."""

from __future__ import annotations

import re
from pathlib import Path

from minutch.conf import Configuration
from minutch.plugin.chains import URLFilters
from tests.support.golden import PROJECT

README = (PROJECT / "README.md").read_text(encoding="utf-8")
FILE = re.compile(r"^`(my-plugins/[\w./-]+)`\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_example_plugin(tmp_path: Path) -> None:
    files = dict(FILE.findall(README))
    assert sorted(files) == [
        "my-plugins/urlfilter-short/plugin.xml",
        "my-plugins/urlfilter-short/short.py",
    ]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert sum(len(text.splitlines()) for text in files.values()) <= 20
    conf = Configuration.load(
        [],
        overrides={
            "plugin.folders": str(tmp_path / "my-plugins"),
            "plugin.includes": "urlfilter-short",
        },
    )
    filters = URLFilters(conf)
    assert filters.filter("https://www.example.org/") == "https://www.example.org/"
    assert filters.filter("https://www.example.org/" + "a" * 80) is None


def test_the_scripts_and_files_it_names_are_there() -> None:
    for name in set(
        re.findall(r"(?<![\w/-])((?:bin|conf|minutch|tests|plugins)/[\w./-]*\w)", README)
    ):
        assert (PROJECT / name).exists(), name
    assert (PROJECT / ".ci" / "run").exists()


def test_properties_it_names_exist() -> None:
    text = (PROJECT / "conf" / "nutch-default.xml").read_text(encoding="utf-8")
    names = re.findall(
        r"`-?-?(?:D )?'?((?:db|http|linkdb|plugin|urlfilter|minutch|fetcher|parser)\.[\w.]+)",
        README,
    )
    assert len(names) > 5
    assert [name for name in names if name not in text] == []
