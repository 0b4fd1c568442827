"""Decides which part of a fetch list a URL goes to: all pages of one host (domain, address) go to
the same part.

    part = ((String.hashCode of host, domain or address) ^ seed) & 0x7fffffff % parts

Properties: `partition.url.mode` byHost, byDomain or byIP, `partition.url.seed`. URLs are normalized
first (scope `partition`); what is no URL is placed by all of its text.

Source: org.apache.nutch.crawl.URLPartitioner.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.hadoop.formats.javahash import int32, string_hash
from minutch.plugin.chains import SCOPE_PARTITION, URLNormalizers
from minutch.urls.hostcolumns import domains_of, hosts_of, map_distinct

log = logging.getLogger(__name__)

MODE_PROPERTY: Final = "partition.url.mode"
SEED_PROPERTY: Final = "partition.url.seed"
BY_HOST: Final = "byHost"
BY_DOMAIN: Final = "byDomain"
BY_IP: Final = "byIP"

Resolve = Callable[[str], str | None]
"""The IP address of a host as text; None if it has none."""


class UrlPartitioner:
    """Decides which part a URL goes to. `resolve` looks hosts up where the mode is byIP, each once
    in the life of this object, which is a job: addresses of hosts change while a crawl goes on.
    """

    def __init__(
        self, normalizers: URLNormalizers, resolve: Resolve, *, mode: str = BY_HOST, seed: int = 0
    ) -> None:
        self._normalizers = normalizers
        self._resolve = resolve
        self._mode = mode
        self._seed = int32(seed)
        self._addresses: dict[str, str | None] = {}

    @classmethod
    def from_conf(
        cls, conf: Configuration, resolve: Resolve, seed: int | None = None
    ) -> UrlPartitioner:
        """Reads `partition.url.mode` and, unless `seed` is given, `partition.url.seed`."""
        return cls(
            URLNormalizers(conf, SCOPE_PARTITION),
            resolve,
            mode=conf.get_word(MODE_PROPERTY),
            seed=conf.get_int(SEED_PROPERTY, 0) if seed is None else seed,
        )

    def parts_of(self, urls: pl.Series, parts: int) -> pl.Series:
        """Returns the part (0 to parts - 1, Int64) of each of `urls` (String)."""
        # No normalizing, and no look-ups of addresses.
        if parts == 1:
            return pl.repeat(0, len(urls), dtype=pl.Int64, eager=True).alias("part")
        normal = self._normalizers.normalize_column(urls)
        hosts = hosts_of(normal)
        if self._mode == BY_DOMAIN:
            hosts = domains_of(hosts)
        function = self._address_hash if self._mode == BY_IP else string_hash
        hashes = map_distinct(hosts, function, pl.Int64())
        no_urls = hosts.is_null().arg_true()
        if len(no_urls):
            # URLPartitioner logs "Malformed URL" and hashes the whole string.
            texts = normal.zip_with(normal.is_not_null(), urls).gather(no_urls)
            log.warning("%d malformed URLs, such as %s", len(texts), texts[0])
            hashes = hashes.scatter(no_urls, map_distinct(texts, string_hash, pl.Int64()))
        # `hashCode ^= seed`, which makes hosts wind up in different partitions on different runs.
        seeded = hashes.cast(pl.Int32) ^ pl.Series([self._seed], dtype=pl.Int32)
        return ((seeded & 0x7FFFFFFF).cast(pl.Int64) % parts).alias("part")

    def _address_hash(self, host: str) -> int:
        if host not in self._addresses:
            # setdefault: threads may ask for the same host at the same time.
            self._addresses.setdefault(host, self._resolve(host))
        address = self._addresses[host]
        if address is None:
            log.info("no address is known of host %s", host)
            return 0
        return string_hash(address)
