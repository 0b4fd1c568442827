"""`minutch showproperties`: prints every property with its value, and the reason why some have no
effect.

Matched: org.apache.nutch.tools.ShowProperties (its columns: name, value, value after expansion);
the mark is ours.
"""

from __future__ import annotations

from minutch.conf.confidential import HIDDEN, shown
from minutch.conf.inert import INERT
from minutch.job import JobContext

USAGE = "ShowProperties"
MARK = "# no effect: "
_RULE = "=" * 80


def run(args: list[str], context: JobContext) -> int:
    """Prints the table; arguments are ignored, as in Nutch."""
    conf = context.conf
    context.print(f"{'conf.name':<32}  {'conf.value':>24}  {'substituted.value':>20}")
    context.print(_RULE)
    secrets = {value for name, value in conf.items() if shown(name, value) == HIDDEN}
    for name, value in conf.items():
        raw, expanded = shown(name, conf.raw(name) or ""), shown(name, value)
        if expanded != raw:  # it may refer to a secret one
            for secret in secrets:
                expanded = expanded.replace(secret, HIDDEN)
        context.print(line(name, raw, expanded))
    return 0


def line(name: str, raw: str, value: str) -> str:
    """Returns the line of one property; with a third column only if expansion changed the value."""
    text = f"{name}  {value:>{max(1, 78 - len(name))}}"
    if raw != value:
        text = f"{name}  {raw:>{max(1, 58 - len(name))}}  {value:>18}"
    return f"{text}  {MARK}{INERT[name]}" if name in INERT else text
