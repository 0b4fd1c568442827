"""Extracts text, title and links of a PDF, by pypdf. Runs inside a parse worker, which bounds time
and memory.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import Any

from minutch.errors import ParseError

_MOST_PAGES = 2000


def read_pdf(data: bytes) -> tuple[str, str, list[str]]:
    """Text (a line end after each page), title, targets of the link annotations. Raises
    ParseError.
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise ParseError("the PDF is encrypted")
        title = str(reader.metadata.title or "") if reader.metadata else ""
        texts: list[str] = []
        links: list[str] = []
        for number in range(min(len(reader.pages), _MOST_PAGES)):
            page = reader.pages[number]
            texts.append(" ".join(page.extract_text().split()))
            links += _links(page)
    except ParseError:
        raise
    except (
        PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
        OSError,
    ) as error:
        raise ParseError(f"not a PDF that can be read: {type(error).__name__}: {error}") from error
    return "\n".join(text for text in texts if text), title.strip(), links


def _links(page: Any) -> Iterator[str]:
    for reference in page.get("/Annots") or ():
        annotation = reference.get_object()
        action = annotation.get("/A") if hasattr(annotation, "get") else None
        if action is None:
            continue
        uri = action.get_object().get("/URI")
        if isinstance(uri, str):
            yield uri
        elif isinstance(uri, bytes):
            yield uri.decode("latin-1")


def attachments(data: bytes, most: int) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files that a PDF carries, by name; larger ones than `most` bytes
    are left out.
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    if b"/EmbeddedFile" not in data and b"/ObjStm" not in data:
        return
    try:
        files = PdfReader(io.BytesIO(data)).attachments
        for name in sorted(files):
            for content in files[name]:
                if len(content) <= most:
                    yield str(name), bytes(content)
    except (
        PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
        OSError,
    ) as error:
        logging.getLogger(__name__).debug("attachments can't be read: %s", error)
