"""The subset of the golden files that every checkout has: complete, unchanged, small, and equal to
the full set.
"""

from __future__ import annotations

import hashlib

import pytest

from tests.support.golden import ALL, HAS_ALL, SUBSET

OURS = {".gitattributes", "README.md", "SHA256SUMS"}
LISTED = dict(
    reversed(line.split("  ", 1))
    for line in (SUBSET / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
)


def test_every_file_is_listed_and_as_it_was() -> None:
    paths = {
        path.relative_to(SUBSET).as_posix(): path for path in SUBSET.rglob("*") if path.is_file()
    }
    found = {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in paths.items()
        if name not in OURS
    }
    assert found == LISTED
    assert paths.keys() >= OURS


def test_it_stays_small() -> None:
    sizes = [(SUBSET / name).stat().st_size for name in LISTED]
    assert max(sizes) < 1_000_000
    assert 1_000_000 < sum(sizes) < 2_200_000


@pytest.mark.skipif(
    not HAS_ALL, reason="the full set of golden files is not there (../shared/golden)"
)
@pytest.mark.parametrize("folder", sorted({name.partition("/")[0] for name in LISTED}))
def test_it_is_part_of_the_full_set(folder: str) -> None:
    names = [name for name in LISTED if name.startswith(f"{folder}/")]
    assert [
        name for name in names if (ALL / name).read_bytes() != (SUBSET / name).read_bytes()
    ] == []
