"""minutch: a single-machine web crawler that speaks Apache Nutch 1.x."""

__version__ = "0.1.0"
