"""Hadoop's Configuration: named strings from XML files and the command line.

Read configuration first; the rest says what values may be, and what is probably wrong.

    `configuration`           the properties
    `sources`                 which files they come from, and their XML; what a crawl's folder has
    `settings`                classes whose fields name their property
    `properties`              the values that they take, what is secret, what means nothing here
    `check`                   what is probably wrong in them
"""

from minutch.conf.configuration import HOME, Configuration
from minutch.conf.settings import Settings, made_by, prop
from minutch.conf.sources import DEFAULTS, NEW_CRAWLS

__all__ = [
    "DEFAULTS", "HOME", "NEW_CRAWLS", "Configuration", "Settings", "made_by", "prop",
]  # fmt: skip
