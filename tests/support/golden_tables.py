"""Golden tables: JSON lines, plain or gzipped, and the suffix list that lies beside them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from minutch import processwide
from minutch.errors import UrlError
from tests.support.golden import GOLDEN

TABLES = GOLDEN / "tables"


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a table; `name` ends with .jsonl or .jsonl.gz."""
    path = TABLES / name
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in text.decode("utf-8").splitlines()]


@contextmanager
def suffix_list() -> Iterator[None]:
    """The public suffix list that Nutch had when the tables were made."""
    processwide.change(suffix_list=TABLES / "effective_tld_names.dat")
    try:
        yield
    finally:
        processwide.change(suffix_list=None)


def answer(ask: Callable[..., Any], *args: Any, error: str = "!MalformedURLException") -> Any:
    """Calls a function and writes its result as the tables do: an exception is its Java name after
    an exclamation mark.
    """
    try:
        return ask(*args)
    except UrlError:
        return error
