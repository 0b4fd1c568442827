"""The files of a crawl as tables, read where they lie: for Polars, Arrow, pandas and SQL."""
