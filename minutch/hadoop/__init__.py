"""Hadoop's files: what they hold, and where they lie.

Nothing here knows Nutch. `formats` turns bytes into values and back, `stores` opens paths on
Hadoop's file systems as if they were local ones. Begin with `formats`: its SequenceFile is what all
databases and segments are made of.

    `formats`    SequenceFile, MapFile, codecs, checksums, Writables
    `stores`     paths such as hdfs:// and s3a://
"""
