"""Page signatures against Nutch's on 130 texts: tables/signatures.jsonl."""

from __future__ import annotations

import json

from minutch.conf import Configuration
from minutch.cycle.parse.signature import make_signature
from minutch.records.protocol import Content
from tests.support.golden import GOLDEN, needs_golden

pytestmark = needs_golden("tables/signatures.jsonl")

TABLE = GOLDEN / "tables" / "signatures.jsonl"
PACKAGE = "org.apache.nutch.crawl."


def configuration(column: str) -> Configuration:
    name, *settings = column.split(":")
    values = {"db.signature.class": PACKAGE + name}
    if settings:
        keys = ("quant_rate", "min_token_len", "sec_sort_lex")
        values |= {
            f"db.signature.text_profile.{key}": value
            for key, value in zip(keys, settings, strict=True)
        }
    return Configuration().with_values(values)


def test_every_row() -> None:
    rows = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
    columns = [
        name for name in rows[0] if "Signature" in name and not name.endswith("-emptycontent")
    ]
    wrong = []
    for column in columns:
        signature = make_signature(configuration(column))
        for row in rows:
            content = Content(url=row["url"], base=row["url"], content=row["content"].encode())
            if signature.calculate(content, row["text"]).hex() != row[column]:
                wrong.append((column, row["url"]))
    assert len(rows) >= 130
    assert len(columns) == 9
    assert wrong == []


def test_empty_content_has_the_signature_of_the_url() -> None:
    signature = make_signature(Configuration())
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        content = Content(url=row["url"], base=row["url"])
        assert signature.calculate(content, None).hex() == row["MD5Signature-emptycontent"]
