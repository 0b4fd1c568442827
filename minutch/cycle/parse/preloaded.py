"""What a fork server loads once for all parse workers: their modules, and the kernels.

Imported by name alone (`processes.start_worker`), for what it loads.
"""

from minutch.cycle.parse import page
from minutch.kernels import library

__all__ = ["page"]

library.find()
