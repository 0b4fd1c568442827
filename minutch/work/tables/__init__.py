"""Sorted, hash-partitioned tables over part files, worked on as columns.

Begin with spans, which reads a part file, and frame, which has the join that every update is.

    `spans`, `spannedfile`                      records of a part file
    `recordfiles`                               files to tables, and back
    `writer`, `compression`, `textparts`        tables to files
    `zlibvalues`                                values as zlib streams, in bulk
    `frame`, `matching`, `keyranges`            shapes and joins of tables, filters, ranges of keys
    `shuffle`, `cacheranges`, `parallel`        partitions, memory
    `database`, `install`, `lock`               a database, replaced safely; files that appear whole
"""
