"""Hadoop's Configuration: named strings from XML files and the command line, and what is probably
wrong in them.
"""

from minutch.conf.configuration import DEFAULTS, HOME, Configuration

__all__ = ["DEFAULTS", "HOME", "Configuration"]
