"""Writes what a crawl was first told into its folder, where every later command on it finds it.

    <crawl>/conf/nutch-site.xml    profile, agent, delay, scope, and each -D of the first crawl

A secret (`minutch.conf.confidential`) and what names code are not written, but said to be missing.
What reads the file is `minutch.conf.crawlfolder`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from minutch.conf import Configuration
from minutch.conf.confidential import shown
from minutch.conf.configuration import COMMAND_LINE
from minutch.conf.crawlfolder import CONF, SITE, names_code
from minutch.conf.sources import PROFILE
from minutch.errors import StoreError
from minutch.hadoop.stores import is_local
from minutch.work.tables.wholefile import WholeFile

ALWAYS: Final = (
    PROFILE,
    "http.agent.name",
    "fetcher.server.delay",
    "db.ignore.external.links",
    "db.ignore.external.links.mode",
)
"""Properties that are written whatever their values come from."""

_HEAD: Final = """<?xml version="1.0" encoding="UTF-8"?>
<!--
  The settings of this crawl, as it was begun; every command on this folder uses them. They may be
  changed, and more be added. They win over the profile and the nutch-site.xml of other folders,
  -D name=value on a command line wins over them. `minutch showproperties CRAWL` says where each
  value comes from.
-->
<configuration>
"""
_PROPERTY: Final = """
  <property>
    <name>{name}</name>
    <value>{value}</value>
  </property>
"""
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def remember(crawl: Path, conf: Configuration, told: Collection[str] = ()) -> None:
    """Writes the file unless the folder `crawl` has one, with the values of `told` besides those of
    the command line. Raises StoreError.
    """
    path = crawl / CONF / SITE
    if not is_local(crawl) or path.exists():
        return
    given = {name for name in conf if conf.source(name) == COMMAND_LINE} | set(told)
    is_new = not path.parent.exists()
    try:
        with WholeFile(path, sums=False) as stream:
            stream.write("".join(_lines(conf, sorted(given - set(ALWAYS)))).encode())
        path.chmod(0o644)  # others' write permission would make the next command refuse it
        if is_new:
            path.parent.chmod(0o755)
    except OSError as exc:
        raise StoreError(f"{path}: can't be written: {exc.strerror}") from exc


def _lines(conf: Configuration, names: list[str]) -> Iterator[str]:
    yield _HEAD
    for name in (*ALWAYS, *names):
        value = conf.raw(name)
        if reason := unwritten(name, value or ""):
            yield f"\n  <!-- {name.replace('--', '- -')} {reason} -->\n"
        elif value:
            yield _PROPERTY.format(name=escape(name), value=escape(value, {"\r": "&#13;"}))
    yield "\n</configuration>\n"


def unwritten(name: str, value: str) -> str:
    """Returns why a property is not written; empty if it is."""
    if shown(name, value) != value:
        return "is secret: it is not kept here, and has to be given again by -D"
    if names_code(name):
        return "names code: it is not kept here, and has to be given again by -D"
    if _NO_XML.search(name + value):
        return "has characters that XML lacks, and has to be given again by -D"
    return ""
