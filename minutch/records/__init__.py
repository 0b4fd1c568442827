"""Nutch's Writables, one dataclass each, with read and write side by side."""
