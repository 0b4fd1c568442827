"""The library of kernels: what it needs, that it fits its sources, and that it is called safely."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from minutch.errors import MinutchError
from minutch.kernels import library, link, native, scan, sequencefile, simhash, sort
from minutch.kernels.blocks import BOX_ROW, find_places
from minutch.kernels.native import Kernel
from tests.kernels import starts
from tests.support.golden import PROJECT


@pytest.fixture
def unloaded() -> Iterator[None]:
    """A process that has not loaded the library yet."""
    library.load.cache_clear()
    yield
    library.load.cache_clear()


def test_wrong_arrays_never_reach_a_kernel() -> None:
    at = np.empty(3, np.int64)
    for length in (
        np.zeros(3, np.int64),
        np.zeros(3, ">i4"),
        np.zeros((3, 1), np.int32),
        np.zeros(6, np.int32)[::2],
        [1, 2, 3],
        None,
        5,
    ):
        with pytest.raises(
            TypeError, match=r"sequencefile\.running_sum: expected \(I32, I64\), found"
        ):
            sequencefile.running_sum(length, at)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected \(I32, I64\), found"):
        sequencefile.running_sum(np.zeros(3, np.int32))  # type: ignore[call-arg]


def test_records_of_arrays_are_taken_as_such_alone() -> None:
    records = sequencefile.RecordPlaces(*2 * (np.arange(2), np.zeros(2, np.int32)))
    rows, before = np.array([-1]), np.array([2])
    more = sequencefile.RecordPlaces(*(field[:1] + 7 for field in records))
    out = sequencefile.RecordPlaces(*2 * (np.zeros(3, np.int64), np.zeros(3, np.int32)))
    sequencefile.put_in(records, more, rows, before, out)
    assert out.key_at.tolist() == [0, 1, 7] and out.value_len.tolist() == [0, 0, 7]
    for wrong in (tuple(out), None, more._replace(key_at=records.key_len)):
        with pytest.raises(TypeError, match=r"put_in: expected \(I64, I32, I64, I32, I64"):
            sequencefile.put_in(records, more, rows, before, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="put_in: expected"):
        sequencefile.put_in(*records, *more, rows, before, *out)  # type: ignore[call-arg]


def test_numbers_are_integers_or_what_can_be_made_one() -> None:
    page, rows = np.frombuffer(b"a 'b' <meta name=c>", np.uint8), np.zeros((4, 4), np.int64)
    places = np.zeros(3, np.int64)
    for number in (3, np.int64(3), np.uint8(3), np.float32(3.5), True, np.bool_(True), 1 << 64 | 3):
        scan.find_names(page, number, len(page), places)  # type: ignore[arg-type]
    for wrong in (None, rows):
        with pytest.raises(TypeError):
            scan.find_names(page, wrong, len(page), places)  # type: ignore[arg-type]


def test_calls_keep_no_references_and_lose_none() -> None:
    lengths, at = np.array([3, 4], np.int32), np.empty(2, np.int64)
    held = (lengths, at, None, ...)
    before = [sys.getrefcount(one) for one in held]
    for _ in range(1000):
        sequencefile.running_sum(lengths, at)
        find_places(*np.empty((2, 0, BOX_ROW), np.int64), *np.empty((2, 0), np.int64))
        with pytest.raises(TypeError):
            sequencefile.running_sum(lengths, lengths)  # type: ignore[arg-type]
    after = [sys.getrefcount(one) for one in held]
    assert np.abs(np.subtract(after, before)).max() < 100


def test_arrays_that_cant_be_written_can_be_read() -> None:
    length = np.array([3, 4], np.int32)
    length.flags.writeable = False
    at = np.empty(2, np.int64)
    assert sequencefile.running_sum(length, at) == 7 and at.tolist() == [0, 3]


def test_another_layout_of_objects_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "DATA_OFFSET", 32)
    native._check_layout.cache_clear()
    try:
        with pytest.raises(MinutchError, match="lays objects out in another way"):
            native._check_layout()
    finally:
        native._check_layout.cache_clear()


def test_every_kernel_is_in_the_library() -> None:
    kernels = [
        value
        for name in library.modules()
        for value in vars(__import__(f"minutch.kernels.{name}", fromlist=[name])).values()
        if isinstance(value, Kernel)
    ]
    assert len(kernels) > 50
    for kernel in kernels:
        assert library.find_kernel(kernel)
    assert sequencefile.release.address()


@pytest.mark.skipif(not shutil.which("readelf"), reason="needs readelf")
def test_the_library_needs_memcpy_and_its_like_alone() -> None:
    said = subprocess.run(
        ["readelf", "-W", "--dyn-syms", "-d", str(library.PATH)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    missing = {
        line.split()[-1]
        for line in said.splitlines()
        if " UND " in line and line.split()[-1] != "UND"
    }
    assert missing <= {"memcpy", "memmove", "memset", "memcmp"}
    assert "(NEEDED)" not in said


def test_no_job_imports_numba() -> None:
    code = (
        "import sys, numpy as np; from minutch.kernels import sequencefile; "
        "sequencefile.running_sum(np.zeros(3, np.int32), np.zeros(3, np.int64)); "
        "print([name for name in ('numba', 'llvmlite') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    assert done.stdout == "[]\n"


@pytest.mark.usefixtures("unloaded")
def test_a_missing_library_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "PATH", tmp_path / "none.so")
    assert not library.is_built()
    with pytest.raises(MinutchError, match=r"can't be loaded: .*none\.so") as caught:
        library.load()
    assert "python -m minutch.kernels.build" in caught.value.hint


@pytest.mark.usefixtures("unloaded")
def test_a_damaged_library_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in (("short.so", library.PATH.read_bytes()[:100]), ("text.so", b"no library")):
        (tmp_path / name).write_bytes(data)
        monkeypatch.setattr(library, "PATH", tmp_path / name)
        with pytest.raises(MinutchError, match="can't be loaded"):
            library.load()


@pytest.mark.usefixtures("unloaded")
def test_a_library_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert library.is_built()
    monkeypatch.setattr(library, "digest", lambda: b"another" + bytes(9))
    assert not library.is_built()
    with pytest.raises(MinutchError, match="made before the kernels beside it were changed"):
        library.load()


def test_without_a_linker_it_is_said_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(link, "find_spec", lambda name: None)
    with pytest.raises(
        MinutchError, match=r"install a C compiler \(cc\), binutils \(ld\) or the package ziglang"
    ):
        link.link([], tmp_path / "out.so")


@pytest.mark.parametrize("name", ["cc", "gcc", "clang", "ld", "ld.lld"])
def test_linked_by_whatever_is_there(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llvm = pytest.importorskip("llvmlite.binding")
    found = shutil.which(name)
    if not found:
        pytest.skip(f"no {name} here")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        reloc="pic", codemodel="default"
    )
    module = llvm.parse_assembly("define i32 @three() {\n ret i32 3\n}")
    (tmp_path / "three.o").write_bytes(machine.emit_object(module))
    monkeypatch.setattr(link.shutil, "which", lambda wanted: found if wanted == name else None)
    link.link([tmp_path / "three.o"], tmp_path / "three.so")
    assert ctypes.CDLL(str(tmp_path / "three.so")).three() == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["three.o", "three.so"]


def test_what_the_linker_says_is_passed_on(tmp_path: Path) -> None:
    if link.linker() is None:
        pytest.skip("no linker here")
    (tmp_path / "bad.o").write_bytes(b"no object code")
    with pytest.raises(MinutchError, match=r"did not link the kernels: .*bad\.o"):
        link.link([tmp_path / "bad.o"], tmp_path / "out.so")
    assert not (tmp_path / "out.so").exists()


@pytest.mark.parametrize("flags", ["", "flags : fpu sse2 avx", None])
def test_processors_without_newer_instructions_get_the_baseline(
    flags: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if flags is not None:
        (tmp_path / "cpuinfo").write_text(f"processor : 0\n{flags}\n")
    monkeypatch.setattr(library, "PROCESSORS", tmp_path / "cpuinfo")
    library.is_newer.cache_clear()
    try:
        assert not library.is_newer()
        assert library.find_kernel(cast(Kernel, sort.pack))
    finally:
        library.is_newer.cache_clear()


@pytest.mark.skipif(not library.is_newer(), reason="this processor runs the baseline alone")
def test_both_variants_of_a_kernel_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.random.default_rng(5).integers(0, 1 << 63, 1000).astype(np.uint64)
    found = []
    for is_newer in (False, True):
        monkeypatch.setattr(library, "is_newer", lambda answer=is_newer: answer)
        function = Kernel(cast(Kernel, simhash.simhash).function)
        result = np.zeros(1, np.uint64)
        function(words, len(words), 3, 17, np.zeros(2048, np.uint64), result)
        found.append((function._native.__name__, int(result[0])))
    (baseline, one), (newer, other) = found
    assert one == other and baseline != newer


def test_workers_that_start_with_kernels_answer() -> None:
    assert list(starts.start(20, 2)) == ["190 [0, 1, 2] True"]
