"""A segment of somebody else's is small on disk and huge in memory: no job takes more than a stated
amount for it.

A record that unpacks to more than 64 MiB ends as damage that names file and offset. The jobs run in
processes of their own, whose largest resident memory the system tells.
"""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from minutch.cycle.segment.store import LAYOUTS
from minutch.hadoop.formats.sequencewriter import SequenceFileWriter
from minutch.hadoop.formats.writables import Text
from tests.support.examples import few
from tests.support.golden import PROJECT

TEXT = "org.apache.hadoop.io.Text"
UNPACKED = 200 << 20
MOST_RESIDENT = 500 << 20
"""Python, its libraries and a record of 64 MiB a few times over; without a limit it was 9 times
what is unpacked.
"""
JOBS = {
    "updatedb": ("{base}/db", "{segment}"),
    "invertlinks": ("{base}/linkdb", "{segment}"),
    "webgraph": ("-webgraphdb", "{base}/graph", "-segment", "{segment}"),
    "mergesegs": ("{base}/merged", "{segment}", "{other}"),
}
READ = [
    ("updatedb", "crawl_fetch"),
    ("updatedb", "crawl_parse"),
    ("invertlinks", "parse_data"),
    ("webgraph", "parse_data"),
    ("mergesegs", "parse_data"),
]


@pytest.fixture(scope="module")
def stream() -> bytes:
    """A zlib stream that unpacks to a thousand times its size."""
    packer = zlib.compressobj()
    zeros = bytes(1 << 20)
    return b"".join([packer.compress(zeros) for _ in range(UNPACKED >> 20)] + [packer.flush()])


def make(segment: Path, bomb: str, stream: bytes) -> None:
    """A segment without records but for one."""
    for folder, layout in LAYOUTS.items():
        path = segment / folder / "part-r-00000"
        if layout.map_file:
            path /= "data"
        path.parent.mkdir(parents=True)
        with SequenceFileWriter(path, TEXT, layout.value_class, compression="RECORD") as writer:
            if folder == bomb:
                writer.append_raw(Text("http://a/").to_bytes(), stream, compressed=True)


MEASURE = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=sys.stderr)
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def resident(words: list[str]) -> tuple[int, str, int]:
    """A command's exit code, what it said, and the bytes that it had in memory at most.

    A small process starts it: a process is said to have had what its parent had when it was copied.
    """
    command = [sys.executable, "-c", MEASURE, sys.executable, "-m", "minutch", *words]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, check=True)
    code, most = map(int, ran.stdout.split())
    return code, ran.stderr.decode(), most * (1 if sys.platform == "darwin" else 1024)


@pytest.mark.slow  # processes of 64 MB
@pytest.mark.parametrize(("job", "folder"), few(READ))
def test_a_record_that_unpacks_to_too_much_is_damage(
    job: str, folder: str, stream: bytes, tmp_path: Path
) -> None:
    segment, other = tmp_path / "segments/20260101000000", tmp_path / "segments/20260102000000"
    make(segment, folder, stream)
    make(other, "", b"")
    words = [word.format(base=tmp_path, segment=segment, other=other) for word in JOBS[job]]
    code, said, most = resident([job, *words])
    assert code != 0, said
    if job == "mergesegs":  # passes records on as they are, and looks into them at the end
        assert f"{folder}: damaged record: expected a zlib stream of at most 67108864 bytes" in said
    else:
        assert f"{segment / folder}" in said and "at offset" in said
        assert "unpacks to too much: expected at most 67108864 bytes" in said
    assert most < MOST_RESIDENT
