"""Commands, extension points and plugins: each is declared once, and what it names is there."""

from __future__ import annotations

import dataclasses
import inspect
import re
from xml.etree import ElementTree

import pytest

import minutch
from minutch.commands import flow
from minutch.commands.declaration import Command, Option, named
from minutch.cycle.crawldb.dedup import GROUPS
from minutch.cycle.crawldb.dump import FORMATS as DUMP_FORMATS
from minutch.cycle.crawldb.groupcounts import MODES
from minutch.inspect.audit.findings import SEVERITIES
from minutch.plugin.points import POINTS
from minutch.warc.warcfile import DIGESTS
from tests.support.commands import command
from tests.support.golden import PROJECT, SHARED

NAMED = [*flow.commands().values(), *flow.classes()]
ALL = [*NAMED, *(one for each in NAMED for one in each.formats)]


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_what_a_command_names_is_there(one: Command) -> None:
    """Its functions, and in the job's settings a field for each option that the job gets."""
    assert one.formats or one.code or one.job
    for where in filter(None, (one.code, one.finish, one.job)):
        assert callable(named(where))
    if one.job and not one.code:
        fields = settings_of(one)
        given = [*one.arguments, *(option for option in one.options if not option.required)]
        taken = {argument.name for argument in one.arguments if not argument.field}
        taken |= {option.key for option in one.options if option.required}
        keys = {x.key if isinstance(x, Option) else x.field for x in given} - taken - {""}
        assert keys <= fields, keys - fields


def settings_of(one: Command) -> set[str]:
    if not one.settings:
        return set()
    return {field.name for field in dataclasses.fields(named(one.settings, one.job.split(":")[0]))}


@pytest.mark.parametrize(
    "one", [one for one in ALL if one.job and not one.code], ids=lambda one: one.name
)
def test_a_job_takes_what_is_declared(one: Command) -> None:
    """Its parameters are those of the Python function, which is public."""
    job = named(one.job)
    expected = [a.name for a in one.arguments if not a.field]
    expected += [option.key for option in one.options if option.required]
    expected += ["options"] if one.settings else []
    positional = [
        parameter
        for parameter in inspect.signature(job).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    assert len(positional) == len(expected)
    assert job.__name__ in minutch.__all__ or one in flow.classes()


def test_what_a_declaration_repeats() -> None:
    """Values that are defined where it would take long to import them from."""

    def choices(name: str, option: str) -> tuple[str, ...]:
        declared = {one.name: one for one in (*command(name).options, *command(name).arguments)}
        return declared[option].choices

    assert choices("dedup", "-group") == tuple(GROUPS)
    assert choices("readdb", "-format") == tuple(DUMP_FORMATS)
    assert choices("domainstats", "mode") == tuple(MODES)
    assert choices("audit", "--fail-on") == SEVERITIES
    assert choices("export warc", "-digest") == tuple(DIGESTS)
    ports = [one.most for name in ("serve", "startserver") for one in command(name).options]
    assert set(ports) == {None, 65535}


def test_every_command_of_nutch_is_here() -> None:
    """Nutch's list of commands (src/bin/nutch) is found by name and by class."""
    path = SHARED / "nutch" / "commands.md"
    if not path.is_file():
        pytest.skip("the list of Nutch's commands is not beside this checkout")
    listed = re.findall(r"^\| (\w+) \| ([\w.]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    listed = [(name, java) for name, java in listed if java != "class"]
    assert len(listed) > 30
    for name, java in listed:
        if name in flow.MISSING:
            assert flow.MISSING[name][0] == java
        else:
            found = flow.find(name)
            assert found is flow.find(java) is not None and found.java == java, name


def test_find_and_suggest() -> None:
    for one in NAMED:
        assert flow.find(one.name) is one
        if one.nutch_class:
            assert flow.find(one.nutch_class) is one
    for one in flow.classes():
        assert one.nutch_class == f"org.apache.nutch.{one.name}"
    assert flow.find("") is None
    assert flow.suggestions("readbd")[0] == "readdb"


def test_names_are_unique() -> None:
    names = [one.name for where in flow.GROUPS.values() for one in flow.group(where)]
    assert len(names) == len(set(names))
    assert not set(names) & {*flow.REPLACED, *flow.MISSING}
    for one in ALL:
        spelled = [name for option in one.options for name in (option.name, *option.aliases)]
        assert len(spelled) == len(set(spelled)), one.name


def test_every_extension_point_is_declared_once() -> None:
    root = ElementTree.parse(PROJECT / "plugins" / "nutch_extensionpoints" / "plugin.xml").getroot()
    assert [point.get("id") for point in root.iter("extension-point")] == list(POINTS)


def test_plugin_folders_are_named_like_their_ids() -> None:
    for manifest in sorted((PROJECT / "plugins").glob("*/plugin.xml")):
        plugin_id = ElementTree.parse(manifest).getroot().get("id", "")
        assert manifest.parent.name == plugin_id.replace("-", "_")
