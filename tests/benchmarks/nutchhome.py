"""Builds an installation of Apache Nutch, with plugins, of its sources and of jars from Maven.

    python -m tests.benchmarks.nutchhome SOURCES HOME [--all]

SOURCES is a checkout of github.com/apache/nutch, or its repository, bare ones too. HOME must not be
there yet; it is what NUTCH_HOME and --nutch name afterwards. What Ant's target `runtime` does is
done by javac, for the core and the plugins of a crawl, with --all also for those that
`tests.interop.sidebyside` tries; no parse-tika, whose 70 jars no page of HTML needs. Published jars
have no plugins, and so can neither fetch, parse nor filter. Needs a JDK and Maven.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from tests.interop.jars import NoJars, fetched
from tests.interop.sidebyside.configurations import INDEXING, SELDOM

PLUGINS: Final = (
    "protocol-http",
    "urlfilter-regex",
    "parse-html",
    "scoring-opic",
    "urlnormalizer-pass",
    "urlnormalizer-regex",
    "urlnormalizer-basic",
)
"""Those that are built, with what they require."""
_POINTS: Final = "nutch-extensionpoints"
_TIMEOUT: Final = 900
_PARTS: Final = ("src", "conf", "ivy", "default.properties")


class NotBuilt(Exception):
    """Why there is no Nutch."""


def build(sources: Path, home: Path, plugins: Iterable[str] = PLUGINS) -> None:
    """Builds Nutch. Raises NotBuilt."""
    if home.exists():
        raise NotBuilt(f"{home} is there already")
    fresh = home.with_name(f".{home.name}.{os.getpid()}")
    try:
        with _checkout(sources) as checkout:
            _install(checkout, fresh, plugins)
        fresh.rename(home)
    except (NoJars, OSError, subprocess.SubprocessError, ElementTree.ParseError) as exc:
        said = getattr(exc, "stderr", None) or str(exc)
        raise NotBuilt(said.strip()[-2000:]) from exc
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _install(checkout: Path, home: Path, plugins: Iterable[str]) -> None:
    lib = home / "lib"
    shutil.copytree(checkout / "src" / "bin", home / "bin")
    shutil.copytree(checkout / "conf", home / "conf")
    for template in (home / "conf").glob("*.template"):
        template.rename(template.with_suffix(""))
    for script in (home / "bin").iterdir():
        script.chmod(0o755)
    values = dict(_properties(checkout))
    lib.mkdir()
    for jar in _jars("nutch-core", [checkout / "ivy" / "ivy.xml"], values):
        shutil.copy(jar, lib)
    core = lib / f"apache-nutch-{values['version']}.jar"
    _compile(checkout / "src" / "java", [*lib.iterdir()], core)
    class_path, built = [*lib.iterdir()], dict[str, list[Path]]()
    for name in plugins:
        _plugin(checkout / "src" / "plugin", home / "plugins", name, class_path, built)


def _plugin(
    sources: Path, target: Path, name: str, core: list[Path], built: dict[str, list[Path]]
) -> list[Path]:
    """Builds a plugin and, first, those that it requires; returns its jars."""
    if name in built:
        return built[name]
    source, folder = sources / name, target / name
    described = ElementTree.parse(source / "plugin.xml")
    required = {_POINTS} - {name}
    required |= {element.attrib["plugin"] for element in described.iter("import")}
    others = [jar for one in sorted(required) for jar in _plugin(sources, target, one, core, built)]
    folder.mkdir(parents=True)
    shutil.copy(source / "plugin.xml", folder)
    libraries = {element.attrib["name"] for element in described.iter("library")}
    own = f"{name}.jar"
    foreign = [
        jar
        for jar in (_jars(name, [source / "ivy.xml"], {}) if libraries - {own} else [])
        if jar.name in libraries
    ]
    if missing := libraries - {own} - {jar.name for jar in foreign}:
        raise NotBuilt(f"{name}: no {', '.join(sorted(missing))}")
    built[name] = [Path(shutil.copy(jar, folder)) for jar in foreign]
    if (source / "src" / "java").is_dir():
        _compile(source / "src" / "java", [*core, *others, *built[name]], folder / own)
        built[name].append(folder / own)
    return built[name]


def _compile(sources: Path, class_path: Iterable[Path], jar: Path) -> None:
    """Makes a jar of all classes and resources of a folder."""
    with tempfile.TemporaryDirectory() as name:
        classes = Path(name, "classes")
        shutil.copytree(sources, classes, ignore=shutil.ignore_patterns("*.java"))
        files = Path(name, "files")
        files.write_text("\n".join(f'"{path}"' for path in sorted(sources.rglob("*.java"))))
        given = ("-nowarn", "-Xlint:none", "-proc:none", "-encoding", "UTF-8", "-d", str(classes))
        path = os.pathsep.join(map(str, class_path))
        _run("javac", *given, "-cp", path, f"@{files}")
        _run("jar", "--create", "--file", str(jar), "-C", str(classes), ".")


def _jars(name: str, described: Iterable[Path], values: dict[str, str]) -> list[Path]:
    """The jars that files of Ivy's name, but for those of tests, and what these need."""
    artifacts, without = list[tuple[str, str, str]](), set[tuple[str, str]]()
    for path in described:
        for element in ElementTree.parse(path).iter("dependency"):
            given = element.attrib
            if given.get("conf", "").startswith("test"):
                continue
            version = given["rev"]
            for key, value in values.items():
                version = version.replace(f"${{{key}}}", value)
            artifacts.append((given["org"], given["name"], version))
            without |= {
                (out.get("org", "*"), out.get("module") or out.get("name") or "*")
                for out in element.iter("exclude")
            }
    return fetched(f"{name}-sources", tuple(artifacts), tuple(sorted(without)))


def _properties(checkout: Path) -> Iterator[tuple[str, str]]:
    for line in (checkout / "default.properties").read_text("utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and not key.startswith("#"):
            yield key.strip(), value.strip()


@contextmanager
def _checkout(sources: Path) -> Iterator[Path]:
    """The files of Nutch, out of its repository where that is bare."""
    if (sources / "src").is_dir():
        yield sources.absolute()
        return
    with tempfile.TemporaryDirectory() as name:
        archive = Path(name, "archive.tar")
        _run("git", "-C", str(sources), "archive", "-o", str(archive), "HEAD", *_PARTS)
        shutil.unpack_archive(archive, name, filter="data")
        yield Path(name)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True, timeout=_TIMEOUT)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=Path)
    parser.add_argument("home", type=Path)
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    try:
        build(asked.sources, asked.home.absolute(), PLUGINS + (SELDOM + INDEXING) * asked.all)
    except NotBuilt as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
