"""Made-up sites in nine languages and seven designs, for a third judge of `minutch changes`: what
is around and within their pages says what boards, wikis, blogs, shops and newspapers say there.

    KINDS    a language, and a kind of the first judge (`tests.support.scriptedsites`): "ja wiki"
    TUNED    the languages by which rules were made; by the others nothing was chosen
    plain    beside the seven designs: texts without marks, as parser.html.text=page leaves them

Own text is the first judge's, its words replaced by made-up ones of the language.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import ClassVar, Final
from zlib import crc32

from tests.support import scriptedsites
from tests.support.scriptedsites import Doc, Moment, ScriptedSite

TUNED: Final = ("en", "de", "ja")
TONGUES: Final = (*TUNED, "fr", "es", "ru", "ar", "zh", "pl")
KINDS: Final = tuple(f"{tongue} {kind}" for tongue in TONGUES for kind in scriptedsites.KINDS)

_SYLLABLES: Final = {
    "de": "ge ver schul haus bau ung lich stra rat ter wein ber mar tü grü stein werk en licht be",
    "fr": "re ment pon tion mar ché é cole vi lla ge lou eau fre sac cou ver ture port ai",
    "es": "ción ma ño ca lle río puer ta ven ta na ciu dad bi blio te ca mer do lla ve",
    "ru": "до ро га ре ка ви но го род ла зим сно лес ни ца мо ст па рус во ле зе мля",
    "ar": "مد رسة بي تنا نهر سو قنا با بها جبل قمر شم سها كتا بنا طر يق حد يقة لبن",
    "pl": "dro ga rze ka mia sto szko ła przy jazd ście żka wie lki no wy ogró dek okno ryn ek",
    "ja": "山 川 田 市 場 橋 森 庭 駅 村 港 谷 館 校 風 石 花 鳥 道 店 春 秋 古 青 高",
    "zh": "城 桥 河 园 市 店 书 校 站 村 港 谷 馆 风 石 花 鸟 路 春 秋 旧 青 高 灯 桌",
}
_MONTHS: Final = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre"
    " diciembre",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października"
    " listopada grudnia",
    "ar": "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
}  # fmt: skip
_WEEKDAYS: Final = {
    "en": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "de": "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "es": "lunes martes miércoles jueves viernes sábado domingo",
    "ru": "понедельник вторник среда четверг пятница суббота воскресенье",
    "pl": "poniedziałek wtorek środa czwartek piątek sobota niedziela",
    "ar": "الاثنين الثلاثاء الأربعاء الخميس الجمعة السبت الأحد",
    "ja": "月 火 水 木 金 土 日",
    "zh": "一 二 三 四 五 六 日",
}
_ENGLISH: Final = {name: nth for nth, name in enumerate(_MONTHS["en"].split(), 1)}
_DATE: Final = re.compile(rf"\b(\d+) ({'|'.join(_ENGLISH)}) (\d{{4}})\b")
_WORD: Final = re.compile(r"\b(?!EUR\b)[A-Za-z]+")

SAYS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {
        "views": "Views: {n}", "accessed": "This page has been accessed {n} times.",
        "online": "In total there are {k} users online :: {a} registered, 0 hidden and {b} guests",
        "days": "{d} days ago", "hours": "{h} hours ago", "posted": "by {who} » {ago}",
        "related": "Related articles", "bought": "Customers who bought this also bought",
        "popular": "Most read", "ad": "Advertisement",
        "speed": "Page rendered in {s} seconds, {q} queries", "ray": "Request ID: {id}",
        "counts": "{a} comments · {b} shares",
        "looking": "{k} people are looking at this right now",
        "cookies": "This website uses cookies to improve your experience.", "accept": "Accept",
        "weather": "Weather in {who}: {t} °C, {sky}", "skies": "sunny cloudy rain fog",
        "today": "Today is {day}", "stand": "As of {day}",
        "left": "Only {d} days and {h} hours left",
        "votes": "Rating: {r} / 5 ({n} votes)",
    },
    "de": {
        "views": "{n} Aufrufe", "accessed": "Diese Seite wurde bisher {n}-mal abgerufen.",
        "online": "Insgesamt sind {k} Besucher online :: {a} registrierte Mitglieder und {b} Gäste",
        "days": "vor {d} Tagen", "hours": "vor {h} Stunden", "posted": "von {who} » {ago}",
        "related": "Das könnte Sie auch interessieren", "bought": "Kunden kauften auch",
        "popular": "Meistgelesen", "ad": "Anzeige",
        "speed": "Seite in {s} Sekunden erstellt, {q} Abfragen", "ray": "Vorgang: {id}",
        "counts": "{a} Kommentare · {b} mal geteilt", "looking": "{k} Personen sehen sich das an",
        "cookies": "Diese Website verwendet Cookies.", "accept": "Alle akzeptieren",
        "weather": "Wetter in {who}: {t} °C, {sky}", "skies": "sonnig bewölkt Regen Nebel",
        "today": "Heute ist {day}", "stand": "Stand: {day}", "left": "Noch {d} Tage, {h} Stunden",
        "votes": "Bewertung: {r} von 5 ({n} Stimmen)",
    },
    "ja": {
        "views": "閲覧数：{n}", "accessed": "このページは{n}回アクセスされました。",
        "online": "オンラインのユーザー {k}人（登録メンバー{a}人、ゲスト{b}人）",
        "days": "{d}日前", "hours": "{h}時間前", "posted": "投稿者：{who}（{ago}）",
        "related": "関連記事", "bought": "この商品を買った人はこんな商品も買っています",
        "popular": "人気記事ランキング", "ad": "広告", "speed": "処理時間 {s} 秒（クエリ{q}回）",
        "ray": "リクエストID：{id}", "counts": "コメント{a}件・いいね！{b}",
        "looking": "現在{k}人が閲覧中", "cookies": "当サイトではCookieを使用しています。",
        "accept": "同意する", "weather": "{who}の天気：{t}℃ {sky}", "skies": "晴れ 曇り 雨 霧",
        "today": "今日は{day}です", "stand": "{day}現在", "left": "終了まであと{d}日{h}時間",
        "votes": "評価 {r}（{n}件の投票）",
    },
    "fr": {
        "views": "Vu {n} fois", "accessed": "Cette page a été consultée {n} fois.",
        "online": "Au total, il y a {k} utilisateurs en ligne :: {a} inscrits et {b} invités",
        "days": "il y a {d} jours", "hours": "il y a {h} heures", "posted": "par {who} » {ago}",
        "related": "Articles similaires", "bought": "Les clients ont également acheté",
        "popular": "Les plus lus", "ad": "Publicité",
        "speed": "Page générée en {s} secondes, {q} requêtes", "ray": "Identifiant : {id}",
        "counts": "{a} commentaires · {b} partages",
        "looking": "{k} personnes regardent ce produit en ce moment",
        "cookies": "Ce site utilise des cookies pour améliorer votre expérience.",
        "accept": "Tout accepter", "weather": "Météo à {who} : {t} °C, {sky}",
        "skies": "soleil nuages pluie brouillard", "today": "Nous sommes le {day}",
        "stand": "État au {day}", "left": "Plus que {d} jours et {h} heures",
        "votes": "Note : {r} sur 5 ({n} votes)",
    },
    "es": {
        "views": "Visitas: {n}", "accessed": "Esta página se ha visitado {n} veces.",
        "online": "En total hay {k} usuarios conectados :: {a} registrados y {b} invitados",
        "days": "hace {d} días", "hours": "hace {h} horas", "posted": "por {who} » {ago}",
        "related": "Artículos relacionados", "bought": "Los clientes también compraron",
        "popular": "Lo más leído", "ad": "Publicidad",
        "speed": "Página generada en {s} segundos con {q} consultas", "ray": "Petición: {id}",
        "counts": "{a} comentarios · {b} me gusta", "looking": "{k} personas están viendo esto",
        "cookies": "Utilizamos cookies propias y de terceros.", "accept": "Aceptar todas",
        "weather": "El tiempo en {who}: {t} °C, {sky}", "skies": "sol nubes lluvia niebla",
        "today": "Hoy es {day}", "stand": "A fecha de {day}", "left": "Quedan {d} días y {h} horas",
        "votes": "Valoración: {r} de 5 ({n} votos)",
    },
    "ru": {
        "views": "Просмотров: {n}", "accessed": "К этой странице обращались {n} раз.",
        "online": "Сейчас посетителей на сайте: {k}, зарегистрированных: {a}, гостей: {b}",
        "days": "{d} дней назад", "hours": "{h} часов назад", "posted": "{who} » {ago}",
        "related": "Похожие статьи", "bought": "С этим товаром покупают",
        "popular": "Самое читаемое", "ad": "Реклама",
        "speed": "Страница создана за {s} сек., запросов: {q}", "ray": "Запрос: {id}",
        "counts": "Комментариев: {a} · Нравится: {b}", "looking": "Сейчас смотрят {k} человек",
        "cookies": "Наш сайт использует файлы cookie.", "accept": "Принять",
        "weather": "Погода, {who}: {t} °C, {sky}", "skies": "ясно облачно дождь туман",
        "today": "Сегодня {day}", "stand": "По состоянию на {day}",
        "left": "Осталось {d} дней {h} часов", "votes": "Оценка: {r} из 5 ({n} голосов)",
    },
    "ar": {
        "views": "المشاهدات: {n}", "accessed": "تمت زيارة هذه الصفحة {n} مرة.",
        "online": "المتواجدون الآن {k} :: الأعضاء {a} والزوار {b}",
        "days": "منذ {d} أيام", "hours": "منذ {h} ساعات", "posted": "بواسطة {who} » {ago}",
        "related": "مقالات ذات صلة", "bought": "اشترى العملاء أيضًا", "popular": "الأكثر قراءة",
        "ad": "إعلان", "speed": "تم إنشاء الصفحة في {s} ثانية ({q} استعلامات)",
        "ray": "رقم الطلب: {id}", "counts": "{a} تعليقات · {b} إعجاب",
        "looking": "{k} شخصًا يشاهدون هذا الآن",
        "cookies": "يستخدم هذا الموقع ملفات تعريف الارتباط.",
        "accept": "موافق", "weather": "الطقس في {who}: {t} °C، {sky}",
        "skies": "مشمس غائم ممطر ضباب",
        "today": "اليوم {day}", "stand": "بتاريخ {day}", "left": "بقي {d} أيام و {h} ساعات",
        "votes": "التقييم: {r} من 5 ({n} صوت)",
    },
    "zh": {
        "views": "浏览量：{n}", "accessed": "本页面已经被访问过{n}次。",
        "online": "当前在线 {k} 人：会员{a}人，游客{b}人",
        "days": "{d}天前", "hours": "{h}小时前", "posted": "{who} 发表于 {ago}",
        "related": "相关文章", "bought": "购买此商品的顾客也同时购买", "popular": "热门文章",
        "ad": "广告", "speed": "页面执行时间 {s} 秒，查询 {q} 次", "ray": "请求编号：{id}",
        "counts": "评论({a}) 点赞({b})", "looking": "{k}人正在浏览",
        "cookies": "本网站使用 Cookie 改善您的体验。", "accept": "接受",
        "weather": "{who}天气：{t}℃ {sky}", "skies": "晴 多云 雨 雾", "today": "今天是{day}",
        "stand": "截至{day}", "left": "仅剩{d}天{h}小时", "votes": "评分 {r}（{n}人评价）",
    },
    "pl": {
        "views": "Odsłon: {n}", "accessed": "Tę stronę obejrzano {n} razy.",
        "online": "Łącznie jest {k} użytkowników online :: {a} zarejestrowanych i {b} gości",
        "days": "{d} dni temu", "hours": "{h} godz. temu", "posted": "autor: {who} » {ago}",
        "related": "Podobne artykuły", "bought": "Klienci kupili także",
        "popular": "Najczęściej czytane", "ad": "Reklama",
        "speed": "Strona wygenerowana w {s} s, zapytań: {q}", "ray": "Żądanie: {id}",
        "counts": "{a} komentarzy · {b} udostępnień", "looking": "{k} osób ogląda tę stronę",
        "cookies": "Ta strona korzysta z plików cookie.", "accept": "Akceptuję",
        "weather": "Pogoda, {who}: {t} °C, {sky}", "skies": "słońce chmury deszcz mgła",
        "today": "Dzisiaj jest {day}", "stand": "Stan na {day}",
        "left": "Pozostało {d} dni i {h} godzin", "votes": "Ocena: {r} na 5 ({n} głosów)",
    },
}  # fmt: skip


def date_in(tongue: str, day: int, month: int, year: int) -> str:
    if tongue in ("ja", "zh"):
        return f"{year}年{month}月{day}日"
    name = _MONTHS[tongue].split()[month - 1]
    made = {"en": f"{day} {name} {year}", "de": f"{day}. {name} {year}",
            "es": f"{day} de {name} de {year}", "ru": f"{day} {name} {year} г."}  # fmt: skip
    return made.get(tongue, f"{day} {name} {year}")


def day_in(tongue: str, at: datetime) -> str:
    """A date with its day of the week."""
    date, name = date_in(tongue, at.day, at.month, at.year), _WEEKDAYS[tongue].split()[at.weekday()]
    if tongue in ("ja", "zh"):
        return f"{date}（{name}）" if tongue == "ja" else f"{date} 星期{name}"
    return f"{name}, {date}"


@cache
def _word_in(tongue: str, word: str) -> str:
    syllables = _SYLLABLES[tongue].split()
    number, made = crc32(word.lower().encode()), ""
    wide = tongue in ("ja", "zh")
    for _ in range(1 if len(word) < 4 else 2 if wide or len(word) < 6 else 3):
        number, nth = divmod(number, len(syllables))
        made += syllables[nth]
    return made.capitalize() if word[0].isupper() else made


def said_in(tongue: str, html: str) -> str:
    """HTML whose words are those of a language, its marks as they were."""
    if tongue == "en":
        return html
    wide = tongue in ("ja", "zh")
    parts = re.split(r"(<[^>]*>|\0)", html)
    for at in range(0, len(parts), 2):
        dates = list[str]()

        def date(found: re.Match[str], dates: list[str] = dates) -> str:
            day, month, year = found.groups()
            dates.append(date_in(tongue, int(day), _ENGLISH[month], int(year)))
            return f"\x02{len(dates) - 1}\x02"

        text = _DATE.sub(date, parts[at])
        text = _WORD.sub(lambda found: _word_in(tongue, found[0]), text)
        if wide:
            text = re.sub(r"(?<=[^\d\s]) (?=[^\d\s])|(?<=[。、]) ", "",
                          text.replace(". ", "。").replace(", ", "、"))  # fmt: skip
            text = re.sub(r"\.$", "。", text)
        parts[at] = re.sub("\x02(\\d+)\x02", lambda found, dates=dates: dates[int(found[1])], text)
    return "".join(parts)


def _list(head: str, items: list[str], tag: str = "h3") -> str:
    links = "".join(f"<li><a href=#>{one}</a></li>" for one in items)
    return f"<{tag}>{head}</{tag}><ul>{links}</ul>"


def _some(rng: random.Random, items: list[str], most: int) -> list[str]:
    return rng.sample(items, min(most, len(items)))


def _price(title: str, tongue: str) -> str:
    """The same on all pages."""
    cents = crc32(title.encode()) % 90_000 + 500
    return {
        "ja": f"¥{cents // 10:,}",
        "zh": f"¥{cents // 100}.00",
        "en": f"${cents / 100:.2f}",
    }.get(tongue, f"{cents // 100},{cents % 100:02} €")


_NAMES: Final = ("Ada", "Bob", "Cleo", "Dan")
Says = Mapping[str, str]
NOISE: Final[Mapping[str, Callable[[Moment, Says, str], str]]] = {
    "views": lambda m, s, _: (
        f"<p>{s['views'].format(n=700 * m.visit + m.rng.randint(9, 700))}</p>"
    ),
    "accessed": lambda m, s, _: (
        f"<p>{s['accessed'].format(n=f'{8_000 + 900 * m.visit + m.rng.randint(1, 800):,}')}</p>"
    ),
    "online": lambda m, s, _: "<p>{}</p>".format(
        s["online"].format(k=m.rng.randint(9, 80), a=m.rng.randint(0, 8), b=m.rng.randint(5, 70))
    ),
    "posted": lambda m, s, _: (
        f"<p>{s['posted'].format(who=_NAMES[m.doc.posted.hour % 4], ago=_ago(m, s))}</p>"
    ),
    "today": lambda m, s, t: f"<p>{s['today'].format(day=day_in(t, m.at))}, {m.at:%H:%M}</p>",
    "stand": lambda m, s, t: (
        f"<p>{s['stand'].format(day=date_in(t, m.at.day, m.at.month, m.at.year))}</p>"
    ),
    "related": lambda m, s, _: _list(s["related"], _some(m.rng, m.titles, 4)),
    "popular": lambda m, s, _: _list(s["popular"], _some(m.of_visit, sorted(m.titles), 5), "h4"),
    "bought": lambda m, s, t: _list(s["bought"], [
        f"{one}</a> <span>{_price(one, t)}</span><a>" for one in _some(m.rng, m.titles, 3)]),
    "ad": lambda m, s, _: f"<div><small>{s['ad']}</small><p>{m.rng.choice(m.pool)}</p></div>",
    "quote": lambda m, s, _: f"<blockquote>{m.rng.choice(m.pool)}</blockquote>",
    "speed": lambda m, s, _: "<p>{}</p>".format(
        s["speed"].format(s=f"{m.rng.uniform(0, 2):.3f}", q=m.rng.randint(5, 60))
    ),
    "ray": lambda m, s, _: "<p>{}</p>".format(s["ray"].format(id=m.rng.choice(
        (f"{m.rng.getrandbits(64):016x}-FRA", f"{m.rng.getrandbits(32):08x}-4ab1-4c05-9f3e-"
         f"{m.rng.getrandbits(48):012x}")))),
    "counts": lambda m, s, _: "<p>{}</p>".format(
        s["counts"].format(
            a=3 * m.visit + m.rng.randint(0, 3), b=20 * m.visit + m.rng.randint(1, 19)
        )
    ),
    "looking": lambda m, s, _: f"<p>{s['looking'].format(k=m.rng.randint(2, 60))}</p>",
    "cookies": lambda m, s, _: (
        f"<div><p>{s['cookies']}</p><button>{s['accept']}</button></div>"
        if m.rng.random() < 0.5 else ""
    ),
    "weather": lambda m, s, _: "<p>{}</p>".format(s["weather"].format(
        who="Bern", t=m.of_visit.randint(-5, 30), sky=m.of_visit.choice(s["skies"].split()))),
    "ticker": lambda m, s, _: (
        f"<p>EUR/USD {m.of_visit.uniform(1, 1.2):.4f} {m.of_visit.uniform(-1, 1):+.2f} %</p>"
    ),
    "left": lambda m, s, _: (
        f"<p>{s['left'].format(d=max(1, 40 - m.visit), h=m.rng.randint(0, 23))}</p>"
    ),
    "votes": lambda m, s, _: "<p>{}</p>".format(
        s["votes"].format(r=f"{m.rng.uniform(3, 5):.1f}", n=9 * m.visit + m.rng.randint(1, 9))
    ),
}  # fmt: skip
"""Each makes of a moment what stands in a page beside its own text, in its language."""


def _ago(moment: Moment, says: Says) -> str:
    hours = int((moment.at - moment.doc.posted).total_seconds() // 3600)
    return says["days" if hours > 47 else "hours"].format(d=hours // 24, h=hours)


DESIGNS: Final[Mapping[str, str]] = {
    "wordpress": "<div id=page class=site><header class=site-header><nav class=main-navigation><ul>"
    "{menu}</ul></nav>{head}</header><div id=content class=site-content><main class=site-main>"
    "<article class=post><div class=entry-content>{body}</div></article></main>"
    "<aside class=widget-area>{side}</aside></div><footer class=site-footer>{foot}</footer></div>",
    "tables": "<table width=760><tr><td colspan=2><ul>{menu}</ul>{head}</td></tr>"
    "<tr><td width=160>{side}</td><td>{body}</td></tr><tr><td colspan=2>{foot}</td></tr></table>",
    "bootstrap": "<nav class='navbar navbar-light'><ul class=navbar-nav>{menu}</ul></nav>"
    "<div class=container><div class=row><div class=col-12>{head}</div></div><div class=row>"
    "<div class=col-md-8>{body}</div><div class=col-md-4><div class=card>{side}</div></div></div>"
    "<hr><div class=row>{foot}</div></div>",
    "utilities": "<div class='min-h-screen flex'><div class='px-4 flex'><ul class='flex gap-2'>"
    "{menu}</ul><div class=mt-2>{head}</div></div><div class='mx-auto max-w-4xl'><div class=prose>"
    "{body}</div><div class='w-64 text-sm'>{side}</div></div><div class='mt-8 text-xs'>{foot}</div>"
    "</div>",
    "board": "<div id=wrap class=wrap><div class=headerbar><ul class=linklist>{menu}</ul>{head}"
    "</div><div id=page-body class=page-body><div class='post bg2'><div class=postbody>"
    "<div class=content>{body}</div></div></div><div class=panel>{side}</div></div>"
    "<div class=copyright>{foot}</div></div>",
    "elements": "<header><nav><ul>{menu}</ul></nav>{head}</header><main>{body}</main>"
    "<section>{side}</section><footer>{foot}</footer>",
    "divs": "<div><div><ul>{menu}</ul></div>{head}</div><div>{body}</div><div>{side}</div>"
    "<div>{foot}</div>",
}
"""Those that rules were made by, then four others."""


@dataclass
class TongueSite(ScriptedSite):
    """A site in a language; its `kind` is one of KINDS."""

    noises: ClassVar[Mapping[str, Callable[[Moment], str]]] = dict.fromkeys(NOISE)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.tongue, kind = self.kind.split()
        self.kind = kind
        super().__post_init__()
        rng = random.Random(f"{self.tongue} {self.kind} {self.size} {self.seed}")
        names = [*DESIGNS]
        self.design = rng.choice(names[:3] if self.tongue in TUNED else names[3:])
        self.where = {one: rng.choice(("inside", "end", "side", "head", "foot"))
                      for one in rng.sample([*NOISE], self.noise)}  # fmt: skip
        self.pool = [said_in(self.tongue, one) for one in self.pool]
        self.host = self.host.replace("https://", f"https://{self.tongue}-")
        self.docs = {
            url.replace("https://", f"https://{self.tongue}-"): doc
            for url, doc in self.docs.items()
        }

    def own(self, url: str) -> str:
        return said_in(self.tongue, super().own(url))

    def html(self, url: str, visit: int, at: datetime) -> str:
        rng = random.Random(f"{self.seed} {url} {visit}")
        titles = [said_in(self.tongue, doc.title) for doc in self.docs.values()]
        doc = self.docs.get(url) or Doc(f"All of {self.kind}", [], 0, scriptedsites.START)
        noise = dict[str, str]()
        for what, where in self.where.items():
            same = random.Random(f"{self.seed} {what} {visit}")
            moment = Moment(rng, same, visit, at, doc, titles, self.pool)
            made = NOISE[what](moment, SAYS[self.tongue], self.tongue)
            if self.has_names:
                made = f"<div class={what}>{made}</div>"
            noise[where] = noise.get(where, "") + made
        parts = self.own(url).split("\0")
        at_part = min(1, len(parts) - 1)
        if "<li>" in parts[0] or url == self.host:
            at_part = len(parts)
        parts.insert(at_part, noise.get("inside", ""))
        menu = "".join(f"<li><a href=/{one}>{said_in(self.tongue, one.title())}</a></li>"
                       for one in ("home", "about", "help", "contact"))  # fmt: skip
        foot = said_in(self.tongue, "<p>All rights of this are kept.</p><p>Terms and privacy</p>")
        body = DESIGNS[self.design].format(
            menu=menu, head=noise.get("head", ""), body="".join(parts) + noise.get("end", ""),
            side=noise.get("side", ""), foot=foot + noise.get("foot", ""),
        )  # fmt: skip
        title = said_in(self.tongue, f"{doc.title} - {self.kind.title()}")
        return (
            f"<html lang={self.tongue}><head><meta charset=utf-8><title>{title}</title></head>"
            f"<body>{body}</body></html>"
        )
