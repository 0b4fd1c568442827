"""What a fork server loads once for all parse workers: their modules, and the kernels.

Imported by name alone (`processes.start_worker`), for what it loads.
"""

from minutch.cycle.parse import pageparser
from minutch.kernels import library

__all__ = ["pageparser"]

library.find()
