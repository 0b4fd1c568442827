"""Configures TLS: translates Java's names of versions and cipher suites, as in Nutch's properties,
to OpenSSL's.

    http.tls.supported.protocols        TLSv1.3, TLSv1.2, TLSv1.1, TLSv1; the range from the oldest
                                        to the newest named
    http.tls.supported.cipher.suites    TLS_AES_128_GCM_SHA256, TLS_RSA_WITH_AES_128_CBC_SHA, … or
                                        OpenSSL's names

Nothing set means the library's own choice (TLS 1.2 and newer). What OpenSSL does not have (SSLv3,
…) is left out; if nothing is left that is an error. Versions without a suite that is named are not
spoken.

Source: the constructor of Nutch's HttpBase; names by RFC 5246 and its successors.
"""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pycurl

from minutch.conf import Configuration
from minutch.errors import ConfigError

log = logging.getLogger(__name__)

VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
GROUPS: Final = "X25519:P-256:X448:P-521:P-384:ffdhe2048:ffdhe3072"
"""Those that Java offers, which OpenSSL up to 3.4 offered by itself. ML-KEM, which it puts first
now, costs a tenth of a handshake, for the secrecy of pages that anybody may ask for.
"""
_STORES: Final = 256
_SUITE: Final = re.compile(r"(?:TLS|SSL)_(\w+?)_WITH_(\w+)")
_LENGTH: Final = re.compile(r"(AES|CAMELLIA|ARIA)_(\d+)_")
_KINDS: Final = ("ECDHE_ECDSA", "ECDHE_RSA", "DHE_RSA", "DHE_DSS", "RSA", "DH_anon", "ECDH_anon")
_CIPHERS: Final = (
    *(
        f"AES_{bits}_{mode}_SHA{digest}"
        for bits, digest in ((128, 256), (256, 384))
        for mode in ("GCM", "CBC")
    ),
    *(f"{name}_{bits}_CBC_SHA" for name in ("AES", "CAMELLIA") for bits in (128, 256)),
    *(f"{name}_{bits}_CBC_SHA256" for name in ("AES", "CAMELLIA") for bits in (128, 256)),
    *(f"AES_{bits}_CCM{short}" for bits in (128, 256) for short in ("", "_8")),
    "CHACHA20_POLY1305_SHA256",
    "3DES_EDE_CBC_SHA",
)


def openssl_name(suite: str) -> str:
    """Returns OpenSSL's name of a suite; a name that is not Java's is unchanged.

    >>> openssl_name("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA")
    'ECDHE-RSA-AES128-SHA'
    """
    match = _SUITE.fullmatch(suite)
    if match is None:
        return suite
    kind = {"RSA": "", "DH_anon": "ADH", "ECDH_anon": "AECDH"}.get(
        match[1], match[1].replace("_", "-")
    )
    cipher = (
        match[2]
        .replace("3DES_EDE_CBC", "DES-CBC3")
        .replace("RC4_128", "RC4")
        .replace("CCM_8", "CCM8")
    )
    cipher = _LENGTH.sub(r"\1\2_", cipher).replace("_CBC_", "_")
    if cipher.startswith("CHACHA20"):
        cipher = cipher.removesuffix("_SHA256")
    return "-".join(part for part in (kind, cipher.replace("_", "-")) if part)


@lru_cache(maxsize=1)
def _java_names() -> dict[str, str]:
    return {
        openssl_name(name): name
        for kind in _KINDS
        for cipher in _CIPHERS
        if (name := f"TLS_{kind}_WITH_{cipher}")
    }


def java_name(cipher: str) -> str:
    """Java's name of a suite that OpenSSL names, as Nutch's records have it; OpenSSL's where it is
    a rare one.
    """
    return _java_names().get(cipher, cipher)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Versions (None: the library's choice) and suites by OpenSSL's names; those of TLS 1.3 are set
    apart.
    """

    oldest: ssl.TLSVersion | None = None
    newest: ssl.TLSVersion | None = None
    ciphers: tuple[str, ...] = ()
    ciphers13: tuple[str, ...] = ()

    @classmethod
    def from_conf(cls, conf: Configuration) -> TlsSettings:
        """Reads the two properties. Raises ConfigError if they leave nothing."""
        versions = sorted(_versions(conf.get_trimmed_strings("http.tls.supported.protocols")))
        suites = [
            openssl_name(name)
            for name in conf.get_trimmed_strings("http.tls.supported.cipher.suites")
        ]
        # Signals in a list of suites (RFC 5746, 3.3; RFC 7507): Java names them, OpenSSL does not.
        suites = [name for name in suites if not name.endswith("_SCSV")]
        old, new = (
            # What still begins so is of TLS 1.3, whose suites have the same names in OpenSSL.
            tuple(n for n in suites if n.startswith("TLS_") is is_new)
            for is_new in (False, True)
        )
        if suites:
            versions = versions or [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
            versions = [v for v in versions if (new if v == ssl.TLSVersion.TLSv1_3 else old)]
            if not versions:
                raise ConfigError(
                    "http.tls.supported.cipher.suites: none is of a version that may be spoken"
                )
        return cls(versions[0] if versions else None, versions[-1] if versions else None, old, new)

    @property
    def cipher_list(self) -> str:
        """OpenSSL's list for versions before 1.3, `""` for its own; the old versions need its
        lowest level.
        """
        ciphers = ":".join(self.ciphers)
        if self.oldest is not None and self.oldest < ssl.TLSVersion.TLSv1_2:
            # OpenSSL 3 speaks TLS 1.0 and 1.1 on no other level: they sign by SHA-1 (its CHANGES).
            return f"{ciphers or 'DEFAULT'}:@SECLEVEL=0"
        return ciphers

    def context(self, *, verify: bool, ca_file: str) -> ssl.SSLContext:
        """Returns a context of Python's for these settings. Python (before 3.15) does not choose
        among the suites of 1.3.
        """
        context = ssl.create_default_context(cafile=ca_file or None)
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.oldest is not None and self.newest is not None:
            context.minimum_version, context.maximum_version = self.oldest, self.newest
        if self.cipher_list:
            context.set_ciphers(self.cipher_list)
        return context


class TlsSessions:
    """Stores of TLS sessions, by which the next connection to a server goes on where the last one
    ended, without a look at its certificate. One store of libcurl's keeps 25 servers' sessions,
    whatever the number of connections; so there are many, and a server has its one.
    """

    def __init__(self) -> None:
        self._stores: dict[int, Any] = {}

    def of(self, authority: str) -> Any:
        """Returns the store (a pycurl.CurlShare) of a server."""
        number = hash(authority) % _STORES
        store = self._stores.get(number)
        if store is None:
            store = self._stores[number] = pycurl.CurlShare()
            store.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_SSL_SESSION)
        return store


def _versions(names: Iterable[str]) -> list[ssl.TLSVersion]:
    names = list(names)
    known = [VERSIONS[name] for name in names if name in VERSIONS]
    left_out = [name for name in names if name not in VERSIONS]
    if left_out and not known:
        raise ConfigError(
            f"http.tls.supported.protocols: expected some of {', '.join(VERSIONS)}, found"
            f" {', '.join(names)}"
        )
    if left_out:
        log.info("http.tls.supported.protocols: not spoken here: %s", ", ".join(left_out))
    return known
