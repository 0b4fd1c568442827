"""Makes the fields of a WARC file's warcinfo record, which describe the crawler. Pure: no I/O.

Source: org.apache.nutch.tools.WARCUtils (getWARCInfoContent, getAgentString).
"""

from __future__ import annotations

from dataclasses import dataclass

from minutch.conf import Configuration
from minutch.warc.warcfile import V1_0, V1_1

_SPECIFICATIONS = {
    V1_0: "http://bibnum.bnf.fr/WARC/WARC_ISO_28500_version1_latestdraft.pdf",
    V1_1: "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
}
_PARTS = ("name", "email", "host")


@dataclass(frozen=True, slots=True)
class CrawlerIdentity:
    """The crawler as it introduces itself (http.agent.*)."""

    name: str = ""
    agent: str = ""
    """The User-Agent that it sends."""
    email: str = ""
    host: str = ""

    @classmethod
    def from_conf(cls, conf: Configuration) -> CrawlerIdentity:
        """Reads the configuration."""
        name, email, host = (conf.get_text(f"http.agent.{part}") for part in _PARTS)
        return cls(name, agent_text(conf), email, host)


def crawler_info(
    crawler: CrawlerIdentity, host: str, address: str, version: str = V1_0
) -> dict[str, str]:
    """Returns format, crawler, machine and operator; `host` and `address` are this machine's, but a
    configured host comes first.
    """
    fields = {
        "format": f"WARC File Format {version}",
        "conformsTo": _SPECIFICATIONS[version],
        "software": crawler.name,
        "http-header-user-agent": crawler.agent,
        "http-header-from": crawler.email,
        "hostname": crawler.host or host,
        "ip": address,
        "robots": "classic",
        "operator": crawler.email,
    }
    return {name: value for name, value in fields.items() if value.strip()}


def agent_text(conf: Configuration) -> str:
    """`name/version (description; url; email)`, without what is not set; "" for a crawler without a
    name, which has sent nothing (RFC 9110, 10.1.5: a product has one).
    """
    name, version, *rest = (
        conf.get_text(f"http.agent.{part}").strip()
        for part in ("name", "version", "description", "url", "email")
    )
    comment = "; ".join(filter(None, rest))
    if not name:
        return ""
    return f"{name}{f'/{version}' if version else ''}{f' ({comment})' if comment else ''}"
