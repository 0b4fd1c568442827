"""All rows of the table."""

from __future__ import annotations

from tests.benchmarks.kernels import columns, files, pages, records, texts

ROWS = (*columns.ROWS, *files.ROWS, *records.ROWS, *pages.ROWS, *texts.ROWS)
