"""Fetches http and https; the code is in lib-http, which other protocol plugins may use as well."""

from __future__ import annotations

from ..lib_http.base import HttpBase


class Http(HttpBase):
    """protocol-http: Nutch's plugin of that name, with connections that are kept and certificates
    that are checked.
    """
