"""Hadoop's Configuration: named strings from XML files and the command line.

Read configuration first; the rest says what values may be, and what is probably wrong.

    `configuration`, `xml`    the properties, and the files they come from
    `sources`, `crawlfolder`  which files these are; what a crawl's folder has
    `values`                  numbers and sizes as Java reads them
    `check`, `kinds`          what is probably wrong in them, and the values that they take
    `confidential`            what is secret, and hidden wherever a configuration is shown
    `inert`                   properties of Nutch that can't mean anything here, with the reason
    `classes`, `elements`     classes named by properties; XML files with elements and attributes
"""

from minutch.conf.configuration import HOME, Configuration
from minutch.conf.sources import DEFAULTS, NEW_CRAWLS

__all__ = ["DEFAULTS", "HOME", "NEW_CRAWLS", "Configuration"]
