"""Decides which addresses may be connected to, so that no page reaches the internal network.

    http.filter.ipaddress.include   if set, only these; the one way to reach the special ranges
                                    below
    http.filter.ipaddress.exclude   never these

Rules are networks (`10.0.0.0/8`, `fd00::/8`), single addresses, `loopback` (or `localhost`) and
`sitelocal`. Without `include` every address outside the special ranges is allowed. Source:
IPFilterRules and CIDR of protocol-okhttp, which however allow everything by default. An IPv6
address that stands for an IPv4 one (mapped, 6to4, NAT64, Teredo) is judged by both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from minutch.conf import Configuration

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
INCLUDE: Final = "http.filter.ipaddress.include"
EXCLUDE: Final = "http.filter.ipaddress.exclude"
REMEMBERED: Final = 65536
"""Addresses whose answers are remembered."""


@dataclass(frozen=True, slots=True)
class AddressRule:
    """A rule as written, and which addresses it means."""

    text: str
    means: Callable[[Address], bool]

    def __call__(self, address: Address) -> bool:
        return self.means(address)


SPECIAL: Final[tuple[Network, ...]] = tuple(map(ip_network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "::/128", "::1/128",
    "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16",
    "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)))  # fmt: skip
"""IANA's special-purpose registries: nothing here is a public web server (169.254.169.254 is a
cloud's metadata).
"""

_SITE_LOCAL: Final = tuple(
    ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fec0::/10")
)
# RFC 6052, 2.1, and RFC 4291, 2.5.5.1.
_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")
_MAPPED_BITS: Final = 96


def embedded(address: Address) -> Address | None:
    """Returns the IPv4 address that an IPv6 one stands for, None if it stands for itself."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    # ::1 (and ::) lie among the compatible ones, and stand for themselves.
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def special_network(address: Address) -> Network | None:
    """Returns the special range that an address is in."""
    return next(
        (
            network
            for network in SPECIAL
            if address.version == network.version and address in network
        ),
        None,
    )


def _in(networks: Iterable[Network]) -> Callable[[Address], bool]:
    kept = tuple(networks)
    return lambda address: any(
        address.version == network.version and address in network for network in kept
    )


_NAMED: Final[dict[str, Callable[[Address], bool]]] = {
    "localhost": lambda address: address.is_loopback,
    "loopback": lambda address: address.is_loopback,
    "sitelocal": _in(_SITE_LOCAL),
}


def parse_rule(text: str) -> AddressRule:
    """Parses a rule; a network within ::ffff:0:0/96 becomes an IPv4 network. Raises ValueError."""
    named = _NAMED.get(text.lower())
    if named is not None:
        return AddressRule(text, named)
    network = ip_network(text, strict=False)
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is not None:
        network = ip_network(f"{mapped}/{max(0, network.prefixlen - _MAPPED_BITS)}", strict=False)
    return AddressRule(text, _in([network]))


class AddressRules:
    """Says which addresses may be connected to."""

    def __init__(
        self, include: Iterable[AddressRule] = (), exclude: Iterable[AddressRule] = ()
    ) -> None:
        self._include = tuple(include)
        self._exclude = tuple(exclude)
        self._known: dict[str, bool] = {}

    @classmethod
    def from_conf(cls, conf: Configuration) -> AddressRules:
        """Rules of the two properties. Raises ConfigError: a rule left out would let in whom it
        should not.
        """
        return cls(*(_read_rules(conf, name) for name in (INCLUDE, EXCLUDE)))

    def accepts(self, text: str) -> bool:
        """Returns True if the address in `text` (a zone may follow) may be connected to."""
        known = self._known.get(text)
        if known is None:
            known = not self.refusal(text)
            if len(self._known) >= REMEMBERED:
                self._known.clear()  # or the first addresses of a long crawl would stay for ever
            self._known[text] = known
        return known

    def refusal(self, text: str) -> str:
        """Returns the rule that forbids to connect to the address in `text` (a zone may follow);
        empty if none does.
        """
        try:
            address = ip_address(text.partition("%")[0])
        except ValueError:
            return f"{text} is no address"
        inner = embedded(address)
        addresses = [address] if inner is None else [address, inner]
        rule = next((rule for rule in self._exclude if any(map(rule, addresses))), None)
        if rule is not None:
            return f"{text} is in {rule.text} of {EXCLUDE}"
        if self._include:
            accepted = any(rule(a) for rule in self._include for a in addresses)
            return "" if accepted else f"{text} is in none of the networks of {INCLUDE}"
        special = next(
            (network for a in addresses if (network := special_network(a)) is not None), None
        )
        return (
            ""
            if special is None
            else f"{text} is in {special}, which is not the public net; see {INCLUDE}"
        )


def _read_rules(conf: Configuration, name: str) -> list[AddressRule]:
    rules = []
    for text in conf.get_trimmed_strings(name):
        try:
            rules.append(parse_rule(text))
        except ValueError:
            raise conf.wrong(name, "a network, an address, loopback or sitelocal", text) from None
    return rules
