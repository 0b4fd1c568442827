"""Which of two URLs stands for a page that redirects: Nutch's rule (URLUtil.chooseRepr).

The target, unless both URLs are of one domain, and then
- permanent redirect: the source if it is a root, else the target;
- temporary, one of them a root: the root;
- temporary, same host, no root: fewer path segments, then the shorter file, then the source;
- else: fewer host labels, then the source.
"""

from __future__ import annotations

from minutch.errors import UrlError
from minutch.urls.domains import domain_name
from minutch.urls.parts import Url, parse, split_labels


def choose_representative(source: str, target: str, temporary: bool) -> str:
    """The URL to keep, `source` or `target`; the target where either is no URL."""
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
    return len(split_labels(url.file, "/")), len(url.file.encode("utf-16-le", "surrogatepass"))
