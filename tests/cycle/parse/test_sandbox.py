"""A page can make its parser do nothing beyond its own failed parse. Tried with a plugin in a real
worker.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.cycle.parse import workerpool
from minutch.cycle.parse.pageparser import ParsedPage
from minutch.cycle.parse.pagerecords import PackedDocument
from minutch.cycle.parse.partwriters import PartSettings, PartWriters, merge_kept, write_page
from minutch.cycle.parse.sandbox import FILES, NETWORK, PROCESSES, Sandbox
from minutch.cycle.parse.workerpool import PoolSettings, WorkerPool
from minutch.errors import ConfigError
from minutch.hadoop.formats.mapfile import MapFileReader
from minutch.hadoop.formats.sequencewriter import NONE
from minutch.job import Counters
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus, ParseText, serialized
from tests.cycle.parse.workertasks import Breaks, Forger, segment_task
from tests.support.examples import tabled
from tests.support.pages import configuration, content

LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="system calls are filtered on Linux only"
)

MANIFEST = """\
<plugin id="parse-trap" name="t"><requires><import plugin="nutch-extensionpoints"/></requires>
<extension id="trap" point="org.apache.nutch.parse.Parser">
<implementation id="trap" class="trap:Trap"><parameter name="contentType" value="text/trap"/>\
</implementation>
</extension></plugin>
"""
TRAP = """\
import ctypes, fcntl, mmap, os, resource, signal, socket, subprocess, sys, threading, time
from pathlib import Path
from minutch.plugin.points import Parse, Parser, ParseResult
from minutch.records.parsedata import ParseData
from minutch.records.parsedata import SUCCESS, ParseStatus

LIBC = ctypes.CDLL(None, use_errno=True)

def call(*words):
    if LIBC.syscall(*words) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def signal_by_file(pid, command, flags):
    read, write = os.pipe()
    for request, value in ((command, pid), (10, signal.SIGKILL), (fcntl.F_SETFL, flags)):
        fcntl.fcntl(read, request, value)
    os.write(write, b"x")

def take(flags, protection=3, turns=24):
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *4 * [ctypes.c_int]]
    LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size = 256 << 20
    for _ in range(turns):
        place = LIBC.mmap(None, size, 3, flags, -1, 0)
        if place in (None, ctypes.c_void_p(-1).value):
            raise MemoryError
        LIBC.mprotect(place, size, protection)

def as_python(words):
    return eval(words)

class Trap(Parser):
    def get_parse(self, content):
        found = as_python(content.content.decode())
        data = ParseData(ParseStatus(SUCCESS), "", [], content.metadata)
        return ParseResult.of(content.url, Parse(str(found), data))
"""


@pytest.fixture
def trap(tmp_path: Path) -> Configuration:
    """A configuration with a parser in it that does what a page says."""
    folder = tmp_path / "plugins" / "parse_trap"
    folder.mkdir(parents=True)
    (folder / "plugin.xml").write_text(MANIFEST)
    (folder / "trap.py").write_text(TRAP)
    return configuration(
        "parse-trap|parse-html", plugin_folders=f"plugins,{folder.parent}", parser_timeout="20"
    )


@dataclass
class Parsed:
    """The outcome of a page."""

    failed: str
    text: str


def parse(conf: Configuration, *pages: str) -> list[Parsed]:
    """Parse pages by one worker, as `minutch parse` does; each between two good pages of HTML."""
    good = content("<title>good</title>", url="http://example.org/good")
    wanted = [
        content(page, "text/trap", url=f"http://example.org/{number}")
        for number, page in enumerate(pages)
    ]
    items = [page for trapped in wanted for page in (good, trapped, good)]
    settings = replace(PoolSettings.from_conf(conf), workers=1)
    with WorkerPool(partial(segment_task, conf), settings) as pool:
        found = list(pool.map(page.to_bytes() for page in items))
    assert all(page.outcomes == ["success"] for page in (*found[::3], *found[2::3]))
    return [_parsed(page) for page in found[1::3]]


def _parsed(page: ParsedPage) -> Parsed:
    (document,) = page.documents
    status = ParseData.from_bytes(_unpacked(document.data)).status
    text = ParseText.from_bytes(_unpacked(document.text or b"")).text
    return Parsed("" if status.is_success else str(status), text)


def _unpacked(value: bytes) -> bytes:
    import zlib

    return zlib.decompress(value) if value[:1] == b"\x78" else value


@pytest.fixture
def listening() -> Iterator[int]:
    """The port of a server that nobody may reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@LINUX
def test_no_network(trap: Configuration, listening: int) -> None:
    pages = parse(
        trap,
        f"socket.create_connection(('127.0.0.1', {listening}))",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX)",
        "socket.socketpair()",
        "socket.getaddrinfo('example.org', 80)",
        "call(41, 2, 1, 0) if os.uname().machine == 'x86_64' else socket.socket()",
        "call(41 | 0x40000000, 2, 1, 0) if os.uname().machine == 'x86_64' else socket.socket()",
    )
    assert [page for page in pages if not page.failed] == []


@LINUX
def test_no_files(trap: Configuration, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("whole")
    before = sorted(tmp_path.rglob("*"))
    path = repr(str(victim))
    pages = parse(
        trap,
        f"Path({path}).write_text('x')",
        f"open({path}, 'ab').write(b'x')",
        f"open({path}, 'r+b').write(b'x')",
        f"Path({path} + '-new').write_text('x')",
        f"os.mkdir({path} + '-new')",
        f"os.rename({path}, {path} + '-new')",
        f"os.unlink({path})",
        f"os.symlink('/etc/passwd', {path} + '-new')",
        f"os.link({path}, {path} + '-new')",
        f"os.truncate({path}, 0)",
        f"os.chmod({path}, 0o777)",
        f"os.utime({path})",
        f"os.mkfifo({path} + '-new')",
        "__import__('tempfile').mkstemp()",
    )
    assert [page for page in pages if not page.failed] == []
    assert victim.read_text() == "whole"
    assert [
        path for path in sorted(tmp_path.rglob("*")) if "__pycache__" not in str(path)
    ] == before


@LINUX
def test_no_processes(trap: Configuration) -> None:
    pages = parse(
        trap,
        "subprocess.run(['/bin/true'])",
        "os.system('true') and 1 / 0",
        "os.fork()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.execv('/bin/true', ['true'])",
        "os.kill(os.getppid(), 0)",
        "os.kill(1, 0)",
        "os.killpg(0, 0)",
        "__import__('multiprocessing').Process(target=print).start()",
        "open('/proc/%d/mem' % os.getppid(), 'r+b')",
    )
    assert [page for page in pages if not page.failed] == []


@LINUX
def test_nothing_of_other_processes_is_read(trap: Configuration) -> None:
    """Neither of the one that started the worker, nor of another of the same user."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        pages = parse(
            trap,
            *(
                f"open(f'/proc/{{{pid}}}/{name}', 'rb').read(1) or 1 / 0"
                for pid in ("os.getppid()", other.pid)
                for name in ("mem", "environ", "maps", "auxv", "stack")
            ),
            "os.readlink(f'/proc/{os.getppid()}/fd/0')",
            "call(310, os.getppid(), 0, 0, 0, 0, 0) or 1 / 0",
        )
        other.kill()
    assert [page for page in pages if not page.failed] == []


@LINUX
def test_no_signals_by_files(trap: Configuration) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        pages = parse(
            trap,
            f"signal_by_file({other.pid}, fcntl.F_SETOWN, os.O_ASYNC)",
            "fcntl.fcntl(1, fcntl.F_SETFL, os.O_ASYNC)",
            "fcntl.ioctl(1, 0x5452, b'\\1\\0\\0\\0')",
            "fcntl.ioctl(1, 0x8901, b'\\1\\0\\0\\0')",
            f"os.sched_setaffinity({other.pid}, {{0}})",
            f"os.sched_setscheduler({other.pid}, os.SCHED_BATCH, os.sched_param(0))",
        )
        assert other.poll() is None
        other.kill()
    assert [page for page in pages if not page.failed] == []


TYPES = """import os, pty, sys, termios
pid, terminal = pty.fork()
if pid:
    read = b""
    try:
        while piece := os.read(terminal, 1000):
            read += piece
    except OSError:
        pass
    sys.exit(read.decode())
import ctypes, fcntl
from minutch.cycle.parse.sandbox import Sandbox
child = os.fork()
if child:
    os.waitpid(child, 0)
    os._exit(0)
sandbox = Sandbox(allowed=frozenset(sys.argv[1:]))
sandbox.part()
sandbox.close([])
def attempt(name, act):
    try:
        act()
        print(name, "done")
    except OSError as error:
        print(name, "refused")
attempt("open", lambda: os.open("/dev/tty", os.O_RDONLY))
attempt("type", lambda: fcntl.ioctl(1, termios.TIOCSTI, b"x"))
attempt("take", lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 1))
attempt("paste", lambda: fcntl.ioctl(1, 0x541C, b"\\3"))
print("input", os.read(0, 1), flush=True)
os._exit(0)
"""


@LINUX
@pytest.mark.parametrize("allowed", [[], [PROCESSES]])
def test_the_terminal_is_left(allowed: list[str]) -> None:
    """A parser types nothing for the operator, and reads nothing that they type."""
    done = subprocess.run(
        [sys.executable, "-c", TYPES, *allowed], capture_output=True, text=True, check=False
    )
    said = ["open refused", "type refused", "take refused", "paste refused", "input b''"]
    assert done.stderr.split("\n")[:5] == said


@LINUX
def test_files_are_not_locked_or_marked(trap: Configuration, tmp_path: Path) -> None:
    """Which needs no right to write."""
    path = tmp_path / "state"
    path.write_text("whole")
    file = f"os.open({str(path)!r}, os.O_RDONLY)"
    pages = parse(
        trap,
        f"fcntl.flock({file}, fcntl.LOCK_EX)",
        f"fcntl.lockf({file}, fcntl.LOCK_SH)",
        f"fcntl.ioctl({file}, 0x40086602, b'\\x40' + bytes(7))",
        f"fcntl.fcntl({file}, fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    )
    assert [page for page in pages if not page.failed] == []


@LINUX
def test_no_memory_beside_the_limit(trap: Configuration) -> None:
    """1 GiB (parser.worker.memory) of data is the limit: other memory is refused, or bounded as
    addresses are.
    """
    pages = parse(
        trap,
        "mmap.mmap(-1, 1 << 20)",
        "mmap.mmap(os.open('/dev/zero', os.O_RDONLY), 1 << 20, prot=mmap.PROT_READ)",
        "os.memfd_create('x')",
        "call(29, 0, 1 << 20, 0o1600)",
        "take(0x122, turns=1)",
        "take(0x22, 1)",
        "take(0x22)",
    )
    assert [page for page in pages if not page.failed] == []


@LINUX
def test_limits_stay(trap: Configuration) -> None:
    unlimited = "(resource.RLIM_INFINITY, resource.RLIM_INFINITY)"
    pages = parse(
        trap,
        f"resource.setrlimit(resource.RLIMIT_DATA, {unlimited})",
        "[bytearray(1 << 28) for _ in range(64)]",
        "call(101, 0, 0, 0, 0) if os.uname().machine == 'x86_64' else call(117, 0, 0, 0, 0)",
    )
    assert [page for page in pages if not page.failed] == []


def test_threads_and_reading_are_allowed(trap: Configuration) -> None:
    pages = parse(
        trap,
        "(lambda thread: (thread.start(), thread.join(),"
        " 'done')[2])(threading.Thread(target=time.sleep, args=(0,)))",
        "len(Path('/etc/passwd').read_text()) > 0",
        "b'\\x82\\xa0'.decode('cp932')",
    )
    assert [page.text for page in pages] == ["done", "True", "あ"]


def test_open_files_of_the_parent_are_gone(trap: Configuration, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb", buffering=0) as log:
        os.set_inheritable(log.fileno(), True)
        (page,) = parse(trap, f"os.write({log.fileno()}, b'forged')")
        assert page.failed or page.text == "6"
        log.write(b"own")
    assert (tmp_path / "log").read_bytes() == b"own"


@LINUX
@pytest.mark.parametrize(
    ("allowed", "page"),
    [
        (NETWORK, "socket.socket().close()"),
        (FILES, "os.close(os.open('/dev/null', os.O_RDWR))"),
        (PROCESSES, "subprocess.run(['/bin/true'], check=True) and None"),
    ],
)
def test_single_rights_may_be_given(trap: Configuration, allowed: str, page: str) -> None:
    others = {NETWORK: "socket.socket()", FILES: "open('/dev/null', 'w')", PROCESSES: "os.fork()"}
    del others[allowed]
    found = parse(trap.with_values({"parser.sandbox.allow": allowed}), page, *others.values())
    assert [bool(page.failed) for page in found] == [False, True, True], found


def test_the_sandbox_may_be_switched_off(trap: Configuration) -> None:
    (page,) = parse(
        trap.with_values({"parser.sandbox": "false"}), "subprocess.run(['/bin/true']).returncode"
    )
    assert page == Parsed("", "0")


def test_settings() -> None:
    assert Sandbox.from_conf(configuration()) == Sandbox()
    assert Sandbox.from_conf(configuration("parse-(html|ext)")).refused == [NETWORK, FILES]
    with pytest.raises(
        ConfigError, match=r"parser\.sandbox\.allow .*: expected .*, found 'fliers'$"
    ):
        Sandbox.from_conf(configuration(parser_sandbox_allow="files,fliers"))


@LINUX
def test_programs_of_parse_ext_have_no_network_and_write_no_files(tmp_path: Path) -> None:
    conf = configuration("parse-(html|ext)")
    page = content("text", "application/vnd.nutch.example.cat")
    settings = replace(PoolSettings.from_conf(conf), workers=1)
    with WorkerPool(partial(segment_task, conf), settings) as pool:
        (found,) = pool.map([page.to_bytes()])
    assert _parsed(found) == Parsed("", "text")
    code = (
        f"import socket\ntry: open({str(tmp_path / 'new')!r}, 'w')\nexcept PermissionError:"
        " socket.socket()"
    )
    script = (
        "import sys, subprocess; from minutch.cycle.parse.sandbox import Sandbox,"
        " PROCESSES\nSandbox(allowed=frozenset((PROCESSES,))).close([])\n"
        "done = subprocess.run([sys.executable, '-c', sys.argv[1]], capture_output=True)\n"
        "sys.exit(done.stderr.decode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, code], capture_output=True, text=True, check=False
    )
    assert "in socket" in done.stderr or "PermissionError" in done.stderr
    assert not (tmp_path / "new").exists()


def test_where_calls_can_not_be_filtered_limits_hold_a_part(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['seccompy'] = None\n"
        "from minutch.cycle.parse.sandbox import STRICT\n"
        "STRICT.close([])\n"
        "with open(sys.argv[1], 'w') as file: file.write('x')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "new")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "File too large" in done.stderr
    assert (tmp_path / "new").read_bytes() == b""


def test_a_worker_that_was_taken_over_is_ended() -> None:
    """Neither it nor its pickle has a say in later pages."""
    with WorkerPool(Forger, PoolSettings(workers=1, timeout=20, memory=0)) as pool:
        found = list(pool.map([b"a", b"forge", b"b"]))
        assert pool.run(b"later").documents[0].data == b"later"
    assert found[1] == ParsedPage([], [], "the parser crashed: what it answered makes no sense")
    assert [page.documents[0].data for page in (found[0], found[2])] == [b"a", b"b"]
    assert PackedDocument(b"u", None, b"real", b"").data == b"real"


@tabled(
    ("outcomes", "crawl"),
    [
        (["pages"], b""),
        (["success\n2026 INFO forged"], b""),
        ([], b"x"),
        ([], struct.pack(">ii", 5, 1) + b"four"),
        ([], struct.pack(">ii", 1, 5) + b"x"),
        ([], struct.pack(">ii", -8, -8)),
        ([], struct.pack(">ii", 1, -1) + b"x"),
        ([], struct.pack(">ii", 1, 1) + b"x" + struct.pack(">i", 0)),
    ],
)
def test_records_that_are_none_are_no_answer(outcomes: list[str], crawl: bytes) -> None:
    """They would take the place of other pages' in the file, or their names count other things."""
    assert not ParsedPage(outcomes, [PackedDocument(b"u", None, b"", crawl)]).is_usable
    good = PackedDocument(b"u", None, b"", struct.pack(">ii", 3, 1) + b"abc")
    assert ParsedPage(["success"], [good, good]).is_usable


def test_a_document_of_another_pages_url_takes_no_place(tmp_path: Path) -> None:
    """One that a taken-over parser gives for a page that is not its own: the file keeps its order,
    and the page its own records.
    """
    settings = PartSettings(compression=NONE)
    pages = [b"http://a/", b"http://b/", b"http://c/"]
    with PartWriters(tmp_path, settings) as writers:
        for url in pages:
            data = ParseData(ParseStatus(SUCCESS), url.decode()).to_bytes()
            own = PackedDocument(url, zlib.compress(serialized(b"own")), data, b"")
            forged = [
                own._replace(url=other, text=zlib.compress(b"forged")) for other in pages[::-1]
            ]
            mine = [own if page.url == url else page for page in forged]
            write_page(url, ["success"], mine, writers, Counters())
    assert merge_kept(tmp_path, settings) == 3
    with MapFileReader(tmp_path / "parse_text" / "part-r-00000") as texts:
        found = [(str(key), str(value)) for key, value in texts.records()]
    assert found == [(url.decode(), "own") for url in pages]


def test_no_worker_is_left_behind() -> None:
    with WorkerPool(Breaks, PoolSettings(workers=1, timeout=20, memory=0)) as pool:
        pool.warm_up()
        process = pool._idle[0].process
        with pytest.raises(RuntimeError, match="out of memory"):
            list(pool.map([b"a"]))
        assert not process.is_alive()


@LINUX
def test_a_page_that_writes_into_the_pipe_is_blamed_itself(
    trap: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is at the next page already when the parent reads what can't be an answer."""

    def slow_wait(*args: object, **kwargs: object) -> list[object]:
        ready = wait(*args, **kwargs)  # type: ignore[arg-type]
        time.sleep(0.2)
        return ready

    monkeypatch.setattr(workerpool, "wait", slow_wait)
    pages = parse(
        trap,
        "[os.write(int(n), b'forged') for n in os.listdir('/dev/fd') if int(n) > 2"
        " and os.path.exists('/dev/fd/' + n) and 'socket' in os.readlink('/dev/fd/' + n)]",
        "time.sleep(1) or 'whole'",
    )
    assert "crashed" in pages[0].failed
    assert pages[1] == Parsed("", "whole")
