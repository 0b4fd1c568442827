"""Finds the registered domain and the public suffix of a host name, by Mozilla's list.

The list is the snapshot that the package tldextract ships (no network), or a file in Mozilla's
format (`effective_tld_names.dat` in the configuration directory, as with Nutch), which
`minutch.processwide` names. Only the ICANN section counts; the private one (github.io,
blogspot.com …) is left out, as in URLUtil.

Source: URLUtil.getDomainName, over
EffectiveTldFinder of crawler-commons 1.6. Its quirks are kept: a host that is itself a wildcard's
parent has the suffix before it; a host with no known suffix is its own domain; suffixes print with
their `*.` and `!`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Final

from minutch import processwide
from minutch.errors import ConfigError, UrlError
from minutch.urls.hostname import label_to_ascii_2003
from minutch.urls.parts import Url, parse, split_labels

_SNAPSHOT = ".tld_set_snapshot"
_MOST_SPELT: Final = 4
"""Labels of a suffix in two spellings, all combinations of which are remembered; in the list, 2."""
_PRIVATE = re.compile("===BEGIN PRIVATE DOMAINS===.*?(?:===END PRIVATE DOMAINS===|\\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SuffixRule:
    """A line of the list: the suffix in ASCII; is it a wildcard's parent, or an exception?"""

    suffix: str
    wildcard: bool
    exception: bool

    @property
    def printed(self) -> str:
        """The rule as EffectiveTLD.getSuffix prints it."""
        return (
            f"*.{self.suffix}"
            if self.wildcard
            else f"!{self.suffix}"
            if self.exception
            else self.suffix
        )


class SuffixList:
    """The rules of a public suffix list, by each spelling (Unicode, ASCII) of each suffix."""

    def __init__(self, text: str) -> None:
        self._rules: dict[str, SuffixRule] = {}
        for line in _PRIVATE.sub("", text).splitlines():
            if line.strip() and not line.startswith("//"):
                self._add(line)

    def _add(self, line: str) -> None:
        wildcard, exception = line.startswith("*."), line.startswith("!")
        name = line[2:] if wildcard else line[1:] if exception else line
        try:
            labels = [
                (label, label.lower() if label.isascii() else label_to_ascii_2003(label))
                for label in name.split(".")
            ]
        except UrlError as exc:
            raise ConfigError(f"public suffix list: {line!r} is no host name") from exc
        # 2 to the power of that many spellings are remembered.
        if sum(label != ascii_label for label, ascii_label in labels) > _MOST_SPELT:
            raise ConfigError(f"public suffix list: {line[:80]!r}: too many labels beyond ASCII")
        rule = SuffixRule(".".join(ascii_label for _, ascii_label in labels), wildcard, exception)
        if name.isascii():
            self._rules[rule.suffix] = rule
        else:
            # A host may be spelled in Unicode in one label and in ASCII in the next.
            for spelling in product(*({*pair} for pair in labels)):
                self._rules[".".join(spelling)] = rule

    def find(self, host: str) -> tuple[int, SuffixRule] | None:
        """Finds where the public suffix of `host` starts, and its rule; None if no rule fits."""
        at = 0
        while True:
            # From the whole host on, a label less each time: the longest suffix is found first.
            rule = self._rules.get(host[at:])
            if rule is not None and not (at == 0 and rule.wildcard):
                # A wildcard's suffix takes one more label than its parent has.
                return (
                    (host.rfind(".", 0, max(at - 1, 0)) + 1, rule) if rule.wildcard else (at, rule)
                )
            at = host.find(".", at) + 1
            if at == 0:
                return None


@lru_cache(maxsize=1)
def _list(path: Path | None) -> SuffixList:
    path = path or _bundled()
    try:
        return SuffixList(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as exc:
        raise ConfigError(f"can't read the public suffix list {path}: {exc}") from exc


def _bundled() -> Path:
    """tldextract's snapshot, found without importing the package, slower than a small job."""
    spec = find_spec("tldextract")
    if spec is None or spec.origin is None:
        raise ConfigError(
            "the package tldextract, which brings the public suffix list, is not installed"
        )
    return Path(spec.origin).with_name(_SNAPSHOT)


def domain_of(host: str) -> str:
    """Returns the registered domain of a host in lower case; else the host (getAssignedDomain)."""
    return _domain_of(host, processwide.settings().suffix_list)


@lru_cache(maxsize=65536)
def _domain_of(host: str, suffix_list: Path | None) -> str:
    host = host.removesuffix(".").lower()
    # No registered domain ends in digits.
    if host.rpartition(".")[2].isdecimal() or host.endswith("]"):
        return host  # an IP address
    found = _list(suffix_list).find(host)
    # Unknown, or itself a suffix: EffectiveTldFinder then returns the host.
    if found is None or found[0] == 0:
        return host
    at, rule = found
    # `!city.kawasaki.jp`: the exception itself is a registered domain.
    if rule.exception:
        return rule.suffix
    start = host.rfind(".", 0, at - 1) + 1
    # EffectiveTldFinder checks the label by IDN.toASCII.
    if host.startswith(".") or ".." in host[:at] or not _is_label(host[start : at - 1]):
        return host
    return host[start:]


def _is_label(label: str) -> bool:
    try:
        return label.isascii() or bool(label_to_ascii_2003(label))
    except UrlError:
        return False


def suffix_of(host: str) -> str | None:
    """Returns the public suffix of a host as Nutch prints it, None if there is none
    (getEffectiveTLD; case-sensitive).
    """
    return _suffix_of(host, processwide.settings().suffix_list)


@lru_cache(maxsize=65536)
def _suffix_of(host: str, suffix_list: Path | None) -> str | None:
    host = host.removesuffix(".")
    found = _list(suffix_list).find(host)
    return None if found is None else found[1].printed


def domain_name(url: str | Url) -> str:
    """URLUtil.getDomainName; UrlError if `url` is not a URL."""
    return domain_of((parse(url) if isinstance(url, str) else url).host)


def choose_representative(source: str, target: str, temporary: bool) -> str:
    """Chooses which of two URLs stands for a page that redirects (URLUtil.chooseRepr); the target
    where either is no URL.

    The target, unless both URLs are of one domain, and then
    - permanent redirect: the source if it is a root, else the target;
    - temporary, one of them a root: the root;
    - temporary, same host, no root: fewer path segments, then the shorter file, then the source;
    - else: fewer host labels, then the source.
    """
    try:
        src, dst = parse(source), parse(target)
    except UrlError:
        return target
    if domain_name(src) != domain_name(dst):
        return target
    src_root, dst_root = src.file in ("", "/"), dst.file in ("", "/")
    if not temporary:
        return source if src_root else target
    if src_root != dst_root:
        return source if src_root else target
    if not src_root and src.host == dst.host:
        return target if _depth(dst) < _depth(src) else source
    return target if len(split_labels(dst.host)) < len(split_labels(src.host)) else source


def _depth(url: Url) -> tuple[int, int]:
    """Path segments (a slash in the query counts), then length in UTF-16 units."""
    # As String.split and String.length count.
    return len(split_labels(url.file, "/")), len(url.file.encode("utf-16-le", "surrogatepass"))
