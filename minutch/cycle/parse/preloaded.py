"""Loads the modules and kernels of parse workers, once, in a fork server.

Imported by name alone (`processes.start_worker`), for what it loads.
"""

from minutch.cycle.parse import pageparser
from minutch.kernels import library

__all__ = ["pageparser"]

library.load()
