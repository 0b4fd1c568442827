"""Sorted, hash-partitioned tables over part files, worked on as columns.

Begin with spans, which reads a part file, and merge, the join that every update is.

    `spans`, `spannedfile`, `recordfinders`, `zlibvalues`       records of a part file
    `crawldata`, `linkfiles`, `webgraphfiles`                  files to tables
    `writer`, `compression`, `textparts`                       tables to files
    `frame`, `packed`                                          shapes of tables
    `merge`, `matching`, `keyranges`, `cacheranges`            joins, filters, ranges of keys
    `shuffle`, `rankwindow`, `parallel`                        partitions, best rows, memory
    `database`, `install`, `journal`, `lock`                   a database, replaced safely
    `wholefile`, `workfolders`, `success`                      files that appear whole
"""
