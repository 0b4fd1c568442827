"""indexer-opensearch-1x: sends documents to OpenSearch 1, 2 and 3. Parameters in addition to those
of `lib_indexer/bulk.py`:

    username, password                   admin, admin; nothing is sent if the name is empty
    trust.store.path, .password, .type   certificates that are trusted
    key.store.path, .password, .type     key and certificate that the client shows

`lib_indexer/client.py` says which files these may be. Unlike Nutch, which without a trust store
takes any certificate that is signed by itself, certificates are verified;
tls.certificates.check=false takes all.

Source: org.apache.nutch.indexwriter.opensearch1x.OpenSearch1xIndexWriter.
"""

from __future__ import annotations

from minutch.plugin.parameters import Parameters

from ..lib_indexer.bulk import BulkWriter
from ..lib_indexer.client import KeyStoreFile, store_of


class OpenSearch1xIndexWriter(BulkWriter):
    """Writes to an index of OpenSearch."""

    engine = "OpenSearch"
    default_user = "admin"
    default_password = "admin"

    def _signs_in(self, parameters: Parameters) -> bool:
        return bool(self.user.strip())

    def _trusted(self, parameters: Parameters) -> KeyStoreFile | None:
        return store_of(parameters, "trust.store")

    def _own(self, parameters: Parameters) -> KeyStoreFile | None:
        return store_of(parameters, "key.store")
