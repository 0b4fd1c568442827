"""What a fork server loads once for all parse workers: their modules, and the kernels.

Imported by name alone (`processes.start_worker`), for what it loads.
"""

from minutch.kernels import library
from minutch.parse import page

__all__ = ["page"]

library.load()
