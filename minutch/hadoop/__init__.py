"""Hadoop's files: formats, and file systems."""
