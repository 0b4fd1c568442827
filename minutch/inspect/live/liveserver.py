"""Serves the live page from a thread of the job's own process, on loopback alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from minutch.conf import Settings, made_by
from minutch.cycle.fetch.watch import Watch
from minutch.web.access import LOCAL, TOKEN_PROPERTY, Access, is_made, listen, token_from

HOST: Final = "127.0.0.1"
FREE: Final = frozenset({"/metrics"})
"""Figures say nothing of hosts or pages, and need no token."""
_PATIENCE: Final = 5.0
"""Seconds that the end of the job waits for the server's."""


@dataclass(frozen=True, slots=True)
class LiveSettings(Settings):
    """Settings of the live page."""

    token: str | None = made_by(partial(token_from, host=HOST))
    """The token that requests need; None: they need none."""
    shows_token: bool = made_by(is_made)
    """True if the token was made for this run, so that it has to be shown."""


class LiveServer:
    """A server with its port from the start; answers while `running`. MinutchError, ConfigError."""

    def __init__(self, watch: Watch, settings: LiveSettings, port: int, option: str) -> None:
        """Takes the port that `option` chose; 0 takes a free one."""
        token = settings.token
        self._watch = watch
        self._listener = listen(HOST, port, option)
        self.port = int(self._listener.getsockname()[1])
        self._access = Access(token, LOCAL, FREE, cookie=f"minutch-{self.port}")
        self.address = f"http://{HOST}:{self.port}/"
        """With the token, if that was made for this run."""
        if token is not None and settings.shows_token:
            self.address += f"?token={token}"
        elif token is not None:
            self.address += f" (the token is that of {TOKEN_PROPERTY})"

    @property
    def says(self) -> str:
        """Returns the line that tells where the page is."""
        return f"Live page: {self.address}"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serves from a thread while this lasts."""
        from minutch.inspect.live.liveapp import make
        from minutch.web.serving import server

        uvicorn = server(make(self._watch, self._access), patience=1)
        thread = threading.Thread(
            target=asyncio.run,
            args=(uvicorn.serve(sockets=[self._listener]),),
            name="live page",
            daemon=True,
        )
        thread.start()
        try:
            yield
        finally:
            uvicorn.should_exit = True
            thread.join(_PATIENCE)

    def close(self) -> None:
        """Releases the port."""
        self._listener.close()
