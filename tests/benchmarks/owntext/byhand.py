"""Sites by hand whose pages share some of what is their own: `own` is the class of what holds it.

Notes of a law firm, each with the same disclaimers at its end; products of a few series, which are
described alike; a reference with the same parameters on many pages; threads of a forum, with the
signatures of those who write. Sentences are those of Python's language reference.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pydoc_data.topics import topics
from typing import Final


@cache
def _sentences() -> list[str]:
    texts = " ".join(text for _, text in sorted(topics.items()))
    found = re.findall(r"[A-Z][a-z][\w ,;()'-]{40,220}\.(?= )", re.sub(r"\s+", " ", texts))
    return sorted(set(found))


def _prose(rng: random.Random, sentences: int) -> str:
    return " ".join(rng.choice(_sentences()) for _ in range(sentences))


def _paragraphs(rng: random.Random, count: int) -> str:
    return "".join(f"<p>{_prose(rng, rng.randint(2, 5))}</p>" for _ in range(count))


def _framed(title: str, main: str, aside: str = "") -> str:
    menu = "".join(
        f"<li><a href=/{name}>{name}</a></li>" for name in ["Home", "News", "Shop", "Help"]
    )
    return (
        f"<html><head><title>{title} - Example</title></head><body><header class=top><nav><ul>"
        f"{menu}</ul></nav><p class=note>We use cookies to give you the best experience on our "
        "site. By going on you agree to their use. <button>Accept</button></p></header>"
        f"{main}<aside class=side><h3>Popular</h3>{aside}<div class=newsletter><p>Get our best "
        "stories in your inbox every Friday, free of charge. No spam, and you can leave at any "
        "time.</p></div></aside><footer><p>Copyright 2024 Example Ltd. All rights reserved.</p>"
        "</footer>"
    )


def _links(rng: random.Random, titles: list[str]) -> str:
    items = "".join(f"<li><a href=/x>{title}</a></li>" for title in rng.sample(titles, 5))
    return f"<ul class=related>{items}</ul>"


def legal(rng: random.Random, count: int) -> Iterator[str]:
    titles = [_prose(rng, 1)[:60] for _ in range(count)]
    notes = [_prose(rng, 3) for _ in range(3)]
    for title in titles:
        shared = "".join(f"<p>{note}</p>" for note in notes if rng.random() < 0.8)
        own = f"<h1>{title}</h1>{_paragraphs(rng, rng.randint(3, 9))}<h2>Disclaimer</h2>{shared}"
        yield _framed(
            title, f"<main><article class='post own'>{own}</article></main>", _links(rng, titles)
        )


def products(rng: random.Random, count: int) -> Iterator[str]:
    series = [(_prose(rng, 4), [_prose(rng, 1) for _ in range(5)]) for _ in range(5)]
    titles = [f"Model {rng.randrange(100, 999)} {rng.choice('ABC')}" for _ in range(count)]
    for number, title in enumerate(titles):
        text, features = series[number % len(series)]
        items = "".join(f"<li>{feature}</li>" for feature in features)
        rows = "".join(
            f"<tr><th>{name}</th><td>{rng.randrange(1, 900)} {unit}</td></tr>"
            for name, unit in (("Weight", "g"), ("Height", "mm"), ("Width", "mm"), ("Power", "W"))
        )
        own = (
            f"<h1>{title}</h1><p class=price>{rng.randrange(10, 999)}.00 EUR</p>"
            f"<div class=description><p>{text}</p><p>{_prose(rng, 2)}</p><h2>Features</h2>"
            f"<ul>{items}</ul><h2>Specification</h2><table>{rows}</table></div>"
        )
        cards = "".join(
            f"<div class=card><a href=/p>{other}</a><span>Add to cart</span></div>"
            for other in rng.sample(titles, 4)
        )
        yield _framed(
            title,
            f"<div class=shop><div class='product own'>{own}</div><div class=also><h2>You may also "
            f"like</h2>{cards}</div></div>",
            _links(rng, titles),
        )


def reference(rng: random.Random, count: int) -> Iterator[str]:
    names = [f"{rng.choice(['get', 'set', 'read', 'list'])}_{number}" for number in range(count)]
    shared = [(name, _prose(rng, 1)) for name in ("client", "timeout", "retries", "headers")]
    errors = _prose(rng, 2)
    for name in names:
        rows = "".join(f"<dt>{one}</dt><dd>{text}</dd>" for one, text in shared)
        own = (
            f"<h1>{name}</h1><p>{_prose(rng, 2)}</p><pre>{name}(client, value, timeout=30)</pre>"
            f"<h2>Parameters</h2><dl>{rows}<dt>value</dt><dd>{_prose(rng, 1)}</dd></dl>"
            f"<h2>Returns</h2><p>{_prose(rng, 1)}</p><h2>Raises</h2><p>{errors}</p>"
        )
        toc = "".join(f"<li><a href=/{one}>{one}</a></li>" for one in names)
        yield _framed(
            name,
            f"<nav class=sidebar><ul>{toc}</ul></nav><main><div class='doc own'>{own}</div></main>",
            _links(rng, names),
        )


def forum(rng: random.Random, count: int) -> Iterator[str]:
    users = [(f"user{number}", _prose(rng, 1)) for number in range(12)]
    titles = [_prose(rng, 1)[:70] for _ in range(count)]
    for title in titles:
        posts = ""
        for number in range(rng.randint(2, 9)):
            user, signature = rng.choice(users)
            posts += (
                f"<div class=post><div class=author><a href=/u>{user}</a><p>Joined: Mar 2019</p>"
                f"<p>Posts: {rng.randrange(999)}</p></div><div class='body own'>"
                f"{_paragraphs(rng, rng.randint(1, 3))}<div class=signature>{signature}</div></div>"
                f"<div class=tools><a href=/q>Quote</a> <a href=/r>Report</a> #{number + 1}</div>"
                "</div>"
            )
        own = f"<h1 class=own>{title}</h1><div class=thread>{posts}</div>"
        yield _framed(title, f"<div id=content>{own}</div>", _links(rng, titles))


BY_HAND: Final[dict[str, Callable[[random.Random, int], Iterator[str]]]] = {
    "legal notes": legal,
    "product series": products,
    "API reference": reference,
    "forum": forum,
}
