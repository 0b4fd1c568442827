"""Options in the values of parameters: `durable=true,arguments={x-max-length:1000;x-queue-mode:lazy}`. Pure.

Source: org.apache.nutch.rabbitmq.RabbitMQOptionParser.
"""

from __future__ import annotations

Value = str | int | float | bool


def options(text: str) -> dict[str, str]:
    """`a=1,b=2` as strings. ValueError for a piece without `=`."""
    return dict(_pair(piece, "=") for piece in text.split(",") if piece.strip())


def typed_options(text: str) -> dict[str, Value]:
    """The same, with numbers and truth values as such."""
    return {name: typed(value) for name, value in options(text).items()}


def arguments(text: str) -> dict[str, Value]:
    """`{a:1;b:2}`, with numbers and truth values as such."""
    pieces = text.replace("{", "").replace("}", "").split(";")
    return {name: typed(value) for name, value in (_pair(piece, ":") for piece in pieces if piece.strip())}


def typed(text: str) -> Value:
    """A whole number, a number, a truth value, or the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.lower() == "true" if text.lower() in ("true", "false") else text


def _pair(piece: str, sign: str) -> tuple[str, str]:
    name, found, value = piece.partition(sign)
    if not found:
        raise ValueError(f"{piece!r} has no {sign!r}")
    return name.strip(), value.strip()
