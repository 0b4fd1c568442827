"""`minutch showproperties [CRAWL]`: prints every property with its value, and says where a value
comes from that is no default, and why some have no effect.

Matched: org.apache.nutch.tools.ShowProperties (its columns: name, value, value after expansion);
the marks are ours. With the folder of a crawl, what it remembers counts.
"""

from __future__ import annotations

from pathlib import Path

from minutch.conf import DEFAULTS
from minutch.conf.properties import HIDDEN, INERT, shown
from minutch.job import JobContext

USAGE = """ShowProperties [<crawl>]

  <crawl>  the folder of a crawl, with settings of its own"""
SOURCE = "# from "
MARK = "# no effect: "
_RULE = "=" * 80


def run(args: list[str], context: JobContext) -> int:
    """Prints the table; arguments are ignored, as in Nutch, but for the folder of a crawl, whose
    settings are in the configuration.
    """
    conf = context.conf
    context.print(f"{'conf.name':<32}  {'conf.value':>24}  {'substituted.value':>20}")
    context.print(_RULE)
    secrets = {value for name, value in conf.items() if shown(name, value) == HIDDEN}
    for name, value in conf.items():
        raw, expanded = shown(name, conf.raw(name) or ""), shown(name, value)
        if expanded != raw:  # it may refer to a secret one
            for secret in secrets:
                expanded = expanded.replace(secret, HIDDEN)
        source = conf.source(name) or ""
        context.print(line(name, raw, expanded, "" if Path(source).name == DEFAULTS else source))
    return 0


def line(name: str, raw: str, value: str, source: str = "") -> str:
    """Returns the line of one property; with a third column only if expansion changed the value."""
    text = f"{name}  {value:>{max(1, 78 - len(name))}}"
    if raw != value:
        text = f"{name}  {raw:>{max(1, 58 - len(name))}}  {value:>18}"
    text = f"{text}  {SOURCE}{source}" if source else text
    return f"{text}  {MARK}{INERT[name]}" if name in INERT else text
