"""HostDatum: what the HostDb knows of one host.

Begin with datum, whose docstring has the layout.

    `datum`      the record
    `columns`    decodes and encodes records in bulk
"""

from minutch.records.hostdatum.datum import HostDatum

__all__ = ["HostDatum"]
