"""Gives readers damaged input: nothing but the project's errors may come of it.

    python -m tests.faults.fuzz [reader ...] [--seconds 60] [--seed 1] [--case N]

Each reader works in a child process, case after case, for its share of the seconds. A case is the
input that the seed, the reader's name and a number give: a sample, changed in a few places, or
tokens of the reader. Its end is wrong if it is another exception, the process dies (a crash, a
kernel that reads beyond its array), takes more than `MOST_SECONDS` of processor time or
`MOST_MEMORY`. The line that says so holds the command that repeats it. Exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import logging
import mmap
import os
import random
import resource
import shlex
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from minutch.errors import MinutchError
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import SequenceFileWriter
from tests.faults.readers import WEB, Reader, memory
from tests.faults.rulereaders import CONFIGURATION
from tests.faults.storedreaders import FILES, FOLDERS, Folder
from tests.support.indexedcrawl import parted, with_sum

READERS: Final[Mapping[str, Reader | Folder]] = {**WEB, **FILES, **CONFIGURATION, **FOLDERS}
MOST_SECONDS: Final = 30
MOST_MEMORY: Final = 1 << 30
"""Bytes that a process may have more after a case than before the first one."""
MOST_ADDRESSES: Final = 16 << 30
_SIZES: Final = (0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF)
_LONG_SIZES: Final = (0, 1 << 32, 1 << 53, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_MOST_TOKENS: Final = 40
_INDEX_END: Final = (1337).to_bytes(4, "little")
"""Of the files of a local index."""

Case = Callable[[], object]


def damaged(data: bytes, words: list[bytes], rng: random.Random) -> bytes:
    """A few bytes changed, cut out, put in or doubled; numbers replaced by those that hurt."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        size = len(found)
        at, to = sorted(rng.randrange(size + 1) for _ in range(2))
        change = rng.randrange(9)
        if change == 0 and at < size:
            found[at] ^= 1 << rng.randrange(8)
        elif change == 1 and at < size:
            found[at] = rng.choice((0, 1, 0x7F, 0x80, 0x8C, 0x8F, 0xFF, rng.randrange(256)))
        elif change == 2:
            found[at : at + 4] = struct.pack(rng.choice("<>") + "I", rng.choice(_SIZES))
        elif change == 3:
            found[at : at + 8] = struct.pack(rng.choice("<>") + "Q", rng.choice(_LONG_SIZES))
        elif change == 4:
            del found[at:]
        elif change == 5:
            del found[at : min(to, at + 50)]
        elif change == 6:
            found[at:at] = rng.choice(words) * rng.choice((1, 1, 2, 50)) if words else b"\0"
        elif change == 7:
            found[at:at] = found[at : min(to, at + 200)] * rng.choice((1, 2, 50))
        else:
            found[at:at] = rng.randbytes(rng.randrange(1, 9))
    return bytes(found)


def _of_bytes(reader: Reader) -> Callable[[random.Random], Case]:
    samples, words = [*reader.samples()], reader.words

    def case(rng: random.Random) -> Case:
        if rng.random() < 0.15:
            data = b"".join(rng.choices(words, k=rng.randrange(_MOST_TOKENS)))
        elif reader.once and rng.random() < 0.2:
            data = rng.choice(reader.once)
        else:
            data = damaged(rng.choice(samples), words, rng)
        return lambda: reader.read(data[: reader.most])

    return case


def _of_folder(reader: Folder, work: Path) -> Callable[[random.Random], Case]:
    whole, copy = work / "whole", work / "copy"
    whole.mkdir()
    reader.make(whole)
    files = sorted(path for path in whole.rglob("*") if path.is_file() and path.stat().st_size)
    names = [path.relative_to(whole) for path in files if path.suffix != ".crc"]

    def case(rng: random.Random) -> Case:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        for name in rng.choices(names, k=rng.choice((1, 1, 1, 2, 4))):
            _damage(copy / name, rng)
        return lambda: reader.read(copy)

    return case


def _damage(path: Path, rng: random.Random) -> None:
    """Damages a file, or some of its records, without its checksums, or with such that fit."""
    sums = path.with_name(f".{path.name}.crc")
    data = path.read_bytes()
    if data[:3] == b"SEQ" and rng.random() < 0.7:
        with suppress(MinutchError), SequenceFileReader(path, verify=False) as reader:
            records, header = list(reader), reader.header
            for at in rng.choices(range(len(records)), k=rng.choice((1, 1, 3))) if records else ():
                key, value = records[at]
                is_value = rng.random() < 0.85
                records[at] = (
                    (key, damaged(value, [], rng))
                    if is_value
                    else (
                        damaged(key, [], rng),
                        value,
                    )
                )
            path.unlink()
            sums.unlink(missing_ok=True)
            with SequenceFileWriter(path, header.key_class, header.value_class) as writer:
                for key, value in records:
                    writer.append_raw(key, value)
            return
    if data[-4:] == _INDEX_END and rng.random() < 0.7:
        body, footer = parted(data)
        path.write_bytes(with_sum(damaged(body, [], rng), footer))
        return
    path.write_bytes(damaged(data, [], rng))
    if rng.random() < 0.9:
        sums.unlink(missing_ok=True)


def run(name: str, seed: int, seconds: float, only: int | None = None) -> Iterator[str]:
    """Yields what is wrong with a reader, and the number of cases at the end."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory()) as folder:
        at = mmap.mmap(-1, 8)
        end, first, wrong = time.monotonic() + seconds, 0 if only is None else only, 0
        while wrong < 5:
            report = Path(folder) / "report"
            report.write_text("")
            child = os.fork()
            if not child:
                _work(name, seed, first, end, only, at, report, Path(folder))
            _, status, _ = os.wait4(child, 0)
            last = int.from_bytes(at[:8], "little")
            found = report.read_text()
            if os.WIFSIGNALED(status):
                code = os.WTERMSIG(status)
                slow = f"more than {MOST_SECONDS} s of processor time"
                found = slow if code == signal.SIGPROF else signal.Signals(code).name
            if not found:
                break
            wrong += 1
            words = [name, "--seed", str(seed), "--case", str(last)]
            yield f"FAILED python -m tests.faults.fuzz {shlex.join(words)}\n    {found}"
            if only is not None:
                break
            first = last + 1
        yield f"{name}: {int.from_bytes(at[:8], 'little') + 1 - (only or 0)} cases"


def _work(
    name: str,
    seed: int,
    first: int,
    end: float,
    only: int | None,
    at: mmap.mmap,
    report: Path,
    folder: Path,
) -> None:
    """The child: ends with what it reports, or by what a case does to it."""
    for limit, most in ((resource.RLIMIT_AS, MOST_ADDRESSES), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (most, most))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    try:
        reader = READERS[name]
        errors: tuple[type[Exception], ...] = (MinutchError,)
        if isinstance(reader, Reader):
            make, errors = _of_bytes(reader), (*errors, *reader.errors)
        else:
            make = _of_folder(reader, Path(tempfile.mkdtemp(dir=folder)))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        for number in count(first):
            case = make(random.Random(f"{seed} {name} {number}"))
            at[:8] = number.to_bytes(8, "little")
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
            with suppress(*errors):
                case()
            signal.setitimer(signal.ITIMER_PROF, 0)
            resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            if resident - before > MOST_MEMORY:
                report.write_text(f"{resident - before >> 20} MiB")
                break
            if only is not None or time.monotonic() > end:
                break
    except BaseException as exc:  # noqa: BLE001 - tantivy's panics are no Exception
        where = traceback.extract_tb(exc.__traceback__)[-1]
        report.write_text(
            f"{type(exc).__name__}: {str(exc)[:200]} ({where.filename}:{where.lineno})"
        )
    finally:
        os._exit(0)


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.fuzz")
    parser.add_argument("readers", nargs="*", choices=[[], *READERS], default=[])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    options = parser.parse_args()
    names = options.readers or [*READERS]
    failed = 0
    for name in names:
        for line in run(name, options.seed, options.seconds / len(names), options.case):
            failed += line.startswith("FAILED")
            print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
