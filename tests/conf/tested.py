"""Finds the properties that tests set, and to what values, in their text.

A name may stand there as it is (`"db.max.anchor.length": "5"`, `-D db.max.anchor.length=5`), as a
keyword with one or two underscores for its dots, as the constant of the module that reads it, or
put together (`f"urlfilter.{kind}.file"`), with the rest of the name elsewhere in the file.
Otherwise ELSEWHERE has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.golden import PROJECT

SCHEDULE, RABBIT = "golden/test_crawldb_schedule.py", "plugins/test_publish_rabbitmq.py"
ELSEWHERE = {
    "plugin.auto-activation": ("plugin/test_repository.py", '"plugin__auto-activation": "false"'),
    "urlnormalizer.basic.host.trim-trailing-dot": (
        "golden/test_url_plugins_golden.py",
        'HOST + "trim-trailing-dot": "true"',
    ),
    "scoring.similarity.stopword.file": (
        "plugins/test_scoring_similarity.py",
        'stopword_file="mine.txt"',
    ),
    **{
        f"scoring.{part}.md": ("plugins/test_scoring_metadata.py", f'{part}="')
        for part in ("db", "content", "parse")
    },
    **{
        f"db.fetch.schedule.adaptive.{name}": (SCHEDULE, f'ADAPTIVE + "{name}": "{value}"')
        for name, value in {
            "inc_rate": "0.33",
            "dec_rate": "0.77",
            "sync_delta": "false",
            "sync_delta_rate": "0.5",
        }.items()
    },
    **{
        f"urlfilter.fast.{name}.max.length": (
            "plugins/test_urlfilters.py",
            f'"{name.replace(".", "__")}"',
        )
        for name in ("url", "url.path", "url.query")
    },
    **{
        f"index.arbitrary.{name}": ("plugins/test_index_arbitrary.py", name.replace(".", "_"))
        for name in (
            "fieldName.0",
            "className.0",
            "constructorArgs.0",
            "methodName.0",
            "methodArgs.0",
            "overwrite.0",
            "function.count",
            "all.fields.access.0",
        )
    },
    "rabbitmq.publisher.server.uri": (RABBIT, 'server.uri": uri'),
    **{
        f"rabbitmq.publisher.{name.replace('_', '.')}": (RABBIT, name)
        for name in (
            "binding",
            "binding_arguments",
            "exchange_name",
            "exchange_options",
            "queue_name",
            "queue_options",
            "routingkey",
            "headers_static",
        )
    },
}
"""Properties whose names the tests put together in other ways: the test, and what stands there."""

_CONSTANT = re.compile(r"^([A-Z_]+)(?:: Final)? = \"([a-z][\w.-]+)\"$", re.MULTILINE)
_PUT_TOGETHER = re.compile(
    r"f\"([a-z][\w.-]*\.)\{|f\"\{\w+\}(\.[\w.-]+)\"|\"([a-z][\w.-]*\.)\" ?\+"
)
_VALUE = r"(?:[\"']?\s*[:=,]\s*f?[\"']([^\"']*)[\"']|=([^\s\"',]*))?"


@cache
def texts() -> dict[Path, str]:
    """Every module of the tests but for the benchmarks."""
    files = sorted((PROJECT / "tests").rglob("*.py"))
    return {
        path: path.read_text(encoding="utf-8") for path in files if "benchmarks" not in path.parts
    }


@cache
def words() -> dict[Path, frozenset[str]]:
    """The words of each module, letters, digits and underscores."""
    return {path: frozenset(re.findall(r"\w+", text)) for path, text in texts().items()}


@cache
def constants() -> dict[str, list[str]]:
    """The constants of the sources by the property that they hold."""
    found: dict[str, list[str]] = {}
    for folder in ("minutch", "plugins"):
        for path in sorted((PROJECT / folder).rglob("*.py")):
            for name, value in _CONSTANT.findall(path.read_text(encoding="utf-8")):
                found.setdefault(value, []).append(name)
    return found


def is_set(name: str, default: str) -> bool:
    """Tells whether a test sets the property to something else than its default."""
    if name in ELSEWHERE:
        path, words = ELSEWHERE[name]
        return words in texts()[PROJECT / "tests" / path]
    return any(value is None or value != default for value in _values(name)) or any(
        _is_put_together(name, text) for text in texts().values()
    )


def _values(name: str) -> Iterator[str | None]:
    """The values that tests give to it, None where that is no plain text."""
    one_word = [name.replace(".", by).replace("-", "_") for by in ("_", "__")]
    one_word += constants().get(name, [])
    parts = re.findall(r"\w+", name)
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, [name, *one_word]))})(?![\w.-]){_VALUE}"
    for path, text in texts().items():
        there = words()[path]  # a pattern that begins with a choice is slow where there is nothing
        if path.name != "tested.py" and (there.issuperset(parts) or not there.isdisjoint(one_word)):
            for found in re.finditer(pattern, text):
                yield found[1] if found[1] is not None else found[2]


@cache
def _prefixes(text: str) -> list[tuple[str, str, str]]:
    return sorted(set(_PUT_TOGETHER.findall(text)))


def _is_put_together(name: str, text: str) -> bool:
    for prefix, suffix, added in _prefixes(text):
        rest = name.removeprefix(prefix or added) if prefix or added else name.removesuffix(suffix)
        if rest != name and re.search(
            rf"(?<![\w.])[\"']?{re.escape(rest).replace(r'-', '[-_]')}(?![\w.-])", text
        ):
            return True
    return False
