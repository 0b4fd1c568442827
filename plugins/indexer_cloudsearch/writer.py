"""indexer-cloudsearch: sends batches of documents to Amazon CloudSearch. Needs boto3 (extra
`cloudsearch`).

    endpoint         the domain's document endpoint, as AWS shows it
    region           of AWS; empty: as AWS's own tools find it, which goes for the credentials, too
    batch.dump       batches go into files CloudSearch_*.json in the folder for temporary files
                     instead (false); boto3 is not needed then
    batch.maxSize    documents in a batch (-1: any number; never more than 5 MB)

and of our own: config.endpoint (where the domain is described, for a stand-in). No server of this
kind can be run, so this writer has met the stand-in of its tests and boto3's own checks, and not
the service itself.

A batch is a JSON array of {"type": "add", "id", "fields"} and {"type": "delete", "id"}. The id is
the SHA-512 of the URL; names of fields are in small letters, with an underscore for what is no
letter or digit; fields that the domain lacks are left out. A document of more than 1 MB is refused.
A batch that fails ends the job; Nutch goes on without it.

Source: org.apache.nutch.indexwriter.cloudsearch.CloudSearchIndexWriter, CloudSearchUtils.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import polars as pl

from minutch.errors import ConfigError, IndexBusyError, IndexWriterError
from minutch.plugin.documents import Documents
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action, IndexWriter, Refused
from minutch.records.document import NutchDocument

from ..lib_indexer.bulk import columns_of, json_objects, without
from ..lib_indexer.client import BUSY

log = logging.getLogger(__name__)
T = TypeVar("T")

LARGEST_BATCH: Final = 5242880
LARGEST_DOCUMENT: Final = 1048576
_OTHER: Final = re.compile(r"[^a-z_0-9]")
_NOT_TAKEN: Final = r"[^\t\n\r\x{20}-\x{FFFD}\x{10000}-\x{10FFFF}]"


class CloudSearchIndexWriter(IndexWriter):
    """Writes to a domain, or batches into files."""

    def configure(self, parameters: Parameters) -> None:
        self.endpoint = parameters.get("endpoint", "").strip()
        self.region = parameters.get("region", "").strip()
        self.config_endpoint = parameters.get("config.endpoint", "").strip()
        self.dumps = parameters.get_boolean("batch.dump", False)
        self.most = parameters.get_int("batch.maxSize", -1)
        if not self.endpoint and not self.dumps:
            raise ConfigError(f"{parameters.owner}: parameter endpoint is missing")
        self.batch_documents = self.most if self.most > 0 else 1_000_000
        self.batch_bytes = LARGEST_BATCH
        self._fields: set[str] = set()
        self._client: Any = None

    # -- documents ---------------------------------------------------------------------------------

    def encode(self, doc: NutchDocument) -> bytes:
        return bytes(self.encode_columns(Documents.of(doc))[0])

    def encode_columns(self, documents: Documents) -> pl.Series:
        """Returns the fields, with their names as CloudSearch has them; two may have become one."""
        renamed = Documents(documents.keys)
        for name, values in columns_of(documents).items():
            renamed.add(_OTHER.sub("_", name.lower()), without(values, _NOT_TAKEN))
        return json_objects(columns_of(renamed), len(documents))

    # -- the service -------------------------------------------------------------------------------

    def open(self) -> None:
        if self.dumps:
            return
        try:
            import boto3
            from botocore.config import Config
        except ImportError as exc:
            hint = "pip install 'minutch[cloudsearch]', or batch.dump=true"
            raise IndexWriterError(
                "indexer-cloudsearch needs the package boto3", hint=hint
            ) from exc
        region = self.region or None
        once = Config(retries={"total_max_attempts": 1})  # the job waits, and says so
        document = self.endpoint if "://" in self.endpoint else f"https://{self.endpoint}"
        self._fields = self._asked(
            lambda: self._described(
                boto3.client(
                    "cloudsearch", region, endpoint_url=self.config_endpoint or None, config=once
                )
            )
        )
        self._client = self._asked(
            lambda: boto3.client("cloudsearchdomain", region, endpoint_url=document, config=once)
        )

    def _described(self, service: Any) -> set[str]:
        """Returns the fields of the domain that the endpoint belongs to."""
        for domain in service.describe_domains()["DomainStatusList"]:
            if domain.get("DocService", {}).get("Endpoint") == self.endpoint:
                found = service.describe_index_fields(DomainName=domain["DomainName"])
                return {field["Options"]["IndexFieldName"] for field in found["IndexFields"]}
        raise IndexWriterError(f"CloudSearch has no domain with the endpoint {self.endpoint}")

    def write(self, actions: Sequence[Action]) -> Sequence[Refused]:
        refused: list[Refused] = []
        fitting: list[bytes] = []
        for action in actions:
            operation = self._operation(action)
            if len(operation) > LARGEST_DOCUMENT:
                refused.append(
                    Refused(
                        action.key, f"has {len(operation)} bytes, {LARGEST_DOCUMENT} are the most"
                    )
                )
            else:
                fitting.append(operation)
        for batch in _batches(fitting):
            self._upload(batch)
        return refused

    def _operation(self, action: Action) -> bytes:
        name = hashlib.sha512(action.key.encode()).hexdigest()
        if action.payload is None:
            return json.dumps({"type": "delete", "id": name}).encode()
        fields = json.loads(action.payload)
        known = (
            fields
            if self.dumps
            else {name: fields[name] for name in fields if name in self._fields}
        )
        return json.dumps({"type": "add", "id": name, "fields": known}, ensure_ascii=False).encode()

    def _upload(self, body: bytes) -> None:
        if self.dumps:
            try:
                with tempfile.NamedTemporaryFile(
                    prefix="CloudSearch_", suffix=".json", delete=False
                ) as file:
                    file.write(body)
            except OSError as exc:
                raise IndexWriterError(f"the batch file can't be written: {exc.strerror}") from exc
            log.info("Wrote batch file %s", file.name)
            return
        self._asked(
            lambda: self._client.upload_documents(documents=body, contentType="application/json")
        )

    def _asked(self, request: Callable[[], T]) -> T:
        """Sends a request and returns the answer. Raises IndexBusyError, IndexWriterError."""
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            EndpointConnectionError,
            HTTPClientError,
        )

        try:
            return request()
        except ClientError as exc:
            answer = exc.response
            code = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
            reason = f"CloudSearch, {self.endpoint}: {code}: {exc}"
            raise (IndexBusyError(reason) if code in BUSY else IndexWriterError(reason)) from exc
        except (EndpointConnectionError, HTTPClientError) as exc:
            reason = f"CloudSearch, {self.endpoint}: {exc}"
            raise (
                IndexBusyError(reason) if self._client is not None else IndexWriterError(reason)
            ) from exc
        except (BotoCoreError, ValueError) as exc:
            raise IndexWriterError(f"CloudSearch, {self.endpoint}: {exc}") from exc

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def abort(self) -> None:
        self.close()

    def describe(self) -> dict[str, tuple[str, object]]:
        return {
            "endpoint": ("the domain's document endpoint", self.endpoint),
            "region": ("region of AWS", self.region),
            "batch.dump": ("whether batches go into files", str(self.dumps).lower()),
            "batch.maxSize": ("documents in a batch", self.most),
        }


def _batches(operations: Sequence[bytes]) -> Iterator[bytes]:
    """JSON arrays of operations, each small enough."""
    batch: list[bytes] = []
    size = 2
    for operation in operations:
        if batch and size + len(operation) + 1 > LARGEST_BATCH:
            yield b"[" + b",".join(batch) + b"]"
            batch, size = [], 2
        batch.append(operation)
        size += len(operation) + 1
    if batch:
        yield b"[" + b",".join(batch) + b"]"
