"""Opens files on Hadoop's file systems (hdfs://, s3a://) for jobs that need not know of them.

    as_path("crawl/crawldb")                a Path
    as_path("hdfs://name:8020/crawl/db")    a StorePath: read in ranges, written whole

Begin with path, which is what jobs use.

    `path`      StorePath: the methods of pathlib that databases and segments need
    `hadoop`    the file systems, called in a Java process beside this one
"""

from __future__ import annotations

from minutch.hadoop.stores.path import StorePath, as_path, copies, is_local, local_scratch

__all__ = ["StorePath", "as_path", "copies", "is_local", "local_scratch"]
