"""The engine: sorted, hash-partitioned tables over part files, worked on as columns."""
