"""Bytes to values and back: Hadoop's containers and primitives. Nothing here knows Nutch.

Begin with javaio, then writables, then sequencefile, whose docstring has the grammar.

    `javaio`, `javahash`, `javafloats`        Java's numbers, strings, hash codes and printing
    `registry`, `writables`                   values by their Java class
    `sequencefile`, `sequencewriter`          flat files of keys and values
    `mapfile`                                 sorted files with an index
    `batch`                                   records in bulk
    `checksum`                                the `.crc` beside a file
    `compress`, `zstd`                        codecs
    `text`                                    any of these files as text or JSON
"""
