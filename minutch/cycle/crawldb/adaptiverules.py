"""The rule files of the adaptive schedules: intervals of hosts, rates of MIME types.

    adaptive-host-specific-intervals.txt    host, shortest, longest interval in s between blanks; 0
                                            or `default` for the general bound
    adaptive-mimetypes.txt                  type, inc_rate, dec_rate between tabs

Invalid lines are reported with file and line number, and ignored. Source:
org.apache.nutch.crawl.AdaptiveFetchSchedule.setHostSpecificIntervals,
MimeAdaptiveFetchSchedule.readMimeFile.
"""

from __future__ import annotations

import logging

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.hadoop.formats.javahash import float32

log = logging.getLogger(__name__)

HOST_FILE = "adaptive-host-specific-intervals.txt"
MIME_FILE = "adaptive-mimetypes.txt"

Bounds = tuple[float, float]


def read_host_bounds(conf: Configuration, least: float, most: float) -> dict[str, Bounds]:
    """host -> (shortest, longest interval in s). Invalid lines are reported and ignored, as in
    Nutch.
    """
    bounds: dict[str, Bounds] = {}
    for number, line in _lines(conf, HOST_FILE):
        try:
            host, shortest, longest = _parse_bounds(line, least, most)
        except ValueError as exc:
            log.error("%s, line %d: %s; line ignored: %s", HOST_FILE, number, exc, line)
        else:
            bounds[host] = shortest, longest
    return bounds


def _parse_bounds(line: str, least: float, most: float) -> tuple[str, float, float]:
    """Parses a line of the host file. Raises ValueError with the reason."""
    parts = line.split()
    if len(parts) != 3:
        raise ValueError("expected a host, a shortest and a longest interval")
    shortest, longest = (_seconds(part) for part in parts[1:])
    if shortest == 0 and longest == 0:
        raise ValueError("both intervals are the default")
    shortest, longest = shortest or least, longest or most
    if shortest < 0 or longest < 0:
        raise ValueError("intervals can't be negative")
    if shortest > longest:
        raise ValueError("the shortest interval is above the longest")
    if shortest < least:
        raise ValueError(f"the shortest interval is below the general one, {least:g}")
    if longest > most:
        raise ValueError(f"the longest interval is above the general one, {most:g}")
    return parts[0].lower(), shortest, longest


def _seconds(text: str) -> float:
    return 0.0 if text.lower() == "default" else _java_float(text)


def _java_float(text: str) -> float:
    """java.lang.Float.parseFloat. Raises ValueError."""
    return float32(float(text[:-1] if text[-1:] in "fFdD" and text[-2:-1].isdigit() else text))


def read_mime_rates(conf: Configuration, name: str) -> dict[str, tuple[float, float]]:
    """MIME type -> (inc_rate, dec_rate)."""
    found: dict[str, tuple[float, float]] = {}
    for number, line in _lines(conf, name):
        parts = line.rstrip("\t").split("\t")
        try:
            mime, inc_rate, dec_rate = parts
            found[mime.lower()] = _java_float(inc_rate.strip()), _java_float(dec_rate.strip())
        except ValueError:
            log.warning(
                "%s, line %d: expected a type, inc_rate and dec_rate between tabs; ignored: %s",
                name,
                number,
                line,
            )
    return found


def _lines(conf: Configuration, name: str) -> list[tuple[int, str]]:
    """Returns the lines of a rule file with their numbers, without blank lines and comments; none
    if the file is missing.
    """
    try:
        text = conf.read_resource(name)
    except ConfigError as exc:
        log.error("%s; going on without it", exc)
        return []
    lines = enumerate(text.splitlines(), 1)
    return [(number, line) for number, line in lines if line.strip() and not line.startswith("#")]
