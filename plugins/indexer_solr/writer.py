"""indexer-solr: sends documents to Apache Solr, as commands in JSON to its update handler.

    type                  http: each URL gets all documents; cloud: any node of a SolrCloud does;
                          lb: the URLs lead to one index and get batches in turn. A URL that can't
                          be reached is passed over in these two
    url                   with commas between: of cores or collections (http, lb), or Solr's root
                          (cloud)
    collection            where documents go (cloud)
    commitSize            actions in a request (1000); nothing is committed before the end
    weight.field          field that gets the document's weight, if any
    auth                  whether what follows is sent (false)
    username, password    basic authentication
    auth.header.name, auth.header.value    Authorization: NAME VALUE, instead

and of our own: timeout (seconds for an answer, 120), trust.store.path, trust.store.password
(certificates that are trusted), tls.certificates.check (true). `index -params
"commitWithin=10000&…"` goes into each update. In title and content, code points that stand for no
character are left out, as in Nutch.

Nutch asks for an optimized index after every batch, which commits it as well; here there is one
commit, at the end. It has no `lb`, and deletes nothing without -deleteGone, even where a property
(indexer.delete.robots.noindex) asks for it.

Source: org.apache.nutch.indexwriter.solr.SolrIndexWriter, SolrUtils.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Final
from urllib.parse import quote

import polars as pl

from minutch.errors import ConfigError, IndexBusyError
from minutch.plugin.documents import Documents
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action, IndexWriter, Refused
from minutch.records.document import NutchDocument

from ..lib_indexer.bulk import columns_of, json_objects, without_noncharacters
from ..lib_indexer.client import (
    TIMEOUT_SECONDS,
    MissingError,
    SearchServer,
    at_start,
    masked,
    send_in_halves,
    shown,
    store_of,
    tls_context,
)

HTTP: Final = "http"
CLOUD: Final = "cloud"
BALANCED: Final = "lb"
TYPES: Final = (HTTP, CLOUD, BALANCED)
PARAMS_PROPERTY: Final = "indexer.additional.params"


class SolrIndexWriter(IndexWriter):
    """Writes to one index, or to several that are to be equal."""

    def configure(self, parameters: Parameters) -> None:
        self.type = parameters.get("type", "").strip() or HTTP
        if self.type not in TYPES:
            raise parameters.wrong("type", "http, cloud or lb")
        self.urls = [url.strip() for url in parameters.get_strings("url") if url.strip()]
        if not self.urls:
            raise ConfigError(f"{parameters.owner}: parameter url is missing")
        for url in self.urls:
            if not url.startswith(("http://", "https://")):
                raise parameters.wrong("url", "URLs that begin with http:// or https://")
        self.collection = parameters.get("collection", "").strip()
        if self.type == CLOUD and not self.collection:
            raise ConfigError(f"{parameters.owner}: type cloud needs the parameter collection")
        self.batch_documents = max(1, parameters.get_int("commitSize", 1000))
        self.weight_field = parameters.get("weight.field", "").strip()
        self.auth = parameters.get_boolean("auth", False)
        self.user, self.password = parameters.get("username", ""), parameters.get("password", "")
        self.header = (
            parameters.get("auth.header.name", ""),
            parameters.get("auth.header.value", ""),
        )
        self.timeout = parameters.get_float("timeout", TIMEOUT_SECONDS)
        self.verifies = parameters.get_boolean("tls.certificates.check", True)
        self._trusted = store_of(parameters, "trust.store")
        self._params = _pairs(self.conf.get_text(PARAMS_PROPERTY))
        self._servers: list[SearchServer] = []

    # -- documents ---------------------------------------------------------------------------------

    def encode(self, doc: NutchDocument) -> bytes:
        return bytes(self.encode_columns(Documents.of(doc))[0])

    def encode_columns(self, documents: Documents) -> pl.Series:
        fields = columns_of(documents)
        for name in fields.keys() & {"title", "content"}:
            fields[name] = without_noncharacters(fields[name])
        if self.weight_field:
            with_weight = documents.copy()
            with_weight.add(self.weight_field, documents.weights)
            fields |= {self.weight_field: columns_of(with_weight)[self.weight_field]}
        return json_objects(fields, len(documents))

    # -- the server --------------------------------------------------------------------------------

    def open(self) -> None:
        self.abort()
        collections = [f"{url.rstrip('/')}/{quote(self.collection, safe='')}" for url in self.urls]
        addresses = collections if self.type == CLOUD else self.urls
        groups = [[url] for url in addresses] if self.type == HTTP else [addresses]
        secure = any(url.startswith("https:") for url in addresses)
        tls = tls_context(self._trusted, verify=self.verifies) if secure else None
        sends_header = self.auth and all(self.header)
        sends_user = self.auth and not sends_header and self.user and self.password
        for group in groups:
            server = SearchServer(
                group,
                self.clock,
                authorization=" ".join(self.header) if sends_header else None,
                user=(self.user, self.password) if sends_user else None,
                tls=tls,
                timeout=self.timeout,
            )
            self._servers.append(server)
            with at_start():
                _update(server, b"{}", self._params)

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        refused: dict[str, Refused] = {}
        for server in self._servers:
            try:
                found = send_in_halves(actions, partial(self._send, server))
            except IndexBusyError as error:
                if (
                    len(self._servers) > 1
                ):  # others have less or more of the batch: all of it, again
                    error.rest, error.refused = None, ()
                raise
            refused |= {item.key: item for item in found}
        return list(refused.values())

    def _send(self, server: SearchServer, actions: Sequence[Action]) -> list[Refused]:
        commands = [
            b'"delete":' + json.dumps({"id": key}).encode()
            if payload is None
            else b'"add":{"doc":' + payload + b"}"
            for key, payload in actions
        ]
        _update_patiently(server, b"{" + b",".join(commands) + b"}", self._params)
        return []

    def commit(self) -> None:
        for server in self._servers:
            _update_patiently(server, b'{"commit":{}}', ())

    def close(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    def abort(self) -> None:
        self.close()

    def describe(self) -> dict[str, tuple[str, object]]:
        return {
            "type": ("http, cloud or lb", self.type),
            "url": ("where Solr is", ",".join(map(shown, self.urls))),
            "collection": ("collection of a SolrCloud", self.collection),
            "commitSize": ("actions in a request", self.batch_documents),
            "weight.field": ("field for the document's weight", self.weight_field),
            "auth": ("whether credentials are sent", str(self.auth).lower()),
            "auth.header.name": ("first word of the header Authorization", self.header[0]),
            "auth.header.value": ("and what follows", masked(self.header[1])),
            "username": ("user", self.user),
            "password": ("password", masked(self.password)),
        }


def _update(server: SearchServer, body: bytes, params: Sequence[tuple[str, str]]) -> None:
    server.request("POST", "/update", body=body, params=[*params, ("wt", "json")])


def _update_patiently(server: SearchServer, body: bytes, params: Sequence[tuple[str, str]]) -> None:
    """Updates an existing index: a SolrCloud that restarts answers 404 for some seconds."""
    try:
        _update(server, body, params)
    except MissingError as error:
        raise IndexBusyError(str(error)) from error


def _pairs(text: str) -> list[tuple[str, str]]:
    """`a=b&c=d`; what has no value is left out."""
    pairs = (piece.split("=") for piece in text.split("&"))
    return [(pair[0], pair[1]) for pair in pairs if len(pair) > 1 and pair[1]]
