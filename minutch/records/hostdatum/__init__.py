"""HostDatum: what the HostDb knows of one host."""

from minutch.records.hostdatum.datum import HostDatum

__all__ = ["HostDatum"]
