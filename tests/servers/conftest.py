"""The story's crawl and the servers, each made once a session, when the first test asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.jars import NoJars
from tests.servers.processes import NotStarted, Server
from tests.servers.story import Story, make

Start = Callable[[Callable[[Path], Server]], Server]


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return make(tmp_path_factory.mktemp("story"))


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts the server of a recipe, which ends with the module; skips where it can't be had."""
    with ExitStack() as running:

        def started(recipe: Callable[[Path], Server]) -> Server:
            try:
                server = recipe(tmp_path_factory.mktemp("server"))
                running.callback(server.stop)
                server.start()
            except (NoJars, NotStarted) as exc:
                pytest.skip(str(exc))
            return server

        yield started
