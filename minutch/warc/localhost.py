"""This machine's name and address, as archives give them."""

from __future__ import annotations

import socket


def local_host() -> tuple[str, str]:
    """Name and address of this machine, empty where they are not known
    (InetAddress.getLocalHost).
    """
    name = socket.gethostname()
    try:
        return name, socket.gethostbyname(name)
    except OSError:
        return name, ""
