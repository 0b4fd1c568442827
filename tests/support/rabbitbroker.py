"""A RabbitMQ broker for tests, on loopback and in a folder of its own; Debian's package
rabbitmq-server has it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVER = next(
    iter(sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server"))), None
)
"""The server itself: the one on the path changes its user first."""
EPMD = shutil.which("epmd")
IS_THERE = SERVER is not None and EPMD is not None
_READY = 60


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """The URI of a broker that lives in `folder`."""
    port, epmd_port, dist_port = _free_port(), _free_port(), _free_port()
    (folder / "plugins").write_text("[].")
    own = {
        "HOME": folder,
        "ERL_EPMD_PORT": epmd_port,
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"minutch{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": port,
        "RABBITMQ_DIST_PORT": dist_port,
        "RABBITMQ_MNESIA_BASE": folder / "data",
        "RABBITMQ_LOG_BASE": folder / "log",
        "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "plugins",
        "RABBITMQ_CONFIG_FILE": folder / "none",
        "RABBITMQ_PID_FILE": folder / "pid",
    }
    environment = {**os.environ, **{name: str(value) for name, value in own.items()}}
    with (folder / "out").open("wb") as out:
        epmd = subprocess.Popen(
            [str(EPMD), "-port", str(epmd_port)], env=environment, stdout=out, stderr=out
        )
        server = subprocess.Popen(
            [str(SERVER)], env=environment, stdout=out, stderr=out, start_new_session=True
        )
        try:
            _wait_for(port, server)
            yield f"amqp://guest:guest@127.0.0.1:{port}/"
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            epmd.kill()
            epmd.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _READY
    while time.monotonic() < end and server.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as client:
                client.settimeout(5)
                client.sendall(b"AMQP\x00\x00\x09\x01")
                if client.recv(1):
                    return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the broker did not start")
