"""Which URL stands for a redirected page."""

from __future__ import annotations

import pytest

from minutch.urls.domains import choose_representative

A, B, C, LONG, OTHER = (
    *("http://a.org/", "http://a.org/x", "http://a.org/y/z", "http://a.org/longer", "http://b.org/"),
)


@pytest.mark.parametrize(
    ("source", "target", "temporary", "chosen"),
    [
        (A, OTHER, True, OTHER),
        (A, OTHER, False, OTHER),
        (A, B, False, A),
        (B, A, False, A),
        (B, C, False, C),
        (A, B, True, A),
        (B, A, True, A),
        (B, C, True, B),
        (C, B, True, B),
        (LONG, B, True, B),
        (B, LONG, True, B),
        ("http://www.a.org/", A, True, A),
        (A, "http://www.a.org/", True, A),
        ("http://www.a.org/x", "http://a.org/y/z", True, "http://a.org/y/z"),
        ("nothing", A, True, A),
        (A, "nothing", True, "nothing"),
    ],
)
def test_choice(source: str, target: str, temporary: bool, chosen: str) -> None:
    assert choose_representative(source, target, temporary) == chosen
