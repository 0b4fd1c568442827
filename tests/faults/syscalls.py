"""Every system call that changes files, seen before it happens: Linux's seccomp with a listener
(seccomp_unotify(2)).

The filter is the kernel's own, so nothing gets past it: not Polars' threads, not SQLite, not child
processes, not `ctypes`. A watched process stops at each such call until the listener lets it go on,
gives it an error instead, or kills it. Calls that change files in ways that no `Call` describes
(splice, sendfile, shared writable mappings, all of io_uring) are seen, too, and end in
`Unmodelled`; only SQLite's shared index, which it makes again after a crash, is let through.
Attributes and times of files are not seen. Needs Linux 5.6 on x86-64 or ARM64: see `available`.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import re
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

# name -> number on (x86_64, aarch64); None where the architecture has no such call
_NUMBERS: dict[str, tuple[int, int | None]] = {
    "write": (1, 64),
    "pwrite64": (18, 68),
    "writev": (20, 66),
    "pwritev": (296, 70),
    "pwritev2": (328, 287),
    "open": (2, None),
    "creat": (85, None),
    "openat": (257, 56),
    "openat2": (437, 437),
    "truncate": (76, 45),
    "ftruncate": (77, 46),
    "fallocate": (285, 47),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "mmap": (9, 222),
    "sendfile": (40, 71),
    "splice": (275, 76),
    "copy_file_range": (326, 285),
    "io_uring_setup": (425, 425),
}
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438

_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_LOAD, _EQUALS, _BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_NR, _ARCH = 0, 4
_MMAP_PROT, _MMAP_FLAGS = 16 + 2 * 8, 16 + 3 * 8
_OPEN_FLAGS = {"open": 16 + 8, "openat": 16 + 2 * 8}
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_NOTIFICATION = struct.Struct("<QIIiIQ6Q")
_RESPONSE = struct.Struct("<QqiI")
_AT_FDCWD = 0xFFFFFF9C
_AT_REMOVEDIR = 0x200
_RENAME_EXCHANGE = 2
_PAGE = 4096

_CHANCE = re.compile(
    r"(?<=\.spill-)[^/ ]+|(?<=[-.])\d{2,}-\d{2,}-[^/ ]+(?=\.\d+(?:[/"
    r" ]|$))|(?<=[-.])(?:\d{2,7}|\d{15})(?=[-/ ]|$)"
)
"""What differs from run to run or between machines in the names of work files: process ids, hosts,
the like.
"""

_libc = ctypes.CDLL(None, use_errno=True)


class Unmodelled(Exception):
    """A call that changes a watched file in a way that is not recorded."""


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("yes", ctypes.c_ubyte),
        ("no", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def _numbers() -> dict[int, str]:
    """Number -> name on this machine."""
    column = 0 if platform.machine() == "x86_64" else 1
    return {both[column]: name for name, both in _NUMBERS.items() if both[column] is not None}  # type: ignore[misc]


def _filter(reads: bool) -> list[tuple[int, int, int, int]]:
    """The filter: other architectures and other calls pass; of mmap, only shared writable ones are
    stopped.

    Opens for reading, which are most of all calls, are stopped with `reads` alone.
    """
    numbers = _numbers()
    mapping = next(number for number, name in numbers.items() if name == "mmap")
    others = [number for number in numbers if number != mapping]
    code = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUALS, 1, 0, _AUDIT_ARCH[platform.machine()]),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code += [(_LOAD, 0, 0, _NR)]
    for number in others:
        flags = _OPEN_FLAGS.get(numbers[number])
        if flags is None or reads:
            code += [(_EQUALS, 0, 1, number), (_RETURN, 0, 0, _NOTIFY)]
        else:
            code += [
                (_EQUALS, 0, 4, number),
                (_LOAD, 0, 0, flags),
                (_BITS, 1, 0, os.O_CREAT | os.O_TRUNC),
            ]
            code += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOTIFY)]
    code += [
        (_EQUALS, 1, 0, mapping),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _MMAP_PROT),
        (_BITS, 0, 3, 2),
        (_LOAD, 0, 0, _MMAP_FLAGS),
        (_BITS, 0, 1, 1),
        (_RETURN, 0, 0, _NOTIFY),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return code


def listen(reads: bool = True) -> int:
    """Put this process (and all that it starts) under a filter; returns the listener's descriptor,
    -1 where refused.
    """
    code = _filter(reads)
    program = _Program(len(code), (_Instruction * len(code))(*code))
    _libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    return int(_libc.syscall(_SECCOMP[platform.machine()], 1, 8, ctypes.byref(program)))


def available() -> bool:
    """Returns whether this system has what `listen` needs."""
    if platform.system() != "Linux" or platform.machine() not in _SECCOMP:
        return False
    child = os.fork()
    if child == 0:
        os._exit(0 if listen() >= 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def send_descriptor(channel: socket.socket, descriptor: int) -> None:
    """Hand a listener to the process at the other end."""
    socket.send_fds(channel, [b"."], [descriptor])


def receive_descriptor(channel: socket.socket) -> int:
    """The listener that `send_descriptor` has sent."""
    return socket.recv_fds(channel, 1, 1)[1][0]


@dataclass
class Call:
    """One call that changes something below the watched folder. Paths are relative to it.

    kind      open (creates or truncates) · read (opens for reading) · write · truncate · rename ·
    exchange · unlink ·
              rmdir · mkdir · link · fsync
    """

    kind: str
    path: str
    target: str = ""
    offset: int = 0
    data: bytes = b""
    flags: int = 0

    def __str__(self) -> str:
        more = (
            f" -> {self.target}"
            if self.target
            else f" {len(self.data)} bytes at {self.offset}"
            if self.data
            else ""
        )
        return _CHANCE.sub("*", f"{self.kind} {self.path}{more}")


@dataclass
class Stopped:
    """A process that waits at a call: exactly one of the three answers is to be given."""

    listener: int
    id: int
    pid: int
    name: str
    args: tuple[int, ...]

    def go_on(self) -> bool:
        """Let it happen. False if the call was interrupted meanwhile (it comes again)."""
        return self._answer(0, 0, _CONTINUE)

    def fail(self, error: int) -> bool:
        """Give an error number instead."""
        return self._answer(0, -error, 0)

    def shorten(self) -> bool:
        """Write half of what is to be written, and say so."""
        size = self.args[2] // 2
        if self.name != "write" or not size:
            return self.go_on()
        data = _memory(self.pid, self.args[1], size)
        process = _libc.syscall(_PIDFD_OPEN, _group_leader(self.pid), 0)
        descriptor = _libc.syscall(_PIDFD_GETFD, process, self.args[0], 0)
        try:
            done = os.write(descriptor, data)
        finally:
            os.close(descriptor)
            os.close(process)
        return self._answer(done, 0, 0)

    def _answer(self, value: int, error: int, flags: int) -> bool:
        try:
            fcntl.ioctl(
                self.listener, _SEND, bytearray(_RESPONSE.pack(self.id, value, error, flags))
            )
        except FileNotFoundError:
            return False
        return True

    def describe(self, root: Path) -> Call | None:
        """The call, if it concerns something below `root`."""
        call = _DESCRIBE[self.name](self)
        if call is None:
            return None
        if self.name == "io_uring_setup":
            raise Unmodelled(self.name)
        path, target = _below(root, call.path), _below(root, call.target)
        if path is None and target is None:
            return None
        if self.name == "mmap" and call.path.endswith(
            "-shm"
        ):  # SQLite's index of its log: made again from the log
            return None
        if call.kind == "?" or path is None or (call.target and target is None):
            raise Unmodelled(f"{self.name} {call.path} {call.target}")
        call.path, call.target = path, target or ""
        return call

    def string(self, at: int) -> str:
        """The string in the process's memory that argument `at` points to."""
        address, found = self.args[at], b""
        while b"\0" not in found:
            found += _memory(self.pid, address + len(found), _PAGE - (address + len(found)) % _PAGE)
        return os.fsdecode(found[: found.index(b"\0")])

    def path_of(self, descriptor: int) -> str:
        """The path of an open file; not a path for pipes and the like."""
        try:
            return os.readlink(f"/proc/{self.pid}/fd/{descriptor & 0xFFFFFFFF}")  # noqa: PTH115
        except OSError:
            return ""

    def path_at(self, directory: int, at: int) -> str:
        """The path that argument `at` names, in the directory of a descriptor."""
        given = self.string(at)
        if given.startswith("/"):
            return given
        low = directory & 0xFFFFFFFF
        base = os.readlink(f"/proc/{self.pid}/cwd") if low == _AT_FDCWD else self.path_of(low)  # noqa: PTH115
        return os.path.normpath(os.path.join(base, given))  # noqa: PTH118

    def position(self, descriptor: int) -> int:
        """Returns the offset at which the next write to an open file goes."""
        text = Path(f"/proc/{self.pid}/fdinfo/{descriptor}").read_text()
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if int(fields["flags"], 8) & os.O_APPEND:
            return Path(f"/proc/{self.pid}/fd/{descriptor}").stat().st_size
        return int(fields["pos"])


def next_stop(listener: int) -> Stopped | None:
    """The next process that waits; None if it has gone meanwhile."""
    buffer = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except FileNotFoundError:
        return None
    number, pid, _, call, _, _, *args = _NOTIFICATION.unpack(buffer)
    return Stopped(listener, number, pid, _numbers()[call], tuple(args))


def _below(root: Path, path: str) -> str | None:
    prefix = f"{root}/"
    return (
        path.removeprefix(prefix) if path.startswith(prefix) else "." if path == str(root) else None
    )


def _group_leader(thread: int) -> int:
    for line in Path(f"/proc/{thread}/status").read_text().splitlines():
        if line.startswith("Tgid:"):
            return int(line.split()[1])
    raise Unmodelled(f"thread {thread} has no process")


def _memory(pid: int, address: int, size: int) -> bytes:
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        found = b""
        while len(found) < size:
            more = memory.read(size - len(found))
            if not more:
                break
            found += more
        return found


def _written(stop: Stopped) -> Call | None:
    path = stop.path_of(stop.args[0])
    if not path.startswith("/") or path.endswith(" (deleted)"):
        return None
    at = stop.args[3] if stop.name.startswith("pwrite") else stop.position(stop.args[0])
    if stop.name in {"write", "pwrite64"}:
        return Call("write", path, data=_memory(stop.pid, stop.args[1], stop.args[2]), offset=at)
    parts = struct.iter_unpack("<QQ", _memory(stop.pid, stop.args[1], 16 * stop.args[2]))
    return Call("write", path, data=b"".join(_memory(stop.pid, *part) for part in parts), offset=at)


def _opened(stop: Stopped, path: str, flags: int) -> Call:
    return Call("open" if flags & (os.O_CREAT | os.O_TRUNC) else "read", path, flags=flags)


def _renamed(stop: Stopped, old: str, new: str, flags: int = 0) -> Call:
    return Call("exchange" if flags & _RENAME_EXCHANGE else "rename", old, new)


def _unmodelled(stop: Stopped) -> Call:
    return Call("?", stop.path_of(stop.args[4 if stop.name == "mmap" else 0]))


_CWD = _AT_FDCWD
_DESCRIBE = {
    "write": _written,
    "pwrite64": _written,
    "writev": _written,
    "pwritev": _written,
    "pwritev2": _written,
    "open": lambda s: _opened(s, s.path_at(_CWD, 0), s.args[1]),
    "creat": lambda s: _opened(s, s.path_at(_CWD, 0), os.O_CREAT | os.O_TRUNC | os.O_WRONLY),
    "openat": lambda s: _opened(s, s.path_at(s.args[0], 1), s.args[2]),
    "openat2": lambda s: Call("?", s.path_at(s.args[0], 1)),
    "truncate": lambda s: Call("truncate", s.path_at(_CWD, 0), offset=s.args[1]),
    "ftruncate": lambda s: Call("truncate", s.path_of(s.args[0]), offset=s.args[1]),
    "fallocate": _unmodelled,
    "rename": lambda s: _renamed(s, s.path_at(_CWD, 0), s.path_at(_CWD, 1)),
    "renameat": lambda s: _renamed(s, s.path_at(s.args[0], 1), s.path_at(s.args[2], 3)),
    "renameat2": lambda s: _renamed(s, s.path_at(s.args[0], 1), s.path_at(s.args[2], 3), s.args[4]),
    "mkdir": lambda s: Call("mkdir", s.path_at(_CWD, 0)),
    "mkdirat": lambda s: Call("mkdir", s.path_at(s.args[0], 1)),
    "rmdir": lambda s: Call("rmdir", s.path_at(_CWD, 0)),
    "unlink": lambda s: Call("unlink", s.path_at(_CWD, 0)),
    "unlinkat": lambda s: Call(
        "rmdir" if s.args[2] & _AT_REMOVEDIR else "unlink", s.path_at(s.args[0], 1)
    ),
    "link": lambda s: Call("link", s.path_at(_CWD, 0), s.path_at(_CWD, 1)),
    "linkat": lambda s: Call("link", s.path_at(s.args[0], 1), s.path_at(s.args[2], 3)),
    "symlink": lambda s: Call("?", s.path_at(_CWD, 1)),
    "symlinkat": lambda s: Call("?", s.path_at(s.args[1], 2)),
    "fsync": lambda s: Call("fsync", s.path_of(s.args[0])),
    "fdatasync": lambda s: Call("fsync", s.path_of(s.args[0])),
    "mmap": _unmodelled,
    "sendfile": _unmodelled,
    "splice": lambda s: Call("?", s.path_of(s.args[2])),
    "copy_file_range": lambda s: Call("?", s.path_of(s.args[2])),
    "io_uring_setup": lambda s: Call("?", "/io_uring"),
}
