"""indexer-elastic: sends documents to Elasticsearch. Parameters in addition to those of
`lib_indexer/bulk.py`:

    auth                 whether username (elastic) and password are sent (false)
    trust.store.path     certificates that are trusted, of our own: PEM, JKS or PKCS12;
                         trust.store.password

Unlike Nutch, which trusts any certificate, those of https are verified;
tls.certificates.check=false brings that back.

Source: org.apache.nutch.indexwriter.elastic.ElasticIndexWriter.
"""

from __future__ import annotations

from minutch.plugin.parameters import Parameters

from ..lib_indexer.bulk import BulkWriter
from ..lib_indexer.client import KeyStoreFile, store_of


class ElasticIndexWriter(BulkWriter):
    """Writes to an index of Elasticsearch."""

    engine = "Elasticsearch"
    default_user = "elastic"

    def _signs_in(self, parameters: Parameters) -> bool:
        return parameters.get_boolean("auth", False)

    def _trusted(self, parameters: Parameters) -> KeyStoreFile | None:
        return store_of(parameters, "trust.store")
