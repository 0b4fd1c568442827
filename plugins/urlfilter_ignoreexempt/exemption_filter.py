"""urlfilter-ignoreexempt: keeps some external links although db.ignore.external.links is set.

The rules (db.ignore.external.exemptions.file, the format of regex-urlfilter.txt) apply to the
link's target only.
"""

from __future__ import annotations

from minutch.plugin.points import URLExemptionFilter
from minutch.urls.javaregex import JavaRegex
from minutch.urls.rules import file_name

from ..lib_regex_filter.rules import RuleFilter


class ExemptionUrlFilter(RuleFilter, URLExemptionFilter):
    """org.apache.nutch.urlfilter.ignoreexempt.ExemptionUrlFilter."""

    def rule_text(self) -> str:
        name = file_name(self.conf, "db.ignore.external.exemptions.file", self.parameters)
        return self.conf.read_resource(name)

    def compile(self, pattern: str) -> JavaRegex:
        return JavaRegex(pattern, self.conf.get_float("urlfilter.regex.seconds"))

    def filter(self, from_url: str, to_url: str) -> bool:
        return self.verdict(to_url)
