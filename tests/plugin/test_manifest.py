"""plugin.xml."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.errors import PluginError
from minutch.plugin.manifest import read_manifest

FULL = """<?xml version="1.0"?>
<!-- a comment -->
<plugin id="parse-x" name="X" version="1.0.0" provider-name="me">
  <runtime><library name="x.zip"><export name="*"/></library></runtime>
  <requires><import plugin="nutch-extensionpoints"/><import plugin="lib-x"/></requires>
  <extension-point id="org.example.Point" name="A point"/>
  <extension id="e" name="E" point="org.apache.nutch.parse.Parser">
    <implementation id="org.example.X" class="x:X" nutch-class="org.example.JavaX">
      <parameter name="contentType" value="text/x"/>
      <parameter name="pathSuffix" value=""/>
    </implementation>
    <implementation id="Y" class="x:Y"/>
  </extension>
</plugin>
"""


def read(folder: Path, text: str | bytes) -> object:
    path = folder / "plugin.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_manifest(folder)


def test_everything_in_it(tmp_path: Path) -> None:
    (tmp_path / "plugin.xml").write_text(FULL)
    manifest = read_manifest(tmp_path)
    assert (manifest.id, manifest.name, manifest.folder) == ("parse-x", "X", tmp_path)
    assert manifest.requires == ("nutch-extensionpoints", "lib-x")
    assert manifest.points == ("org.example.Point",)
    first, second = manifest.implementations
    assert first.parameters == {"contentType": "text/x", "pathSuffix": ""}
    assert first.names == ("org.example.X", "org.example.JavaX", "x:X", "x.X")
    assert first.class_name == "org.example.JavaX"
    assert (second.point, second.parameters, second.class_name) == (
        "org.apache.nutch.parse.Parser",
        {},
        "Y",
    )
    assert not manifest.is_java


def test_a_plugin_of_nutch_is_java(tmp_path: Path) -> None:
    (tmp_path / "plugin.xml").write_text(FULL.replace("x:Y", "org.example.Y"))
    assert read_manifest(tmp_path).is_java
    (tmp_path / "x.py").touch()
    assert not read_manifest(tmp_path).is_java  # a class of Python's, written otherwise
    (tmp_path / "plugin.xml").write_text(FULL.replace("x.zip", "x.jar"))
    assert read_manifest(tmp_path).is_java


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<plugin id='a'>\n</plug>", "line 2: mismatched tag"),
        ("<plugin name='a'/>", "has no id"),
        (
            "<plugin id='a'><extension point='p'>\n<implementation id='i'/></extension></plugin>",
            "line 2: .* no class",
        ),
        ("<!DOCTYPE p [<!ENTITY e 'x'>]><plugin id='a'/>", "entity declarations are not allowed"),
        (b"<plugin id='\xff'/>", "line 1: "),
    ],
)
def test_errors_name_the_file(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(PluginError, match=message) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "plugin.xml"))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"plugin\.xml: can't be read"):
        read_manifest(tmp_path)
