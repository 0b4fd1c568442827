"""Puts crawlers at a distance from the servers of their pages: each packet takes a while, and one
in a thousand is lost.

    python -m tests.benchmarks.crawls.distance SECONDS NEAR FAR            (the relay)

Linux's own emulation (netem) is a module that many kernels are built without. So there are two
network namespaces, of servers and of crawlers, whose only link is a TUN device in each (tun(4)); a
process hands packets from one to the other, later. Servers stay on 127.0.0.0/8, which crawlers
reach by that device: they have no loopback of their own. An IP packet has 1,500 bytes at most, as
on an Ethernet; how much is under way is not limited.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.benchmarks.measure import Failed

LOST: Final = 0.001
"""Which part of all packets is lost, each by chance."""
_NEW_NETWORK: Final = 0x40000000
"""CLONE_NEWNET of unshare(2)."""
_TUNSETIFF: Final = 0x400454CA
_TUN_WITHOUT_HEADER: Final = 0x1001
"""IFF_TUN | IFF_NO_PI: what is read and written is an IP packet each."""
_DEVICE: Final = "distance"
_NEAR, _FAR = "10.77.0.1", "10.77.0.2"
_QUEUE: Final = 100_000
"""Packets that wait for the relay; the kernel drops what comes on top."""
_LARGEST: Final = 1 << 16


def enter_servers() -> int:
    """Moves this process, and all that it starts from now on, to a network of servers; returns its
    end of the link. Raises Failed where the system does not allow that.
    """
    end = _enter(_FAR, _NEAR)
    _run("ip link set lo up")
    return end


@contextmanager
def enter_clients(far: int, seconds: float) -> Iterator[None]:
    """Moves this process, and all that it starts from now on, to a network whose packets to and
    from the servers take so long each way, for as long as the relay runs. Raises Failed.
    """
    near = _enter(_NEAR, _FAR)
    _run(f"ip route add 127.0.0.0/8 dev {_DEVICE}")
    words = [sys.executable, "-m", __name__, str(seconds), str(near), str(far)]
    with subprocess.Popen(words, pass_fds=(near, far)) as relaying:
        try:
            yield
        finally:
            relaying.kill()


def _enter(own: str, other: str) -> int:
    libc = ctypes.CDLL(None, use_errno=True)  # os.unshare came with Python 3.12
    if libc.unshare(_NEW_NETWORK):
        raise Failed(f"no new network: {os.strerror(ctypes.get_errno())}")
    try:
        end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(end, _TUNSETIFF, struct.pack("16sH22x", _DEVICE.encode(), _TUN_WITHOUT_HEADER))
        for name in ("all", _DEVICE):
            settings = Path("/proc/sys/net/ipv4/conf", name)
            (settings / "route_localnet").write_text("1")  # else 127.0.0.1 from afar is a martian
            (settings / "rp_filter").write_text("0")
    except OSError as exc:
        raise Failed(f"no TUN device: {exc}") from exc
    _run(f"ip address add {own} peer {other} dev {_DEVICE}")
    _run(f"ip link set {_DEVICE} up mtu 1500 txqueuelen {_QUEUE}")
    return end


def _run(words: str) -> None:
    try:
        subprocess.run(words.split(), check=True, capture_output=True, text=True)
    except (OSError, subprocess.SubprocessError) as exc:
        raise Failed(f"{words}: {(getattr(exc, 'stderr', None) or str(exc)).strip()}") from exc


def relay(seconds: float, ends: tuple[int, int], chance: random.Random) -> None:
    """Hands packets from one end to the other, until the process ends."""
    other = dict(zip(ends, reversed(ends), strict=True))
    under_way: deque[tuple[float, int, bytes]] = deque()  # all take as long: first in, first out
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        for end in select.select(ends, (), (), wait)[0]:
            with suppress(BlockingIOError):
                while True:
                    packet = os.read(end, _LARGEST)
                    if chance.random() >= LOST:
                        under_way.append((time.monotonic() + seconds, other[end], packet))
        now = time.monotonic()
        while under_way and under_way[0][0] <= now:
            _, end, packet = under_way.popleft()
            with suppress(OSError):  # the other end has no room, or is gone: one more is lost
                os.write(end, packet)


if __name__ == "__main__":
    relay(float(sys.argv[1]), (int(sys.argv[2]), int(sys.argv[3])), random.Random(1))
