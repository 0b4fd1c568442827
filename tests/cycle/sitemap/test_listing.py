"""What sitemaps list is kept beside the CrawlDb, each as it was read last."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from minutch.cycle.sitemap import processor
from minutch.cycle.sitemap.processor import ListingWriter, SitemapListing
from minutch.cycle.sitemap.sitemapurls import ListedUrls, Sitemap

A, B = "http://a.org/map.xml", "http://a.org/other.xml"


def sitemap(url: str, *names: str) -> Sitemap:
    found = Sitemap(ListedUrls(url, strict=True))
    for name in names:
        found.add(f"http://a.org/{name}", 1_700_000_000_000, "daily", "0.8")
    return found


def write(folder: Path, *sitemaps: Sitemap) -> SitemapListing:
    found = SitemapListing(folder / "sitemaps")
    with found.lock(), found.replacement(keep_old=False) as fresh:
        writer = ListingWriter(fresh)
        for one in sitemaps:
            writer.add(one, pl.Series([page.url.upper() for page in one.urls], dtype=pl.String))
        writer.finish(found)
    return found


@pytest.mark.parametrize("rows", [1, 500_000])
def test_a_run_replaces_what_it_has_read(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "_ROWS", rows)
    write(tmp_path, sitemap(A, "1", "2"), sitemap(B, "3"))
    found = write(tmp_path, sitemap(A, "2", "4")).scan().collect()
    assert set(found.select("sitemap", "url").iter_rows()) == {
        (A, "HTTP://A.ORG/2"),
        (A, "HTTP://A.ORG/4"),
        (B, "HTTP://A.ORG/3"),
    }
    assert found["lastmod"].unique().to_list() == [datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)]
    assert found["priority"].unique().to_list() == [pytest.approx(0.8)]
    assert write(tmp_path, sitemap(B)).scan().collect()["sitemap"].to_list() == [A, A]


def test_a_url_that_filters_reject_stays_as_it_is_listed(tmp_path: Path) -> None:
    found = SitemapListing(tmp_path / "sitemaps")
    assert found.scan().collect().is_empty() and not found.exists()
    with found.lock(), found.replacement(keep_old=False) as fresh:
        writer = ListingWriter(fresh)
        writer.add(sitemap(A, "1"), pl.Series([None], dtype=pl.String))
        writer.finish(found)
    assert found.scan().collect()["url"].to_list() == ["http://a.org/1"]
