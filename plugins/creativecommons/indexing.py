"""Index field `cc`: adds the licence of a page and its kind of work.

    license=URL, and each part of the licence's name: by, sa, 4.0
    meta=rdf, meta=rel or meta=a    where it was found
    video, image, …                 the kind of work

Source: org.creativecommons.nutch.CCIndexingFilter.
"""

from __future__ import annotations

import polars as pl

from minutch.errors import UrlError
from minutch.plugin.columns import map_distinct
from minutch.plugin.documents import Documents, Pages
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.links import Inlinks
from minutch.urls.parts import parse as parse_url

from .licence import LICENSE_LOCATION, LICENSE_URL, WORK_TYPE

FIELD = "cc"


class CCIndexingFilter(IndexingFilter):
    """The indexing filter; see the module."""

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        metadata = parse.data.parse_meta
        license_url, location, kind = map(metadata.get, (LICENSE_URL, LICENSE_LOCATION, WORK_TYPE))
        for value in [] if license_url is None else _features(license_url):
            doc.add(FIELD, value)
        if location is not None:
            doc.add(FIELD, f"meta={location}")
        if kind is not None:
            doc.add(FIELD, kind)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        licenses = pages.parse_meta(LICENSE_URL)
        pairs = [
            (one, feature) for one in licenses.drop_nulls().unique() for feature in _features(one)
        ]
        features = pl.DataFrame(
            pairs, schema={"license": pl.String, "feature": pl.String}, orient="row"
        )
        found = (
            licenses.to_frame("license")
            .with_row_index("row")
            .join(features, "license", maintain_order="left_right")
        )
        documents.add_rows(FIELD, found["row"], found["feature"])
        documents.add(
            FIELD,
            map_distinct(pages.parse_meta(LICENSE_LOCATION), lambda location: f"meta={location}"),
        )
        documents.add(FIELD, pages.parse_meta(WORK_TYPE))
        return None


def _features(license_url: str) -> list[str]:
    """Returns a licence, and the parts of the path of its URL after the first: by, sa, 4.0."""
    try:
        names = parse_url(license_url).path.replace("-", "/").split("/")
    except UrlError:
        names = []
    # CCIndexingFilter.addUrlFeatures leaves out the first, which is `licenses`.
    return [f"license={license_url}", *[name for name in names if name][1:]]
