"""Finds the files that a configuration is made of, each overriding the ones before it:

    conf/nutch-default.xml      as shipped with minutch
    nutch-default.xml           of the first configuration folder that has one (a Nutch
                                installation's own conf/)
    profiles/NAME.xml           of the profile that any of the following names (minutch.profile)
    nutch-site.xml              of the first configuration folder that has one, else the shipped one
    nutch-site.xml              of the crawl's own conf/ (`crawlfolder`)
    -conf FILE                  in the order given

Rule files are looked for in the crawl's conf/, the configuration folders, profiles/NAME/ and the
shipped conf/, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.conf.crawlfolder import SITE, refuse_anybodys, refuse_code
from minutch.conf.xml import Property, read_properties
from minutch.errors import ConfigError

DEFAULTS: Final = "nutch-default.xml"
PROFILE: Final = "minutch.profile"
PROFILES: Final = "profiles"
"""The folder of profiles: NAME.xml, and rule files in NAME/."""
NUTCH: Final = "nutch"
"""The profile that adds nothing to Nutch's defaults."""
NEW_CRAWLS: Final = "web"
"""The profile of crawls that begin."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What a configuration is made of."""

    files: Sequence[tuple[Path, Sequence[Property]]]
    """In their order; the first are minutch's own defaults."""
    shipped: frozenset[str]
    """Defaults and profile: what they have is nobody's own setting."""
    folders: tuple[Path, ...]
    """Those of rule files."""


def sources(
    conf_dirs: Sequence[Path],
    extra: Sequence[Path],
    overrides: Mapping[str, str],
    shipped: Path,
    crawl: Path | None,
    profile: str,
) -> Sources:
    """Reads all files. `shipped` is the shipped conf/; for the others see Configuration.load.
    Raises ConfigError.
    """
    if crawl is not None and crawl.resolve() in {path.resolve() for path in conf_dirs}:
        crawl = None  # somebody has named it
    if crawl is not None:
        refuse_anybodys(crawl, "the configuration of a crawl's folder is used unasked")
    site = [first_file((*conf_dirs, shipped), SITE), None if crawl is None else crawl / SITE]
    later = [(path, read_properties(path)) for path in (*site, *extra) if path]
    if crawl is not None:
        for item in (item for path, items in later if path == crawl / SITE for item in items):
            refuse_code(item.name, crawl / SITE)
    named = [item.value for _, items in later for item in items if item.name == PROFILE]
    chosen = overrides.get(PROFILE) or next(filter(None, reversed(named)), profile)
    settings = _profile(chosen, (*conf_dirs, shipped))
    first = [path for path in (shipped / DEFAULTS, first_file(conf_dirs, DEFAULTS)) if path]
    files = [(path, read_properties(path)) for path in first]
    if settings is not None:
        chosen_here = Property(PROFILE, chosen, final=False)
        files.append((settings, [*read_properties(settings), chosen_here]))
    own = [] if crawl is None else [crawl]
    rules = [] if settings is None else [settings.with_suffix("")]
    return Sources(
        [*files, *later],
        frozenset(str(path) for path, _ in files),
        (*own, *conf_dirs, *rules, shipped),
    )


def _profile(name: str, folders: Sequence[Path]) -> Path | None:
    """Returns the file of a profile, None for Nutch's. Raises ConfigError if there is none."""
    if name == NUTCH:
        return None
    path = first_file(folders, f"{PROFILES}/{name}.xml")
    if path is None or Path(name).name != name:
        known = {file.stem for folder in folders for file in (folder / PROFILES).glob("*.xml")}
        raise ConfigError(
            f"{PROFILE}: expected one of {', '.join([NUTCH, *sorted(known)])}, found {name!r}"
        )
    return path


def first_file(folders: Sequence[Path], name: str) -> Path | None:
    """Returns the file of that name in the first folder that has one; None if none has."""
    return next((path for folder in folders if (path := folder / name).is_file()), None)
