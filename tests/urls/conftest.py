"""Kernels are held to their properties here both compiled and interpreted: each call is made
twice.
"""

from tests.support.interpreted import compared

__all__ = ["compared"]
