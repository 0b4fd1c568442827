"""The schema that ships with the project, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

SCHEMA = Path(__file__).parents[3] / "conf/commoncrawl-metadata.schema.json"
VALIDATOR = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def check(record: Any) -> None:
    """Fail if a record of metadata is not as the schema says."""
    error = best_match(VALIDATOR.iter_errors(record))
    assert error is None, f"{error.json_path}: {error.message}"


def is_valid(record: Any) -> bool:
    """Returns whether a record of metadata conforms to the schema."""
    return bool(VALIDATOR.is_valid(record))
