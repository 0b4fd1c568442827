"""Sites by hand whose pages share some of what is their own: `own` is the class of what holds it,
`neither` of what counts for neither side.

Notes of a law firm, each with the same disclaimers at its end; products of a few series, which are
described alike; a reference with the same parameters on many pages; threads of a forum, with the
signatures of those who write; articles, a quarter of them to be shared, a third with an
advertisement; a shop with reviews; questions with answers and remarks; news with links and comments
amid the text; statutes with the same legal notes. Not looked at when rules were made: a market of
advertisements, threads in tables. Sentences are those of Python's language reference.
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


def articles(rng: random.Random, count: int) -> Iterator[str]:
    titles = [_prose(rng, 1)[:60] for _ in range(count)]
    for title in titles:
        text = [f"<p>{_prose(rng, rng.randint(2, 5))}</p>" for _ in range(rng.randint(3, 8))]
        if rng.random() < 0.33:
            text.insert(2, "</div><div class=ad>Advertisement</div><div class='text own'>")
        share = "<div class=share>Print share</div>" if rng.random() < 0.25 else ""
        yield _framed(
            title,
            f"<div id=content><div class=article><h1 class=own>{title}</h1>{share}"
            f"<div class='text own'>{''.join(text)}</div></div></div>",
            _links(rng, titles),
        )


def shop(rng: random.Random, count: int) -> Iterator[str]:
    kinds = ["Lamps", "Chairs", "Tables", "Shelves"]
    titles = [f"{rng.choice(kinds)[:-1]} {_prose(rng, 1)[:24]}" for _ in range(count)]
    makers = [(f"Maker {letter}", _prose(rng, 2)) for letter in "ABCDEF"]
    delivery = f"<p>{_prose(rng, 2)}</p><p>{_prose(rng, 2)}</p>"
    names = ["Colour", "Material", "Weight", "Height", "Warranty", "Country"]
    for title in titles:
        maker, about = rng.choice(makers)
        values = [rng.choice(["red", "blue", "oak"]), rng.choice(["wood", "steel"])]
        values += [f"{rng.randrange(9)}.{rng.randrange(9)} kg", f"{rng.randrange(20, 200)} cm"]
        values += [f"{rng.randint(1, 5)} years", rng.choice(["Norway", "Italy"])]
        facts = "".join(
            f"<dt>{name}</dt><dd>{value}</dd>" for name, value in zip(names, values, strict=True)
        )
        reviews = "".join(
            f"<li class=review><div class=head>{rng.randint(1, 5)} of 5 stars, by buyer "
            f"{rng.randrange(99)}</div><p class=own>{_prose(rng, rng.randint(1, 3))}</p>"
            f"<div class=useful>Was this useful? <a href=/y>Yes</a> ({rng.randrange(9)})</div></li>"
            for _ in range(rng.randrange(5))
        )
        also = "".join(
            f"<li><a href=/i><img src=x alt=''>{other}</a> <b>{rng.randrange(10, 900)}.00</b></li>"
            for other in rng.sample(titles, 5)
        )
        yield _framed(
            title,
            f"<ol class=breadcrumb><li><a href=/>Home</a></li><li><a href=/k>{rng.choice(kinds)}"
            f"</a></li></ol><section class=detail><div class=buy><h1 class=own>{title}</h1><p "
            f"class=own>{rng.randrange(10, 900)}.00 EUR</p><form><button>Add to basket</button>"
            f"</form><p>In stock, sent within two days.</p></div><div class='about own'>"
            f"{_paragraphs(rng, rng.randint(1, 3))}<h2>About {maker}</h2><p>{about}</p>"
            f"<h2>Facts</h2><dl>{facts}</dl></div><div class=tab><h2>Delivery and returns</h2>"
            f"{delivery}</div><ul class=reviews>{reviews}</ul></section><section class=carousel>"
            f"<h2>Others also bought</h2><ul>{also}</ul></section>",
        )


def questions(rng: random.Random, count: int) -> Iterator[str]:
    titles = [_prose(rng, 1)[:80] for _ in range(count)]
    words = [title.split()[-1].strip(".,;()") for title in titles]

    def entry(kind: str) -> str:
        remarks = "".join(
            f"<li class=neither>{_prose(rng, 1)} <a href=/u>someone{rng.randrange(40)}</a> <span "
            f"class=date>Mar {rng.randint(1, 28)} at 10:22</span></li>"
            for _ in range(rng.randrange(4))
        )
        tags = "".join(f"<a rel=tag href=/t>{word}</a> " for word in rng.sample(words, 3))
        return (
            f"<div class={kind}><div class=votes><a>up</a><span>{rng.randrange(40)}</span>"
            f"<a>down</a></div><div class='prose own'>{_paragraphs(rng, rng.randint(1, 4))}</div>"
            f"<div class=tags>{tags}</div><div class=menu><a>Share</a> <a>Improve this {kind}</a> "
            f"<a>Follow</a></div><div class=signed>{kind}ed Mar {rng.randint(1, 28)} at 9:"
            f"{rng.randrange(10, 60)} <a href=/u>someone{rng.randrange(40)}</a> <b>"
            f"{rng.randrange(9999)}</b></div>"
            f"<ul class=remarks>{remarks}</ul><a class=add>Add a comment</a></div>"
        )

    for title in titles:
        number = rng.randint(1, 5)
        answers = "".join(entry("answer") for _ in range(number))
        yield _framed(
            title,
            f"<div class=top><h1 class=own>{title}</h1><div class=stats>Asked {number} years ago, "
            f"viewed {rng.randrange(9000)} times</div></div>{entry('question')}<h2>{number} answers"
            f"</h2><div class=sort>Sorted by highest score</div>{answers}<h2>Your answer</h2><p>By "
            "posting your answer you agree to our terms of service and acknowledge our privacy "
            "policy.</p>",
            _links(rng, titles),
        )


def news(rng: random.Random, count: int) -> Iterator[str]:
    titles = [_prose(rng, 1)[:90] for _ in range(count)]
    writers = [f"Writer {letter}" for letter in "ABCDEFGH"]
    for title in titles:
        text = [f"<p>{_prose(rng, rng.randint(1, 3))}</p>" for _ in range(rng.randint(4, 12))]
        for place in sorted(rng.sample(range(1, len(text)), 2), reverse=True):
            kind = rng.random()
            inside = (
                f"<aside class=more>Read more: <a href=/a>{rng.choice(titles)}</a></aside>"
                if kind < 0.5
                else "<div class=promo>Sign up for the morning letter of our newsroom</div>"
                if kind < 0.7
                else ""
            )
            text.insert(place, f"</div>{inside}<div class='body own'>")
        comments = "".join(
            f"<li><b>Reader {rng.randrange(99)}</b> <i>{rng.randrange(20)} hours ago</i><p "
            f"class=neither>{_prose(rng, rng.randint(1, 2))}</p><a>Reply</a> <a>Report this comment"
            "</a></li>"
            for _ in range(rng.randrange(6))
        )
        share = (
            "<ul class=tools><li>Print this page</li><li>Share on the usual networks</li></ul>"
            if rng.random() < 0.2
            else ""
        )
        yield _framed(
            title,
            f"<article><p class=kicker>{rng.choice(['World', 'Science', 'Money'])}</p><h1 "
            f"class=own>{title}</h1><p class='lead own'>{_prose(rng, 1)}</p><div class=by>By "
            f"{rng.choice(writers)}, {rng.randint(1, 28)} March 2024</div>{share}<div class='body "
            f"own'>{''.join(text)}</div></article><section class=comments><h2>Comments</h2><p>The "
            "comments below have not been moderated in advance. Keep to the house rules.</p><ul>"
            f"{comments}</ul></section><section class=most><h2>Most read</h2><ol>"
            + "".join(f"<li><a href=/s>{other}</a></li>" for other in rng.sample(titles, 5))
            + "</ol></section>",
        )


def statutes(rng: random.Random, count: int) -> Iterator[str]:
    titles = [f"Section {number + 1}. {_prose(rng, 1)[:50]}" for number in range(count)]
    notes = [_prose(rng, 2) for _ in range(6)]
    for number, title in enumerate(titles):
        rules = "".join(
            f"<p class=rule>({one + 1}) {_prose(rng, rng.randint(1, 3))}</p>"
            for one in range(rng.randint(2, 7))
        )
        shared = "".join(f"<li>{note}</li>" for note in rng.sample(notes, rng.randint(1, 4)))
        changes = "".join(
            f"<tr><td>{rng.randint(1950, 2023)}</td><td>Chapter {rng.randrange(99)}</td></tr>"
            for _ in range(rng.randint(1, 4))
        )
        steps = (
            f"<a href=/p>Previous: {titles[number - 1]}</a> <a href=/n>Next: "
            f"{titles[(number + 1) % count]}</a>"
        )
        tree = "".join(f"<li><a href=/{n}>{one}</a></li>" for n, one in enumerate(titles[:40]))
        yield _framed(
            title,
            f"<div class=cols><div class=tree><ul>{tree}</ul></div><div class=page><p class=steps>"
            f"{steps}</p><div class='law own'><h2>{title}</h2>{rules}<h3>Notes</h3><ul>{shared}"
            f"</ul><h3>History</h3><table><tr><th>Year</th><th>Act</th></tr>{changes}</table></div>"
            "<p class=official>This text is given without warranty. Only the printed edition of "
            f"the gazette is official.</p><p class=steps>{steps}</p></div></div>",
        )


def market(rng: random.Random, count: int) -> Iterator[str]:
    titles = [_prose(rng, 1)[: rng.randint(20, 50)] for _ in range(count)]
    towns = ["Bergen", "Oslo", "Tromso", "Moss"]
    tips = f"<ul><li>{_prose(rng, 1)}</li><li>{_prose(rng, 1)}</li><li>{_prose(rng, 1)}</li></ul>"
    for title in titles:
        facts = "".join(
            f"<li><span>{name}:</span> {rng.choice(values)}</li>"
            for name, values in (
                ("Condition", ["new", "used", "for parts"]),
                ("Made in", ["1998", "2004", "2011", "2020"]),
                ("Town", towns),
            )
        )
        near = "".join(
            f"<div class=tile><a href=/t><h4>{other}</h4></a><p>{rng.randrange(10, 999)} kr</p><p>"
            f"{rng.choice(towns)}</p></div>"
            for other in rng.sample(titles, 6)
        )
        yield _framed(
            title,
            f"<div class=ad><div class='head own'><h1>{title}</h1><p>{rng.randrange(10, 999)} kr"
            f"</p></div><div class=seller><p>Seller {rng.randrange(50)}</p><p>Here since "
            f"{rng.randrange(2005, 2024)}</p><button>Show number</button><button>Write</button>"
            f"</div><div class='description own'>{_paragraphs(rng, rng.randint(1, 3))}</div><ul "
            f"class='facts own'>{facts}</ul><p class=seen>Seen {rng.randrange(900)} times. <a "
            f"href=/r>Report this advertisement</a></p></div><div class=safe><h3>Buy safely</h3>"
            f"{tips}</div>"
            f"<div class=tiles><h3>Near you</h3>{near}</div>",
        )


def threads(rng: random.Random, count: int) -> Iterator[str]:
    titles = [_prose(rng, 1)[:60] for _ in range(count)]
    users = [(f"writer{number}", _prose(rng, 1)) for number in range(15)]
    for title in titles:
        rows, last = "", ""
        for _ in range(rng.randint(2, 8)):
            user, signature = rng.choice(users)
            quote = f"<blockquote>{last}</blockquote>" if last and rng.random() < 0.4 else ""
            last = _prose(rng, rng.randint(1, 2))
            rows += (
                f"<tr><td class=who><b>{user}</b><br>Member<br>{rng.randrange(4000)} messages<br>"
                f"{rng.choice(['Berlin', 'Paris', 'Rome'])}</td><td><div class=when>Posted on "
                f"{rng.randint(1, 28)} May 2021, 10:{rng.randint(10, 59)}</div><div "
                f"class='message own'>{quote}<p>{last}</p>{_paragraphs(rng, rng.randint(0, 2))}<hr>"
                f"{signature}</div>"
                "<div class=back><a href=#top>Back to top</a></div></td></tr>"
            )
        yield _framed(
            title,
            "<div class=path><a href=/>Index</a> &raquo; <a href=/g>General</a></div><h2 "
            f"class=own>{title}</h2><div class=pages>Page 1 of {rng.randint(1, 5)}</div><table "
            f"class=topic>{rows}</table><p>Previous topic <a href=/a>"
            f"{rng.choice(titles)}</a></p><div class=may><p>You cannot start topics in this group. "
            "You cannot answer in this group. You cannot "
            f"change what you wrote.</p></div><div class=now>Reading this: {rng.randrange(9)} "
            "guests</div>",
        )


BY_HAND: Final[dict[str, Callable[[random.Random, int], Iterator[str]]]] = {
    "legal notes": legal,
    "product series": products,
    "API reference": reference,
    "forum": forum,
    "articles": articles,
    "shop": shop,
    "questions": questions,
    "news": news,
    "statutes": statutes,
    "market": market,
    "threads": threads,
}
