"""Bytes to values and back: Hadoop's containers and primitives. Nothing here knows Nutch."""
