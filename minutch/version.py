"""The version of minutch, written here alone; pyproject.toml reads it."""

from typing import Final

__version__: Final = "0.1.0"
