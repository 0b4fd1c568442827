"""The harness, compiled once per class path; tests that need it are skipped where it can't be
had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.harness import Harness
from tests.interop.jars import NUTCH_VERSIONS, NoJars, hadoop_jars, nutch_jars
from tests.interop.nutchconf import write_configuration


def _harness(tmp: pytest.TempPathFactory, jars: Callable[[], list[Path]], *extra: Path) -> Harness:
    try:
        found = jars()
    except NoJars as exc:
        pytest.skip(str(exc))
    return Harness(tmp.mktemp("harness"), found, extra)


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """The harness with Hadoop's classes."""
    with _harness(tmp_path_factory, hadoop_jars) as harness:
        yield harness


@pytest.fixture(scope="session", params=NUTCH_VERSIONS)
def nutch(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Harness]]:
    """A version of Nutch, and the harness with its classes and Hadoop's."""
    version = str(request.param)
    conf = write_configuration(tmp_path_factory.mktemp("nutch"))
    with _harness(tmp_path_factory, lambda: nutch_jars(version), conf) as harness:
        yield version, harness
