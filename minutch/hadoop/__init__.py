"""Hadoop's files: what they hold.

Nothing here knows Nutch. `formats` turns bytes into values and back: its SequenceFile is what all
databases and segments are made of.

    `formats`    SequenceFile, MapFile, codecs, checksums, Writables
"""
