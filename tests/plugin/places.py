"""Plugin folders made for a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from minutch.conf import Configuration

MANIFEST = """<?xml version="1.0"?>
<plugin id="{id}" name="{id}">
  <requires>{requires}</requires>
  {points}
  {extensions}
</plugin>
"""


def write_plugin(  # noqa: PLR0913 - what a file is made of
    parent: Path,
    plugin_id: str,
    code: str = "",
    *,
    point: str = "org.apache.nutch.net.URLFilter",
    classes: Mapping[str, str] | None = None,
    requires: tuple[str, ...] = ("nutch-extensionpoints",),
    points: tuple[str, ...] = (),
    parameters: Mapping[str, str] | None = None,
    extra: str = "",
) -> Path:
    """A plugin folder with one module `code.py`; `classes` are implementation id → class path."""
    folder = parent / plugin_id
    folder.mkdir(parents=True)
    inner = "".join(
        f'<parameter name="{name}" value="{value}"/>' for name, value in (parameters or {}).items()
    )
    implementations = "".join(
        f'<implementation id="{name}" class="{path}" {extra}>{inner}</implementation>'
        for name, path in (classes or {}).items()
    )
    manifest = MANIFEST.format(
        id=plugin_id,
        requires="".join(f'<import plugin="{name}"/>' for name in requires),
        points="".join(f'<extension-point id="{name}" name="{name}"/>' for name in points),
        extensions=f'<extension point="{point}">{implementations}</extension>' if classes else "",
    )
    (folder / "plugin.xml").write_text(manifest)
    if not any(path.startswith("org.") for path in (classes or {}).values()):  # in Java
        (folder / "code.py").write_text(code)
    return folder


def configuration(folder: Path, includes: str = ".*", **more: str) -> Configuration:
    """A configuration that finds the plugins in `folder` and those shipped."""
    values = {"plugin.folders": str(folder), "plugin.includes": includes, "urlnormalizer.order": ""}
    return Configuration.load([]).with_values(
        values | {name.replace("__", "."): value for name, value in more.items()}
    )
