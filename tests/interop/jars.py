"""Finds or fetches the jars of Apache Nutch and Hadoop for the interoperability tests.

They go to a cache outside the checkout: `MINUTCH_JARS`, else `~/.cache/minutch/jars`, a folder for
each set. Maven fetches them, from the registry that the machine is set up for; where it can't,
Hadoop's alone come out of the PyPI package pyspark, the installed one if there is any. A machine
without a JVM or without both sources skips the tests, with the reason.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

HADOOP = "3.4.1"
PYSPARK = "4.0.1"
"""The version that has this Hadoop, for machines without any. Hadoop before 3.4 can't read all of
what it writes (bzip2 in blocks).
"""
_OLDEST = (3, 4)
NUTCH_VERSIONS = ("1.20", "1.22")
"""The last version with the older layout of Inlinks, and the newest published one."""

_TIMEOUT = 900

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>minutch</groupId><artifactId>interop</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>"
    "<exclusions>{3}</exclusions></dependency>"
)
_EXCLUSION = "<exclusion><groupId>{0}</groupId><artifactId>{1}</artifactId></exclusion>"
_NO_LOG4J = (("org.apache.logging.log4j", "*"),)
_HADOOP_JARS = (
    ("org.apache.hadoop", "hadoop-client-api", HADOOP),
    ("org.apache.hadoop", "hadoop-client-runtime", HADOOP),
    ("org.lz4", "lz4-java", "1.8.0"),
    ("org.slf4j", "slf4j-api", "2.0.17"),
    ("org.slf4j", "slf4j-simple", "2.0.17"),
)
_HADOOP_IN_PYSPARK = (
    "hadoop-client",
    "lz4-java",
    "snappy-java",
    "slf4j-api",
    "commons-logging",
)
_NUTCH_JARS = (
    ("org.apache.commons", "commons-lang3", "3.17.0"),
    ("org.apache.commons", "commons-jexl3", "3.4.0"),
    ("commons-codec", "commons-codec", "1.17.1"),
    ("commons-cli", "commons-cli", "1.9.0"),
)


class NoJars(Exception):
    """Why the tests can't run here."""


def cache() -> Path:
    """The folder that holds the sets of jars."""
    own = os.environ.get("MINUTCH_JARS")
    return Path(own) if own else Path.home() / ".cache" / "minutch" / "jars"


def require_jvm() -> None:
    """Raise NoJars unless Java programs can be compiled and run."""
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            raise NoJars(f"no {program} on this machine")


@functools.cache
def hadoop_jars() -> list[Path]:
    """Hadoop's jars. Raises NoJars."""
    require_jvm()
    if shutil.which("mvn") is not None:
        with suppress(NoJars):
            return fetched(f"hadoop-{HADOOP}", _HADOOP_JARS)
    return _from_pyspark()


@functools.cache
def nutch_jars(version: str) -> list[Path]:
    """The jars of a Nutch version, Hadoop's among them. Raises NoJars."""
    return fetched(
        f"nutch-{version}-hadoop-{HADOOP}",
        (("org.apache.nutch", "nutch", version), *_HADOOP_JARS, *_NUTCH_JARS),
    )


def fetched(
    name: str,
    artifacts: tuple[tuple[str, str, str], ...],
    without: tuple[tuple[str, str], ...] = _NO_LOG4J,
) -> list[Path]:
    """The jars of some artifacts and of all that they need but for some, fetched once. Raises
    NoJars.
    """
    require_jvm()
    if shutil.which("mvn") is None:
        raise NoJars("no Maven on this machine: jars can't be fetched")
    target = cache() / f"{name}-{zlib.crc32(repr((artifacts, without)).encode()):08x}"
    if not target.is_dir():
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        fresh.mkdir(parents=True)
        try:
            (fresh / "pom.xml").write_text(_pom(artifacts, without), encoding="utf-8")
            _run(
                [
                    "mvn",
                    "-q",
                    "-B",
                    "dependency:copy-dependencies",
                    "-DincludeScope=runtime",
                    "-DoutputDirectory=jars",
                ],
                fresh,
            )
            _move(fresh / "jars", target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return sorted(target.glob("*.jar"))


def _pom(artifacts: tuple[tuple[str, str, str], ...], without: tuple[tuple[str, str], ...]) -> str:
    exclusions = "".join(_EXCLUSION.format(*artifact) for artifact in without)
    dependencies = "".join(_DEPENDENCY.format(*artifact, exclusions) for artifact in artifacts)
    return _POM.format(dependencies=dependencies)


def _from_pyspark() -> list[Path]:
    """Hadoop's jars out of the PyPI package pyspark. Raises NoJars."""
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        found = _hadoop_in(Path(spec.origin).parent / "jars")
        if _version_of(found) >= _OLDEST:
            return found
    target = cache() / f"pyspark-{PYSPARK}"
    if not target.is_dir():
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        fresh.mkdir(parents=True)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--retries", "1"]
        try:
            _run([*pip, "--target", ".", f"pyspark=={PYSPARK}"], fresh)
            (fresh / "jars").mkdir()
            for jar in _hadoop_in(fresh / "pyspark" / "jars"):
                shutil.move(jar, fresh / "jars")
            _move(fresh / "jars", target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return sorted(target.glob("*.jar"))


def _hadoop_in(folder: Path) -> list[Path]:
    """Those of pyspark's jars that Hadoop needs."""
    return sorted(jar for name in _HADOOP_IN_PYSPARK for jar in folder.glob(f"{name}-*.jar"))


def _version_of(jars: list[Path]) -> tuple[int, ...]:
    """Hadoop's version, by the name of a jar; empty if it is not among them."""
    found = (re.match(r"hadoop-client-api-(\d+)\.(\d+)", jar.name) for jar in jars)
    return next((tuple(map(int, match.groups())) for match in found if match), ())


def _run(command: list[str], folder: Path) -> None:
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT, text=True
        )
    except (OSError, subprocess.SubprocessError) as exc:
        lines = (getattr(exc, "stdout", None) or str(exc)).strip().splitlines()
        raise NoJars(
            f"{command[0]} could not fetch the jars: {lines[0] if lines else exc}"
        ) from exc


def _move(fresh: Path, target: Path) -> None:
    """Put a complete folder in its place, unless another test run was faster."""
    try:
        fresh.rename(target)
    except OSError:
        if not target.is_dir():
            raise
