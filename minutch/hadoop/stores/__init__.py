"""Paths on file systems of Hadoop (hdfs://, s3a:// ...), for jobs that know nothing of them
(`minutch.hadoop.stores`).

as_path("crawl/crawldb")                a Path as_path("hdfs://name:8020/crawl/db")    a StorePath:
a Path whose files are there; read in ranges, written whole
"""

from __future__ import annotations

from minutch.hadoop.stores.path import StorePath, as_path, copies, is_local, near, remove_tree

__all__ = ["StorePath", "as_path", "copies", "is_local", "near", "remove_tree"]
