"""Measures how much of documents parse-tika reads: words, order, title, links, dates, time; beside
Apache Tika, where its jars are.

    python -m tests.benchmarks.documents [--tika FOLDER] [--folder DOCUMENTS] [--keep FOLDER] [-v]

Documents whose words are known are made by the programs that are here, of each that is not a line
says so: LibreOffice, pandoc and Ghostscript on the PATH; python-docx, openpyxl, XlsxWriter,
python-pptx, odfpy, EbookLib, ReportLab and fpdf2 (PYTHONPATH may name the folder that has them).
With --folder there are more: files, each with its words beside it in NAME.txt or the pages of
NAME.html. --tika names a folder of jars (tika-parsers-standard-package and what it depends on);
java and javac must be here.

Of each document: right words, of those that it has; extra words, which it has not (broken, glued,
names of authors of comments); how much of the order is kept (the ratio of difflib); whether title,
link and date are found. Prints a Markdown table, and the sums.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.cycle.parse.dispatch import ParseUtil
from minutch.cycle.parse.mime import MimeUtil
from minutch.records.metadata import Metadata
from minutch.records.protocol import Content

TITLE: Final = "Annual report of the harbour"
AUTHOR: Final = "Wilhelmina"
LINK: Final = "http://harbour.example/lighthouse"
DATE: Final = "2024-02-29T12:34:56Z"
HEADER, FOOTER = "Northern headline", "Southern baseline"
NOTE, COMMENT = "Footnoted explanation", "Reviewers remark"
BOX: Final = "Boxed aside"
PARAGRAPHS: Final = (
    "The office of the lighthouse found differing flags: affluent, efficient, waffles and fjords.",
    "Žluťoučký kůň úpěl ďábelské ódy; Größe, naïveté, smørrebrød, İstanbul and Łódź are names.",
    "Ελληνικά γράμματα και кириллица стоят рядом with Latin letters in a single paragraph.",
    "A well-known, long-standing and twenty-first example has its hyphens where a writer put them,"
    " and goes on for so long that it fills more than a single line of every page it is set on.",
)
ITEMS: Final = ("first mooring", "second mooring", "third mooring")
ROWS: Final = (("Quay", "Depth", "Vessels"), ("Eastern", "12", "fourteen"), ("Western", "9", "six"))
CELLS: Final = ("2024-01-01", "0.1", "50%", "TRUE", "1,234.50", "harbour")
SHEETS: Final = ("Tides", "Moorings")
_WORD: Final = re.compile(r"[^\W_]+")
_JAVA: Final = Path(__file__).parent / "java" / "TikaDocuments.java"


@dataclass(slots=True)
class Made:
    """A document with what it should give."""

    path: Path
    program: str
    words: list[str]
    title: str = ""
    link: str = ""
    date: str = ""


@dataclass(slots=True)
class Answer:
    """What a parser gave."""

    text: str = ""
    title: str = ""
    links: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""


def words_of(text: str) -> list[str]:
    """Words as they are counted: letters and digits, in small letters."""
    return _WORD.findall(text.lower())


def _body() -> list[str]:
    table = [" ".join(row) for row in ROWS]
    return [TITLE, *PARAGRAPHS, "See the lighthouse keeper", *ITEMS, *table]


def markdown(path: Path) -> None:
    """The body, for pandoc."""
    table = "\n".join(["| " + " | ".join(row) + " |" for row in ROWS])
    head, rest = table.split("\n", 1)
    lines = [f"# {TITLE}", *PARAGRAPHS, f"See [the lighthouse keeper]({LINK})[^1]"]
    lines += ["\n".join(f"- {item}" for item in ITEMS), f"{head}\n|---|---|---|\n{rest}"]
    text = "\n\n".join([*lines, f"[^1]: {NOTE}"])
    path.write_text(f"---\ntitle: {TITLE}\n---\n\n{text}\n", encoding="utf-8")


def docx(path: Path) -> list[str]:
    """python-docx."""
    document = importlib.import_module("docx").Document()
    document.core_properties.title, document.core_properties.author = TITLE, AUTHOR
    document.core_properties.created = datetime.fromisoformat(DATE)
    section = document.sections[0]
    section.header.paragraphs[0].text, section.footer.paragraphs[0].text = HEADER, FOOTER
    document.add_heading(TITLE, 1)
    for text in PARAGRAPHS:
        document.add_paragraph(text)
    paragraph = document.add_paragraph("See ")
    oxml = importlib.import_module("docx.oxml")
    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    for part in (
        '<w:fldChar w:fldCharType="begin"/>',
        f'<w:instrText xml:space="preserve"> HYPERLINK "{LINK}" </w:instrText>',
        '<w:fldChar w:fldCharType="separate"/>',
        '<w:t xml:space="preserve">the light</w:t></w:r><w:r><w:t>house keeper</w:t>',
        '<w:fldChar w:fldCharType="end"/>',
    ):
        for run in oxml.parse_xml(f"<w:p {names}><w:r>{part}</w:r></w:p>"):
            paragraph._p.append(run)
    if hasattr(document, "add_comment"):
        document.add_comment(paragraph.runs[0], COMMENT, author=AUTHOR, initials="Wq")
    for item in ITEMS:
        document.add_paragraph(item, style="List Bullet")
    table = document.add_table(len(ROWS), len(ROWS[0]))
    for row, cells in zip(ROWS, table.rows, strict=True):
        for text, cell in zip(row, cells.cells, strict=True):
            cell.text = text
    document.save(path)
    return [HEADER, *_body(), COMMENT, FOOTER]


def xlsx_openpyxl(path: Path) -> list[str]:
    """openpyxl: sheets in an order that is not that of their files."""
    openpyxl = importlib.import_module("openpyxl")
    book = openpyxl.Workbook()
    book.properties.title, book.properties.created = TITLE, datetime.fromisoformat(DATE[:-1])
    second, first = book.active, book.create_sheet(SHEETS[0], 0)
    second.title = SHEETS[1]
    values = (datetime(2024, 1, 1), 0.1, 0.5, True, 1234.5, "harbour")
    for at, (value, pattern) in enumerate(
        zip(values, ("yyyy-mm-dd", "General", "0%", "General", "#,##0.00", "@"), strict=True), 1
    ):
        first.cell(1, at, value).number_format = pattern
    first["F1"].hyperlink = LINK
    first["A1"].comment = importlib.import_module("openpyxl.comments").Comment(COMMENT, AUTHOR)
    for row in ROWS:
        second.append([int(text) if text.isdecimal() else text for text in row])
    book.save(path)
    return [SHEETS[0], *CELLS, COMMENT, SHEETS[1], *(" ".join(row) for row in ROWS)]


def xlsx_xlsxwriter(path: Path) -> list[str]:
    """XlsxWriter: with a header, a text box and a chart."""
    book = importlib.import_module("xlsxwriter").Workbook(str(path))
    book.set_properties({"title": TITLE, "created": datetime.fromisoformat(DATE[:-1])})
    sheet = book.add_worksheet(SHEETS[0])
    patterns = ("yyyy-mm-dd", "General", "0%", "General", "#,##0.00", "@")
    values = (datetime(2024, 1, 1), 0.1, 0.5, True, 1234.5, "harbour")
    for at, (value, pattern) in enumerate(zip(values, patterns, strict=True)):
        write = sheet.write_datetime if isinstance(value, datetime) else sheet.write
        write(0, at, value, book.add_format({"num_format": pattern}))
    sheet.write_url(1, 0, LINK, string="lighthouse keeper")
    sheet.set_header(f'&C&"Arial,Bold"{HEADER}')
    sheet.insert_textbox(3, 0, BOX)
    book.close()
    return [SHEETS[0], *CELLS, "lighthouse keeper", HEADER, BOX]


def pptx(path: Path) -> list[str]:
    """python-pptx: the last slide made is shown first; with notes."""
    presentation = importlib.import_module("pptx").Presentation()
    presentation.core_properties.title = TITLE
    presentation.core_properties.created = datetime.fromisoformat(DATE[:-1])
    layout = presentation.slide_layouts[1]
    for title, lines in (("Moorings", ITEMS), (TITLE, PARAGRAPHS[:2])):
        slide = presentation.slides.add_slide(layout)
        slide.shapes.title.text = title
        slide.placeholders[1].text = "\n".join(lines)
    slide.notes_slide.notes_text_frame.text = NOTE
    run = presentation.slides[0].placeholders[1].text_frame.add_paragraph().add_run()
    run.text, run.hyperlink.address = "lighthouse keeper", LINK
    slides = presentation.slides._sldIdLst
    slides.insert(0, slides[-1])
    presentation.save(path)
    return [TITLE, *PARAGRAPHS[:2], NOTE, "Moorings", *ITEMS, "lighthouse keeper"]


def odt(path: Path) -> list[str]:
    """odfpy: with a comment, a note and a text box."""
    document = importlib.import_module("odf.opendocument").OpenDocumentText()
    text, dc, office, draw, meta = (
        importlib.import_module(f"odf.{name}") for name in ("text", "dc", "office", "draw", "meta")
    )
    document.meta.addElement(dc.Title(text=TITLE))
    document.meta.addElement(meta.CreationDate(text=DATE))
    document.text.addElement(text.H(outlinelevel=1, text=TITLE))
    for line in PARAGRAPHS:
        document.text.addElement(text.P(text=line))
    paragraph = text.P(text="See ")
    remark = office.Annotation()
    for part in (dc.Creator(text=AUTHOR), dc.Date(text=DATE), text.P(text=COMMENT)):
        remark.addElement(part)
    paragraph.addElement(remark)
    paragraph.addElement(text.A(href=LINK, text="the lighthouse keeper"))
    note, body = text.Note(noteclass="footnote"), text.NoteBody()
    note.addElement(text.NoteCitation(text="1"))
    body.addElement(text.P(text=NOTE))
    note.addElement(body)
    paragraph.addElement(note)
    frame, box = draw.Frame(width="5cm", height="2cm", anchortype="paragraph"), draw.TextBox()
    box.addElement(text.P(text=BOX))
    frame.addElement(box)
    paragraph.addElement(frame)
    document.text.addElement(paragraph)
    document.save(path)
    return [TITLE, *PARAGRAPHS, "See the lighthouse keeper", COMMENT, NOTE, BOX]


def epub(path: Path) -> list[str]:
    """EbookLib."""
    epublib = importlib.import_module("ebooklib.epub")
    book = epublib.EpubBook()
    book.set_title(TITLE)
    book.set_language("en")
    chapters = []
    table = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in ROWS)
    paragraphs = "".join(f"<p>{line}</p>" for line in PARAGRAPHS)
    bodies = (
        f"<h1>{TITLE}</h1>{paragraphs}",
        f'<p>See <a href="{LINK}">the lighthouse keeper</a></p><table>{table}</table>',
    )
    for number, body in enumerate(bodies):
        chapter = epublib.EpubHtml(title=f"Part{number}", file_name=f"part{number}.xhtml")
        chapter.content = f"<html><body>{body}</body></html>"
        book.add_item(chapter)
        chapters.append(chapter)
    book.spine = chapters
    book.add_item(epublib.EpubNcx())
    epublib.write_epub(str(path), book)
    return [TITLE, *PARAGRAPHS, "See the lighthouse keeper", *(" ".join(row) for row in ROWS)]


def pdf_reportlab(path: Path) -> list[str]:
    """ReportLab: in two columns, hyphenated by nobody."""
    platypus = importlib.import_module("reportlab.platypus")
    style = importlib.import_module("reportlab.lib.styles").getSampleStyleSheet()["Normal"]
    template = platypus.BaseDocTemplate(str(path), title=TITLE, author=AUTHOR)
    width, height = template.width / 2 - 6, 220
    frames = [platypus.Frame(72 + at * (width + 12), 400, width, height) for at in (0, 1)]
    template.addPageTemplates(platypus.PageTemplate(frames=frames))
    lines = [PARAGRAPHS[0], PARAGRAPHS[3]] * 2
    story = [platypus.Paragraph(line, style) for line in lines]
    story.append(platypus.Paragraph(f'See <a href="{LINK}">the lighthouse keeper</a>', style))
    template.build(story)
    return [*lines, "See the lighthouse keeper"]


def pdf_fpdf(path: Path) -> list[str]:
    """fpdf2: with an outline and a table."""
    document = importlib.import_module("fpdf").FPDF()
    document.set_title(TITLE)
    document.set_creation_date(datetime.fromisoformat(DATE))
    document.add_page()
    document.set_font("helvetica", size=12)
    for line in (PARAGRAPHS[0], PARAGRAPHS[3]):
        document.multi_cell(0, text=line, new_x="LMARGIN", new_y="NEXT")
    document.cell(text="lighthouse keeper", link=LINK, new_x="LMARGIN", new_y="NEXT")
    with document.table() as table:
        for row in ROWS:
            cells = table.row()
            for text in row:
                cells.cell(text)
    document.output(str(path))
    return [PARAGRAPHS[0], PARAGRAPHS[3], "lighthouse keeper", *(" ".join(row) for row in ROWS)]


MAKERS: Final[dict[str, tuple[str, Callable[[Path], list[str]]]]] = {
    "word.docx": ("python-docx", docx),
    "tides.xlsx": ("openpyxl", xlsx_openpyxl),
    "box.xlsx": ("XlsxWriter", xlsx_xlsxwriter),
    "slides.pptx": ("python-pptx", pptx),
    "note.odt": ("odfpy", odt),
    "book.epub": ("EbookLib", epub),
    "columns.pdf": ("ReportLab", pdf_reportlab),
    "table.pdf": ("fpdf2", pdf_fpdf),
}
CONVERTED: Final = {
    "word.docx": ("doc", "rtf", "odt", "fodt", "docx", "pdf", "epub"),
    "tides.xlsx": ("xls", "ods", "xlsx"),
    "slides.pptx": ("ppt", "odp", "pptx", "pdf"),
    "note.odt": ("docx", "pdf"),
}
"""What LibreOffice makes of which document."""
WITHOUT: Final = {"pdf": [COMMENT, NOTE], "epub": [COMMENT, HEADER, FOOTER]}
"""What it leaves out in doing so."""


def made(folder: Path) -> Iterator[Made]:
    """Makes documents by all programs that are here."""
    done: dict[str, Made] = {}
    for name, (program, make) in MAKERS.items():
        try:
            words = make(folder / name)
        except ImportError as error:
            print(f"without {program}: {error}")
            continue
        date = "" if name.endswith(("columns.pdf", "epub")) else DATE
        done[name] = Made(folder / name, program, words, TITLE, LINK, date)
    yield from done.values()
    if shutil.which("pandoc"):
        markdown(folder / "source.md")
        for kind in ("docx", "odt", "epub", "pptx"):
            target = folder / f"pandoc.{kind}"
            subprocess.run(["pandoc", str(folder / "source.md"), "-o", str(target)], check=True)
            yield Made(target, "pandoc", [TITLE, *_body(), NOTE], TITLE, LINK)
    else:
        print("without pandoc: not on the PATH")
    if not shutil.which("soffice"):
        print("without LibreOffice: soffice is not on the PATH")
        return
    for name, kinds in CONVERTED.items():
        for kind in kinds if name in done else ():
            yield from _converted(done[name], kind, folder)


def _converted(source: Made, kind: str, folder: Path) -> Iterator[Made]:
    out = folder / f"libreoffice-{source.path.stem}"
    home = f"-env:UserInstallation=file://{folder}/home"
    command = ["soffice", home, "--headless", "--convert-to", kind, "--outdir", str(out)]
    subprocess.run([*command, str(source.path)], check=True, capture_output=True, timeout=300)
    found = out / f"{source.path.stem}.{kind}"
    if not found.is_file():
        print(f"LibreOffice made no {found.name}")
        return
    words = [line for line in source.words if line not in WITHOUT.get(kind, ())]
    date = "" if kind in ("pdf", "epub") else source.date
    yield Made(found, "LibreOffice", words, source.title, source.link, date)
    if kind == "pdf" and shutil.which("gs"):
        again = found.with_name(f"gs-{found.name}")
        subprocess.run(["gs", "-q", "-sDEVICE=pdfwrite", "-o", str(again), str(found)], check=True)
        yield Made(again, "Ghostscript", words, source.title, source.link)


def given(folder: Path) -> Iterator[Made]:
    """The documents of a folder that have their words beside them."""
    from selectolax.lexbor import LexborHTMLParser

    for path in sorted(folder.iterdir()):
        text, page = path.with_name(f"{path.name}.txt"), path.with_name(f"{path.name}.html")
        if text.is_file():
            yield Made(path, "given", [text.read_text(encoding="utf-8")])
        elif page.is_file():
            body = LexborHTMLParser(page.read_bytes()).body
            yield Made(path, "given", [body.text() if body else ""])


def ours(document: Made, conf: Configuration) -> Answer:
    """What parse-tika makes of a document."""
    data, url = document.path.read_bytes(), f"http://localhost/{document.path.name}"
    mime = MimeUtil(conf)
    content_type = mime.resolve(mime.by_url(url), url, data)
    parser = ParseUtil(conf)
    started = time.process_time()
    parse = parser.parse(Content(url, url, data, content_type, Metadata()))[url]
    seconds = time.process_time() - started
    meta = parse.data.parse_meta
    return Answer(
        parse.text,
        parse.data.title,
        [link.to_url for link in parse.data.outlinks],
        [value for name in ("dcterms:created", "dcterms:modified") for value in meta.get(name, ())],
        seconds,
        "" if parse.data.status.is_success else str(parse.data.status),
    )


def tikas(documents: list[Made], jars: Path, folder: Path) -> list[Answer]:
    """What Tika makes of them, all in one JVM."""
    path = os.pathsep.join([str(folder), *map(str, sorted(jars.glob("*.jar")))])
    subprocess.run(["javac", "-cp", path, "-d", str(folder), str(_JAVA)], check=True)
    listed = folder / "documents.txt"
    listed.write_text("".join(f"{document.path}\n" for document in documents), encoding="utf-8")
    command = ["java", "-Xmx2g", "-cp", path, _JAVA.stem, str(listed), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return [_tika(folder / f"{number}.answer") for number in range(len(documents))]


def _tika(path: Path) -> Answer:
    head, _, text = path.read_text(encoding="utf-8", errors="replace").partition("text\n")
    answer = Answer(text)
    for line in head.split("\n"):
        name, _, value = line.partition("\t")
        if name == "title":
            answer.title = value
        elif name == "link":
            answer.links.append(value)
        elif name == "date":
            answer.dates.append(value)
        elif name == "seconds":
            answer.seconds = float(value)
        elif name == "error":
            answer.error = value
    return answer


def row(document: Made, answer: Answer) -> tuple[list[str], Counter[str]]:
    """The cells of a table for an answer, and the numbers for the sums."""
    wanted, found = words_of(" ".join(document.words)), words_of(answer.text)
    both = Counter(wanted) & Counter(found)
    right = both.total()
    small = len(wanted) + len(found) < 20_000
    order = SequenceMatcher(None, wanted, found, autojunk=False).ratio() if small else 0.0
    asked = [
        ("title", document.title, document.title == answer.title),
        ("link", document.link, any(link.startswith(document.link) for link in answer.links)),
        ("date", document.date, document.date in answer.dates),
    ]
    lacking = [name for name, value, is_there in asked if value and not is_there]
    cells = [
        f"{right}/{len(wanted)}",
        str(len(found) - right),
        f"{order:.2f}" if small else "",
        " ".join(lacking) if not answer.error else "failed",
        f"{answer.seconds:.2f}",
    ]
    counts = Counter(right=right, wanted=len(wanted), extra=len(found) - right, facts=len(lacking))
    return cells, counts


def show(documents: list[Made], answers: dict[str, list[Answer]], *, verbose: bool = False) -> None:
    """Prints the table and its sums."""
    titles = [
        f"{name}: {what}" for name in answers for what in ("right", "extra", "order", "lacks", "s")
    ]
    print(f"\n| document | program | {' | '.join(titles)} |\n|{'---|' * (len(titles) + 2)}")
    sums: dict[str, Counter[str]] = {name: Counter() for name in answers}
    for number, document in enumerate(documents):
        cells = [document.path.name, document.program]
        for name, found in answers.items():
            more, counts = row(document, found[number])
            cells += more
            sums[name].update(counts)
        print(f"| {' | '.join(cells)} |")
        if verbose:
            wanted = Counter(words_of(" ".join(document.words)))
            for name, found in answers.items():
                words = Counter(words_of(found[number].text))
                lacks, has = [*(wanted - words)][:12], [*(words - wanted)][:12]
                print(f"  {name} {found[number].error} lacks {lacks}, has {has}")
    for name, counts in sums.items():
        seconds = sum(answer.seconds for answer in answers[name])
        print(
            f"\n{name}: {counts['right']} of {counts['wanted']} words right, {counts['extra']}"
            f" extra, {counts['facts']} titles, links and dates lacking, {seconds:.2f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tika", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("-v", action="store_true", dest="verbose")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(exist_ok=True)
        documents = [*made(folder), *(given(options.folder) if options.folder else ())]
        conf = Configuration.load([], overrides={"plugin.includes": "parse-tika|parse-html"})
        answers = {"minutch": [ours(document, conf) for document in documents]}
        if options.tika:
            answers["Tika"] = tikas(documents, options.tika, Path(name))
        show(documents, answers, verbose=options.verbose)


if __name__ == "__main__":
    main()
