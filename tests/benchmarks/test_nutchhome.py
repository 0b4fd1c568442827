"""An installation of Nutch that is built of sources."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.benchmarks import nutchhome
from tests.benchmarks.nutchhome import NotBuilt, build

IVY = """<ivy-module><dependencies>
<dependency org="org.example" name="tool" rev="${tool.version}" conf="*->default">
<exclude org="org.old" name="*"/><exclude module="older"/></dependency>
<dependency org="org.test" name="checks" rev="1" conf="test->default"/>
</dependencies></ivy-module>"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with two plugins, of which one requires the other; Maven has one jar."""
    made = tmp_path / "sources"
    plugins = {
        "nutch-extensionpoints": '<plugin><runtime><library name="no.jar"/></runtime></plugin>',
        "lib-a": '<plugin><runtime><library name="lib-a.jar"/></runtime></plugin>',
        "b": '<plugin><requires><import plugin="lib-a"/></requires><runtime><library name="b.jar"/>'
        '<library name="tool-2.jar"/></runtime></plugin>',
    }
    classes = {
        "src/java/core/Core.java": "package core; public class Core {}",
        "src/plugin/lib-a/src/java/a/A.java": "package a; public class A extends core.Core {}",
        "src/plugin/b/src/java/b/B.java": "package b; public class B extends a.A {}",
    }
    texts = {
        "default.properties": "# values\nversion=1.99\ntool.version=2\n",
        "ivy/ivy.xml": IVY,
        "conf/nutch-default.xml": "<configuration/>",
        "conf/rules.txt.template": "+.",
        "src/bin/nutch": "#!/bin/sh\n",
        "src/java/core/words.txt": "words",
        **{f"src/plugin/{name}/plugin.xml": text for name, text in plugins.items()},
        **{f"src/plugin/{name}/ivy.xml": IVY.replace("${tool.version}", "2") for name in plugins},
        **classes,
    }
    for name, text in texts.items():
        (path := made / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("no.jar", "nutch-extensionpoints.jar"), encoding="utf-8")
    with zipfile.ZipFile(jar := tmp_path / "tool-2.jar", "w"):
        pass

    def fetched(_: str, artifacts: object, without: object) -> list[Path]:
        assert artifacts == (("org.example", "tool", "2"),)
        assert without == (("*", "older"), ("org.old", "*"))
        return [jar]

    monkeypatch.setattr(nutchhome, "fetched", fetched)
    return made


def test_an_installation_has_what_its_plugins_require(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = dict[str, set[str]]()

    def compiled(_: Path, class_path: list[Path], jar: Path) -> None:
        paths[jar.name] = {path.name for path in class_path}
        jar.touch()

    monkeypatch.setattr(nutchhome, "_compile", compiled)
    build(sources, home := tmp_path / "home", ["b"])
    assert {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()} == {
        "bin/nutch",
        "conf/nutch-default.xml",
        "conf/rules.txt",
        "lib/apache-nutch-1.99.jar",
        "lib/tool-2.jar",
        "plugins/nutch-extensionpoints/plugin.xml",
        "plugins/lib-a/plugin.xml",
        "plugins/lib-a/lib-a.jar",
        "plugins/b/plugin.xml",
        "plugins/b/b.jar",
        "plugins/b/tool-2.jar",
    }
    core = {"apache-nutch-1.99.jar", "tool-2.jar"}
    assert paths["lib-a.jar"] == core and paths["b.jar"] == core | {"lib-a.jar"}
    assert (home / "bin" / "nutch").stat().st_mode & 0o111


def test_nothing_is_left_of_one_that_can_not_be_built(sources: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with pytest.raises(NotBuilt, match="is there already"):
        build(sources, tmp_path / "home", ["b"])
    (sources / "ivy" / "ivy.xml").write_text("<ivy-module>")
    before = {*tmp_path.iterdir()}
    with pytest.raises(NotBuilt, match="no element found"):
        build(sources, tmp_path / "other", ["b"])
    assert {*tmp_path.iterdir()} == before


@pytest.mark.jvm
@pytest.mark.parametrize("is_bare", [False, True])
def test_classes_are_compiled(sources: Path, tmp_path: Path, is_bare: bool) -> None:
    if shutil.which("javac") is None:
        pytest.skip("no javac on this machine")
    if is_bare:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
            subprocess.run(["git", *words], cwd=sources, check=True)
        sources = (sources / ".git").rename(tmp_path / "repository")
    build(sources, home := tmp_path / "home", ["b"])
    for jar, names in {
        "lib/apache-nutch-1.99.jar": {"core/Core.class", "core/words.txt"},
        "plugins/b/b.jar": {"b/B.class"},
    }.items():
        with zipfile.ZipFile(home / jar) as opened:
            assert {*opened.namelist()} >= names
