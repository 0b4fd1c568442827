"""Kernels are held to the properties here twice: each call is made compiled and interpreted."""

from tests.support.interpreted import compared

__all__ = ["compared"]
