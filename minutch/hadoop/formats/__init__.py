"""Bytes to values and back: Hadoop's containers and primitives. Nothing here knows Nutch.

Begin with javaio, then writables, then sequencefile, whose docstring has the grammar.

    `javaio`, `javahash`, `javafloats`        Java's numbers, strings, hash codes and printing
    `registry`, `writables`, `genericwritable`, `keyorder`    values by their Java class
    `sequencefile`, `sequenceheader`, `sequencewriter`    flat files of keys and values
    `mapfile`, `arrayfile`, `recordsort`      sorted files with an index
    `batch`, `readbuffer`                     records in bulk, and files read front to back
    `checksum`                                the `.crc` beside a file
    `compress`, `codecstream`, `zstd`         codecs
    `text`                                    any of these files as text or JSON
"""
