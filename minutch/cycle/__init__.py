"""Nutch's cycle, in order."""
