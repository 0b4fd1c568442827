"""HTTP answers of archives: heads as they came, chunks undone, whatever is wrong with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.warc.pagewriter import MADE_HEAD, fitted_head
from minutch.warc.reading.visits import LONGEST_HEAD, MOST_LINES, read_answer, unchunked
from tests.support.examples import tabled


def chunked(*pieces: bytes, last: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x;x=y\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + last


def test_an_answer_is_taken_apart() -> None:
    answer = read_answer(b"HTTP/1.1 404 Not Found\r\nA: b\r\nC: d\r\n\r\nbody\r\n\r\nmore")
    assert answer is not None
    assert (answer.code, answer.head, answer.body) == (
        404, [b"HTTP/1.1 404 Not Found", b"A: b", b"C: d"], b"body\r\n\r\nmore",
    )  # fmt: skip
    assert (answer.is_whole, answer.is_decoded, answer.is_made) == (True, False, False)


@pytest.mark.parametrize(
    "block", [b"", b"<html>", b"HTTP/1.1", b"HTTP/1.1 20", b"HTTP/1.1 2000 x\r\n\r\n"]
)
def test_what_is_no_answer(block: bytes) -> None:
    assert read_answer(block) is None


@pytest.mark.parametrize(
    ("block", "head", "body"),
    [
        (b"HTTP/1.0 200 OK\nA: b\n\nbody", [b"HTTP/1.0 200 OK", b"A: b"], b"body"),
        (b"HTTP/1.0 200 OK\r\n\r\n", [b"HTTP/1.0 200 OK"], b""),
        (b"HTTP/2 200\r\nA: b", [b"HTTP/2 200", b"A: b"], b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx", [b"HTTP/1.1 200 OK"], b"x"),
        (b"HTTP/1.1 103 Early\r\n\r\nno head", [b"HTTP/1.1 103 Early"], b"no head"),
    ],
)
def test_heads_of_every_kind(block: bytes, head: list[bytes], body: bytes) -> None:
    answer = read_answer(block)
    assert answer is not None
    assert (answer.head, answer.body) == (head, body)


def test_a_flood_of_headers_is_cut() -> None:
    flood = b"HTTP/1.1 200 OK\r\n" + b"X: yes\r\n" * 100_000 + b"\r\nbody"
    answer = read_answer(flood)
    assert answer is not None
    assert len(answer.head) == MOST_LINES
    assert answer.body == b"body"
    endless = read_answer(b"HTTP/1.1 200 OK\r\nX: " + b"y" * (2 * LONGEST_HEAD))
    assert endless is not None
    assert (len(endless.head), endless.body) == (2, b"")


def test_chunks_are_undone() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    answer = read_answer(head + chunked(b"abc", b"de"))
    assert answer is not None
    assert (answer.body, answer.is_whole) == (b"abcde", True)
    cut = read_answer(head + chunked(b"abc", b"de")[:-8])
    assert cut is not None
    assert (cut.body, cut.is_whole) == (b"abcd", False)


@tabled(
    ("body", "content", "whole"),
    [
        (chunked(chunked(b"abc", b"de")), b"abcde", True),
        (chunked(chunked(chunked(b"abc"))), b"abc", True),
        (b"not chunked", b"not chunked", True),
        (b"", b"", True),
        (b"0\r\n\r\n", b"", True),
        (b"3\r\nabcX", b"3\r\nabcX", True),
        (b"3\r\nabc\r\n2\r\ndeX", b"abcde", False),
        (b"3\nabc\n0\n\n", b"abc", True),
        (b"ffffffffffff\r\nabc", b"abc", False),
        (b"fffffffffffff\r\nabc", b"fffffffffffff\r\nabc", True),
        (chunked(b"5\r\nnot whole"), b"5\r\nnot whole", True),
    ],
)
def test_chunks_of_every_kind(body: bytes, content: bytes, whole: bool) -> None:
    assert unchunked(body) == (content, whole)


def test_headers_that_an_export_has_changed_get_their_names_back() -> None:
    head = (
        "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\nTransfer-Encoding:"
        " chunked\r\nX: y\r\n\r\n"
    )
    answer = read_answer(fitted_head(head, 10).encode() + b"0123456789")
    assert answer is not None
    assert "\r\n".join(line.decode() for line in answer.head) + "\r\n\r\n" == head
    assert (answer.body, answer.is_decoded, answer.is_made) == (b"0123456789", True, False)
    made = read_answer(f"HTTP/1.1 200 OK\r\nA: b\r\n{MADE_HEAD}\r\n\r\nx".encode())
    assert made is not None
    assert (made.head, made.is_decoded, made.is_made) == ([b"HTTP/1.1 200 OK", b"A: b"], True, True)


HEADS = [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]


@given(st.binary(max_size=200), st.sampled_from(HEADS))
def test_no_bytes_break_it(data: bytes, before: bytes) -> None:
    answer = read_answer(before + data)
    assert answer is None or len(answer.body) <= len(data)
