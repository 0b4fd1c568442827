"""What a WARC file says of the crawler that made it: the fields of its warcinfo record. Pure: no
I/O.

Source: org.apache.nutch.tools.WARCUtils (getWARCInfoContent, getAgentString).
"""

from __future__ import annotations

from minutch.conf import Configuration
from minutch.warc.warcfile import V1_0, V1_1

_SPECIFICATIONS = {
    V1_0: "http://bibnum.bnf.fr/WARC/WARC_ISO_28500_version1_latestdraft.pdf",
    V1_1: "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
}


def crawler_info(
    conf: Configuration, host: str, address: str, version: str = V1_0
) -> dict[str, str]:
    """Format, crawler, machine and operator; `host` and `address` are this machine's,
    http.agent.host comes first.
    """
    email = conf.get("http.agent.email") or ""
    fields = {
        "format": f"WARC File Format {version}",
        "conformsTo": _SPECIFICATIONS[version],
        "software": conf.get("http.agent.name") or "",
        "http-header-user-agent": agent_text(conf),
        "http-header-from": email,
        "hostname": conf.get("http.agent.host") or host,
        "ip": address,
        "robots": "classic",
        "operator": email,
    }
    return {name: value for name, value in fields.items() if value.strip()}


def agent_text(conf: Configuration) -> str:
    """`name/version (description; url; email)`, without what is not set."""
    name, version, *rest = (
        (conf.get(f"http.agent.{part}") or "").strip()
        for part in ("name", "version", "description", "url", "email")
    )
    comment = "; ".join(filter(None, rest))
    return f"{name}{f'/{version}' if version else ''}{f' ({comment})' if comment else ''}"
