"""A rule that was learned: its lines in Nutch's files, what it does to URLs, and writing it.

A rule is a replacement (regex-normalize.xml) or a line of regex-urlfilter.txt, for one host. Where
urlnormalizer-host or urlnormalizer-protocol is active, a line of its file says the same. It is
measured by doing what the plugins do with those very lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import polars as pl

from minutch.conf import Configuration
from minutch.conf.sources import CONF, is_remembering
from minutch.errors import ConfigError, StoreError
from minutch.plugin.repository import is_included
from minutch.processwide import command_line
from minutch.terminal import visible_line
from minutch.urls.javaregex import JavaRegex
from minutch.work.tables.install import WholeFile

NORMALIZE: Final = "regex-normalize.xml"
FILTER: Final = "regex-urlfilter.txt"
_PLUGINS: Final = {
    NORMALIZE: "urlnormalizer-regex",
    FILTER: "urlfilter-regex",
    "host-urlnormalizer.txt": "urlnormalizer-host",
    "protocols.txt": "urlnormalizer-protocol",
}
_PROPERTIES: Final = {
    NORMALIZE: "urlnormalizer.regex",
    FILTER: "urlfilter.regex",
    "host-urlnormalizer.txt": "urlnormalizer.hosts",
    "protocols.txt": "urlnormalizer.protocols",
}
EXAMPLES: Final = 3
_CLASSES: Final = {"{n}": "[0-9]+", "{x}": "[0-9A-Za-z-]+"}


@dataclass(eq=False, slots=True)
class LearnedRule:
    """A rule with its evidence; `touches`, `lost` and `examples` are measured."""

    kind: str
    host: str
    says: str
    pattern: str
    substitution: str | None = None
    """None: what matches is rejected."""
    keeps: Sequence[str] = ()
    """URLs that match and stay: they hold what the others only repeat."""
    short: tuple[str, str] | None = None
    """A file of a simpler plugin, and the line that says the same there."""
    evidence: str = ""
    to_host: str = ""
    """Where its URLs lead, if that is another host."""
    is_advice: bool = False
    """Whether a person has to decide, whatever is lost."""
    touches: int = 0
    lost: int = 0
    examples: list[tuple[str, str | None]] = field(default_factory=list)
    """URLs, and what becomes of them; None: they are rejected."""

    @property
    def file(self) -> str:
        """The file that it belongs to."""
        if self.short is not None:
            return self.short[0]
        return FILTER if self.substitution is None else NORMALIZE

    @property
    def lines(self) -> list[str]:
        """What it is in that file."""
        if self.short is not None:
            return [self.short[1]]
        if self.substitution is None:
            return [*(f"+^{quoted(url)}$" for url in self.keeps), f"-{self.pattern}"]
        return [
            "  <regex>",
            f"    <pattern>{escape(self.pattern)}</pattern>",
            f"    <substitution>{escape(self.substitution)}</substitution>",
            "  </regex>",
        ]

    @property
    def is_offered(self) -> bool:
        """Whether --apply writes it."""
        return not self.lost and not self.is_advice

    def apply(self, urls: pl.Series) -> pl.Series:
        """Returns what becomes of URLs: null for those that it rejects."""
        regex = JavaRegex(self.pattern)
        # By the plugins' own engine: what they would do is measured, not what is meant.
        matched = regex.search_column(urls)
        if matched is None:
            found = urls.str.contains(regex.superset) if regex.superset else urls.is_not_null()
            rows = found.fill_null(False).arg_true()
            hits = [regex.search(url) for url in urls.gather(rows)]
            matched = pl.Series([False]).new_from_index(0, len(urls))
            matched = matched.scatter(rows, pl.Series(hits, dtype=pl.Boolean))
        rows = matched.fill_null(False).arg_true()
        if not len(rows):
            return urls
        if self.substitution is None:
            kept = urls.is_in([*self.keeps])
            return pl.select(pl.when(~matched.fill_null(False) | kept).then(urls)).to_series()
        to = regex.replacement(self.substitution)
        new = [regex.replace_all(url, to) for url in urls.gather(rows)]
        return urls.clone().scatter(rows, pl.Series(new, dtype=pl.String))


def quoted(text: str) -> str:
    """Returns a pattern for a text itself, in Java's syntax."""
    return re.sub(r"([\\^$.|?*+()\[\]{}])", r"\\\1", text)


def literal(text: str) -> str:
    """Returns a substitution for a text itself."""
    return text.replace("\\", "\\\\").replace("$", "\\$")


def path_of(pattern: str) -> str | None:
    """Returns a regular expression for the paths of a pattern of URLs; None where it says too
    little of them.
    """
    path = pattern.partition("?")[0]
    path = path[path.index("/") :] if "/" in path else "/"
    # Any number of segments: a rule would match half of the site.
    if "{+}" in path:
        return None
    found = ""
    for part in re.split(r"(\{[nx]\}|;[^;/{]*)", path):
        known = _CLASSES.get(part)
        is_parameter = part[:1] == ";"
        found += known or quoted(part) + (r"(?:=[^/?#;]*)?" if is_parameter else "")
    return found


def shorten(rules: Sequence[LearnedRule], conf: Configuration) -> None:
    """Leaves a rule its short form only where the plugin that reads it is active."""
    for rule in rules:
        if rule.short is not None and not is_included(conf, _PLUGINS[rule.short[0]]):
            rule.short = None


# -- writing ---------------------------------------------------------------------------------------


def folder_of(crawl: Path, conf: Configuration) -> Path:
    """Returns the folder of the crawl's own rule files. Raises ConfigError if the configuration is
    that of the installation alone, which all crawls have.
    """
    if is_remembering(crawl):
        return crawl / CONF
    shipped = (conf.home / "conf").resolve()
    for path in conf.conf_dirs:
        real = path.resolve()
        if path.is_dir() and real != shipped and not real.is_relative_to(shipped):
            return path
    raise ConfigError(
        f"{shipped} is the installation's own, for all crawls: nothing is written there",
        hint=f"`{command_line('init')}` makes a conf/ for this crawl, NUTCH_CONF_DIR names another",
    )


def write(
    rules: Sequence[LearnedRule], folder: Path, conf: Configuration, said: str
) -> list[tuple[Path, LearnedRule]]:
    """Writes the rules that are not there yet into the files of a folder, which are begun as copies
    of those that count now; returns where each has gone. `said` begins their comments. Raises
    ConfigError for a file that nothing reads, or that is not as it should be.
    """
    done: list[tuple[Path, LearnedRule]] = []
    for name in dict.fromkeys(rule.file for rule in rules):
        plugin, prefix = _PLUGINS[name], _PROPERTIES[name]
        if not is_included(conf, plugin):
            raise ConfigError(
                f"{plugin} is not active (plugin.includes): nothing would read {name}"
            )
        if conf.get(f"{prefix}.rules") is not None:
            raise ConfigError(
                f"{prefix}.rules ({conf.source(f'{prefix}.rules')}) has all rules: no file is read",
                hint=f"put them into a file, which {prefix}.file names",
            )
        target = folder / (conf.get(f"{prefix}.file") or name)
        # A copy of what counts now: a file of its own would hide the shipped rules.
        found = conf.resource(target.name)
        # Whatever its bytes: those of Latin-1 are written as they were read; the mark of an editor
        # would hide the first rule, behind which the new ones do nothing.
        text = found.read_text("utf-8-sig", "surrogateescape") if found is not None else ""
        # A second --apply writes nothing twice.
        new = [rule for rule in rules if rule.file == name and "\n".join(rule.lines) not in text]
        if new:
            blocks = [_commented(rule, said) for rule in new]
            try:
                with WholeFile(target, sums=False) as stream:
                    whole = _inserted(text, blocks, name, target)
                    stream.write(whole.encode("utf-8", "surrogateescape"))
            except OSError as exc:
                raise StoreError(f"{target}: {exc.strerror}") from exc
            done += [(target, rule) for rule in new]
    return done


def _commented(rule: LearnedRule, said: str) -> str:
    """Returns the lines of a rule below a comment with its evidence."""
    examples = [visible_line(url) for url, _ in rule.examples[:1]]
    about = f"{said}: {rule.says}. {rule.evidence}; touches {rule.touches:,} URLs, loses no page"
    about += f"; such as {examples[0]}" if examples else ""
    if rule.file == NORMALIZE:
        about = re.sub("-(?=-)", "- ", about)  # no comment of XML has two
        return "\n".join([f"  <!-- {escape(about)} -->", *rule.lines])
    return "\n".join([f"# {about}", *rule.lines])


def _inserted(text: str, blocks: Sequence[str], name: str, path: Path) -> str:
    """Returns the text of a file with rules before all others: the first filter that matches
    decides; of normalizers, those that tidy up come last.
    """
    joined = "\n\n".join(blocks)
    if name == NORMALIZE:
        text = text or "<regex-normalize>\n</regex-normalize>\n"
        if re.search(r"<regex-normalize\s*>", text) is None:
            raise ConfigError(f"{path}: expected <regex-normalize>, and found none")
        return re.sub(
            r"(<regex-normalize\s*>)", lambda match: f"{match[1]}\n\n{joined}\n", text, count=1
        )
    if name != FILTER:
        return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{joined}\n"
    lines = (text or "+.\n").splitlines()
    first = next((at for at, line in enumerate(lines) if line[:1] in ("+", "-", ">")), len(lines))
    while first and lines[first - 1].startswith("#"):  # what is said of the first rule
        first -= 1
    return "\n".join([*lines[:first], joined, "", *lines[first:]]) + "\n"
