"""Decides what a parse worker may not do, whatever a page makes its parser do: the one home of that
decision.

    network     sockets of any kind
    files       files opened for writing, created, renamed, removed, locked or given other rights;
                reading is allowed
    processes   forks, programs, signals to other processes, memory that is shared with them: it
                counts for no limit

On Linux a filter of system calls (seccomp, by the package seccompy; x86_64 and aarch64) holds this
for all threads of the worker and for the programs that it starts: a refused call fails, and the
page's parse with it. Whatever is allowed, the worker leaves the session of the terminal, and
Landlock (Linux 5.13) closes the memory of other processes, their environment and all else by which
they may be traced, in /proc too. Elsewhere resource limits hold part of it: no file grows, and none
but root starts processes. In both cases the worker loses the open files that it has inherited and
can't raise its limit of memory again, and what it answers is read as plain data
(minutch.cycle.parse.workerprocess). Its limits of memory and time are in
minutch.cycle.parse.workerprocess.

`parser.sandbox=false` switches all of this off, `parser.sandbox.allow` allows some of the words
above. parse-ext runs programs, so `processes` are allowed where it is active.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import logging
import multiprocessing
import os
import resource
import struct
import termios
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from minutch.conf import Configuration

log = logging.getLogger(__name__)

NETWORK: Final = "network"
FILES: Final = "files"
PROCESSES: Final = "processes"
KINDS: Final = (NETWORK, FILES, PROCESSES)
RUNS_PROGRAMS: Final = "parse-ext"
"""The plugin that can't do without processes."""

_NEVER: Final = """
    acct add_key bpf chroot clock_adjtime clock_settime delete_module fanotify_init finit_module
    fsconfig fsmount fsopen fspick init_module io_uring_enter io_uring_register io_uring_setup
    ioperm iopl kcmp kexec_file_load kexec_load keyctl mount mount_setattr move_mount
    open_by_handle_at open_tree perf_event_open personality pidfd_getfd pidfd_open pivot_root
    process_madvise process_vm_readv process_vm_writev ptrace quotactl reboot request_key
    setdomainname sethostname setns settimeofday swapoff swapon syslog umount2 unshare userfaultfd
    vhangup
"""
"""Calls that no parser needs, whatever is allowed."""
_REFUSED: Final = {
    NETWORK: "accept accept4 bind connect listen recvmmsg sendmmsg sendto socket socketpair",
    FILES: (
        """
        chmod chown creat fchmod fchmodat fchmodat2 fchown fchownat flock fremovexattr fsetxattr
        futimesat lchown link linkat lremovexattr lsetxattr mkdir mkdirat mknod mknodat mq_open
        mq_unlink msgget removexattr rename renameat renameat2 rmdir semget setxattr shmget symlink
        symlinkat truncate unlink unlinkat utime utimensat utimes
    """
    ),
    PROCESSES: (
        """
        execve execveat fork ioprio_set kill memfd_create memfd_secret migrate_pages move_pages
        pidfd_send_signal prlimit64 rt_sigqueueinfo rt_tgsigqueueinfo sched_setattr sched_setparam
        sched_setscheduler setpgid setpriority setrlimit shmat shmget tgkill tkill vfork
    """
    ),
}
"""Calls by what they are for; `_add_rules` has those of which only some are refused."""
_UNKNOWN: Final = {FILES: "openat2", PROCESSES: "clone3"}
"""Newer forms of a call whose arguments a filter can't see: they are said not to exist, so the
older form is used.
"""
_TO_ITSELF: Final = ("kill", "tgkill")
_WRITING: Final = (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC)
_TYPING: Final = (termios.TIOCSTI, termios.TIOCSCTTY, 0x541C)
"""What types for the operator, or takes their terminal: the last one is TIOCLINUX."""
_IOCTLS: Final = (
    termios.TCGETS, termios.TIOCGWINSZ, termios.FIONREAD, termios.FIONBIO, termios.FIOCLEX,
    termios.FIONCLEX,
)  # fmt: skip
"""Asks, and settings of the caller's own descriptor. Others give a file other flags, which can be
read only, or have signals sent.
"""
_FCNTLS: Final = (
    fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC, fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL,
    fcntl.F_SETFL, fcntl.F_GETLK,
)  # fmt: skip
"""The same. Others choose a process that gets signals, and which, lock files, enlarge pipes."""
_MAP_SHARED: Final = 1
"""Bit of both kinds of shared mappings."""
_MAP_GROWSDOWN: Final = 0x100
"""Memory that the system takes for a stack, whatever its size: no limit of data counts it."""
_CLONE_THREAD: Final = 0x10000
_X32: Final = 0x4000_0000
"""Bit of the numbers by which x86-64's kernel takes calls of a second kind, some of which have
numbers of their own.
"""
_X32_ONLY: Final = range(512, 548)
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
"""Numbers of calls, which are the same on all processors."""
_MAKE_DEVICES: Final = 1 << 6 | 1 << 11
"""LANDLOCK_ACCESS_FS_MAKE_CHAR and _BLOCK: a domain has to refuse something."""
_CAPABILITY_VERSION: Final = 0x2008_0522
_CAP_DAC_READ_SEARCH: Final = 1 << 2
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_THREAD: Final = 256 << 20
"""Addresses, not memory, that each of a library's threads may reserve: a stack, an arena."""
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
"""Loaded here: a fork is no place to load anything."""


class Sandbox(NamedTuple):
    """The restrictions of a worker: whether there are any, and which of KINDS it is allowed
    nevertheless.
    """

    is_on: bool = True
    allowed: frozenset[str] = frozenset()

    @classmethod
    def from_conf(cls, conf: Configuration) -> Sandbox:
        """parser.sandbox, parser.sandbox.allow, and what the active plugins need. Raises
        ConfigError.
        """
        from minutch.plugin.repository import PluginRepository

        allowed = set(conf.get_trimmed_strings("parser.sandbox.allow"))
        if not allowed <= set(KINDS):
            unknown = ", ".join(sorted(allowed - set(KINDS)))
            raise conf.wrong("parser.sandbox.allow", f"some of {', '.join(KINDS)}", unknown)
        # Without execve and fork each page of parse-ext would fail.
        if RUNS_PROGRAMS in PluginRepository.of(conf).active:
            allowed.add(PROCESSES)
        return cls(conf.get_boolean("parser.sandbox"), frozenset(allowed))

    @property
    def refused(self) -> list[str]:
        """The kinds of action that a worker is refused."""
        return [kind for kind in KINDS if kind not in self.allowed]

    def part(self) -> None:
        """Leaves the session of the terminal and the domain of other processes. Called first, as
        both threads and programs that come later take after the one thread that calls this.
        """
        if not self.is_on:
            return
        with contextlib.suppress(PermissionError):  # leads a session already
            os.setsid()
        # macOS has no capget, and a container may forbid it: then rights stay as they are.
        with contextlib.suppress(AttributeError, OSError):
            _give_up_rights()
        try:
            _close_other_processes()
        except OSError as error:
            log.debug("this worker can read memory of other processes: no Landlock: %s", error)

    def close(self, keep: Iterable[int]) -> None:
        """Gives up, for good, whatever is not needed; only the open files in `keep` and those of
        logs stay.
        """
        if not self.is_on:
            log.debug("parser.sandbox=false: this worker may do what its user may")
            return
        self.part()  # changes nothing for who has done so
        # by its end it is known that who asked for this worker has ended (`minutch.processes`)
        asker = multiprocessing.parent_process()
        _give_up_files({*keep, *_log_files(), *([asker.sentinel] if asker else ())})
        # A crash writes no core file, of what the page made it be.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _keep_limit_of_memory(programs=PROCESSES not in self.refused)
        with contextlib.suppress(AttributeError):
            # No other process of this user may attach to it (prctl(2), ptrace(2)).
            _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        try:
            self._filter()
            log.debug("a filter of system calls refuses this worker: %s", ", ".join(self.refused))
        except (ImportError, OSError) as error:
            self._limit()
            log.debug(
                "this worker has limits of resources only, as system calls can't be filtered: %s",
                error,
            )

    def _filter(self) -> None:
        """Filters the system calls of this process. Raises ImportError or OSError where that can't
        be done.
        """
        import seccompy

        # TSYNC: threads that libraries have started by now get the filter too. SPEC_ALLOW: a
        # filter switches on a slow way to load memory otherwise (seccomp(2)).
        calls = seccompy.Filter(flags=seccompy.FilterFlag.TSYNC | seccompy.FilterFlag.SPEC_ALLOW)
        _add_rules(calls, self.refused)
        calls.load()

    def _limit(self) -> None:
        """Sets limits of resources, which hold part of the restrictions."""
        # Zero bytes of growth would hold for the log as well.
        if FILES in self.refused and not _log_grows():
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        if PROCESSES in self.refused:
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


STRICT: Final = Sandbox()
"""Nothing is allowed."""


def _give_up_rights() -> None:
    """Gives up root's rights but for reading files: by one (CAP_PERFMON) the environment of any
    process can be read, whatever else is closed.
    """
    header, data = struct.pack("=Ii", _CAPABILITY_VERSION, 0), ctypes.create_string_buffer(24)
    if _LIBC.capget(header, data):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    # Effective, permitted, inheritable of capabilities 0 to 31, then of those above.
    effective, permitted, *_ = struct.unpack("=6I", data.raw)
    # Reading is allowed, and so is this right of root's; nothing else is left of root.
    left = effective & permitted & _CAP_DAC_READ_SEARCH
    if _LIBC.capset(header, struct.pack("=6I", left, left, 0, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _close_other_processes() -> None:
    """Enters a Landlock domain, from which no process outside can be traced or looked into. Raises
    OSError where there is none.

    Source: Linux, Documentation/userspace-api/landlock.rst, "Ptrace restrictions".
    """

    def call(*words: Any) -> int:
        found = int(_LIBC.syscall(*words))
        if found < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return found

    if not hasattr(_LIBC, "prctl"):
        raise OSError(errno.ENOSYS, "not Linux")
    # struct landlock_ruleset_attr of the first version: handled_access_fs alone.
    refused = struct.pack("=Q", _MAKE_DEVICES)
    rules = call(_LANDLOCK_CREATE_RULESET, refused, ctypes.c_size_t(len(refused)), 0)
    try:
        # landlock_restrict_self fails with EPERM otherwise, unless the process is privileged.
        _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        call(_LANDLOCK_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _keep_limit_of_memory(*, programs: bool) -> None:
    """Makes the limit of memory one for good; and one of addresses, as data that is made read-only
    later is not counted as data any more. Programs may reserve addresses as they like.
    """
    data = resource.getrlimit(resource.RLIMIT_DATA)[0]
    # Hard and soft: a lower hard limit can't be raised again.
    resource.setrlimit(resource.RLIMIT_DATA, (data, data))
    if data == resource.RLIM_INFINITY or programs:
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = Path("/proc/self/statm").read_bytes().split()
        # proc(5), statm: the whole size, and data with stacks.
        size, used = (int(pages[place]) * resource.getpagesize() for place in (0, 5))
        most = size + 2 * max(0, data - used) + (os.cpu_count() or 1) * _THREAD
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _give_up_files(keep: set[int]) -> None:
    """Replaces open files, and what this process reads, by /dev/null.

    They are not closed, as objects that were copied with this process believe that the numbers are
    theirs.
    """
    with contextlib.suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        for name in os.listdir("/dev/fd"):  # noqa: PTH208 - numbers, not paths
            number = int(name)
            if number > 2 and number not in keep and number != nothing:  # 1, 2: warnings go there
                with contextlib.suppress(OSError):  # the folder itself, which is closed by now
                    os.fstat(number)
                    os.dup2(nothing, number, inheritable=False)
        os.close(nothing)


def _log_files() -> list[int]:
    streams = (getattr(handler, "stream", None) for handler in logging.getLogger().handlers)
    numbers = []
    for stream in streams:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            numbers.append(stream.fileno())  # type: ignore[union-attr]  # None has none
    return numbers


def _log_grows() -> bool:
    """Tells whether the log goes to a file, which has to grow."""
    return any(Path(f"/dev/fd/{number}").resolve().is_file() for number in {1, 2, *_log_files()})


def _add_rules(calls: Any, refused: Sequence[str]) -> None:  # noqa: C901, PLR0912 - a step a case
    """The rules of the filter. Of several for one call the first that fits counts; what has none is
    allowed.
    """
    from seccompy import ArgCmp, CmpOp
    from seccompy.syscalls import syscall_nr

    def has(index: int, bits: int) -> list[Any]:
        return [ArgCmp(index, CmpOp.MASKED_EQ, bits, bits)]

    def of(index: int, value: int) -> list[Any]:
        """Condition for an argument of 32 bits, whatever the others are."""
        # The kernel reads 32 bits of them; garbage above would pass a comparison of all 64.
        return [ArgCmp(index, CmpOp.MASKED_EQ, value, 0xFFFF_FFFF)]

    def refuse(name: str, error: int = errno.EPERM, args: Any = None) -> None:
        with contextlib.suppress(ValueError):  # not a call of this machine
            calls.errno(name, error, args=args)
            # The same call in x32's table would get round the rule.
            calls.errno(syscall_nr(name) | _X32, errno.ENOSYS)

    for number in _X32_ONLY:
        calls.errno(number | _X32, errno.ENOSYS)
    if PROCESSES in refused:
        for name in _TO_ITSELF:
            # abort() and raise() signal their own process.
            calls.allow(name, args={0: os.getpid()})
        calls.allow("prlimit64", args={2: 0})  # asks, sets nothing
        calls.allow("sched_setaffinity", args={0: 0})
        refuse("sched_setaffinity")
        # O_ASYNC has the kernel send signals; before the rule that allows F_SETFL else.
        refuse("fcntl", args=[*of(1, fcntl.F_SETFL), *has(2, os.O_ASYNC)])
        for name, requests in (("ioctl", _IOCTLS), ("fcntl", _FCNTLS)):
            for request in requests:
                calls.allow(name, args=of(1, request))
            refuse(name)
        for flag in (_MAP_SHARED, _MAP_GROWSDOWN):
            refuse("mmap", args=has(3, flag))
        # A thread is no process.
        calls.allow("clone", args=has(0, _CLONE_THREAD))
        refuse("clone")
    for request in _TYPING:
        refuse("ioctl", args=of(1, request))
    if FILES in refused:
        for flag in _WRITING:
            # A rule for each flag: MASKED_EQ holds only if all bits of its mask are set.
            refuse("open", errno.EACCES, has(1, flag))
            refuse("openat", errno.EACCES, has(2, flag))
    for kind in refused:
        for name in _REFUSED[kind].split():
            refuse(name, errno.EACCES if kind == FILES else errno.EPERM)
    for kind in set(refused) & _UNKNOWN.keys():
        refuse(_UNKNOWN[kind], errno.ENOSYS)
    for name in _NEVER.split():
        refuse(name)
