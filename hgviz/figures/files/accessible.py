"""Files that say in words what they show, where readers of screens look for it.

A PDF gets a structure tree of one figure with its alternate description (ISO 32000-1, 14.7 and
14.9.3), added after its end as an update; an SVG a title and a description that its root names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from html import escape

OBJECT = re.compile(rb"(\d+) \d+ obj\s*(<<.*>>)\s*$", re.DOTALL)
TRAILER = re.compile(rb"trailer\s*<<(.*?)>>\s*startxref\s+(\d+)\s+%%EOF\s*$", re.DOTALL)
ENTRY = re.compile(rb"(\d{10}) \d{5} n")
LANGUAGE = "en"


def described(form: str, content: bytes, record: Mapping[str, str]) -> bytes:
    """A file of a format with the words of its record, where such files have a place for them."""
    words, put = record.get("alt", ""), {"svg": svg, "pdf": pdf}.get(form)
    return put(content, words) if put and words else content


def svg(content: bytes, words: str) -> bytes:
    """An SVG whose root is one picture, named by its title and described in words."""
    text = content.decode()
    name = sha256(words.encode()).hexdigest()[:10]  # several may lie in one page
    ids = [f"title-{name}", f"desc-{name}"]
    desc = f'\n <desc id="{ids[1]}">{escape(words, quote=False)}</desc>'
    text, found = re.subn(
        r"<title>(.*?)</title>",
        lambda one: f'<title id="{ids[0]}">{one[1]}</title>{desc}', text, count=1, flags=re.DOTALL,
    )  # fmt: skip
    if not found:
        ids, text = ids[1:], re.sub(r"(<svg [^>]*>)", lambda one: f"{one[1]}{desc}", text, count=1)
    root = f'<svg role="img" lang="{LANGUAGE}" aria-labelledby="{" ".join(ids)}" '
    return text.replace("<svg ", root, 1).encode()


def pdf(content: bytes, words: str) -> bytes:
    """A PDF of one page that is tagged as a figure with its words; another as it is."""
    trailer = TRAILER.search(content)
    if trailer is None:
        return content
    start = int(trailer[2])
    objects = _objects(content, start)
    root = re.search(rb"/Root (\d+) 0 R", trailer[1])
    size = re.search(rb"/Size (\d+)", trailer[1])
    pages = {number: one for number, one in objects.items() if re.search(rb"/Type /Page\b", one)}
    if root is None or size is None or len(pages) != 1 or int(root[1]) not in objects:
        return content
    page, catalog = next(iter(pages)), int(root[1])
    box = re.search(rb"/MediaBox (\[[^\]]*\])", pages[page])
    shown = re.search(rb"/Contents (\d+ 0 R)", pages[page])
    if box is None or shown is None:
        return content
    begin, end, tree, document, figure = range(int(size[1]), int(size[1]) + 5)
    contents = b"/Contents [ %d 0 R %s %d 0 R ]" % (begin, shown[1], end)
    tagged = pages[page].replace(shown[0], contents)
    description = words.encode("utf-16-be").hex().upper().encode()
    added = {
        catalog: _with(
            objects[catalog],
            b"/Lang (%s) /MarkInfo << /Marked true >> /StructTreeRoot %d 0 R "
            b"/ViewerPreferences << /DisplayDocTitle true >>" % (LANGUAGE.encode(), tree),
        ),
        page: _with(tagged, b"/StructParents 0 /Tabs /S"),
        begin: _stream(b"/Figure << /MCID 0 >> BDC\n"),
        end: _stream(b"\nEMC\n"),
        tree: b"<< /Type /StructTreeRoot /K %d 0 R /ParentTree << /Nums [ 0 [ %d 0 R ] ] >> "
        b"/ParentTreeNextKey 1 >>" % (document, figure),
        document: b"<< /Type /StructElem /S /Document /P %d 0 R /K %d 0 R >>" % (tree, figure),
        figure: b"<< /Type /StructElem /S /Figure /P %d 0 R /Pg %d 0 R /K 0 /Alt <FEFF%s> "
        b"/A << /O /Layout /Placement /Block /BBox %s >> >>"
        % (document, page, description, box[1]),
    }
    rest = re.sub(rb"/Size \d+", b"/Size %d" % (figure + 1), trailer[1]).strip()
    return _updated(content, added, rest, start)


def _objects(content: bytes, start: int) -> dict[int, bytes]:
    """The dictionaries of a file by their numbers, those of streams left out, as its table of
    places has them.
    """
    found: dict[int, bytes] = {}
    for place in map(int, ENTRY.findall(content[start:])):
        part = content[place : content.find(b"endobj", place)]
        one = None if b"stream" in part else OBJECT.match(part)
        if one is not None:
            found[int(one[1])] = one[2]
    return found


def _with(dictionary: bytes, more: bytes) -> bytes:
    return dictionary[: dictionary.rindex(b">>")] + more + b" >>"


def _stream(content: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)


def _updated(content: bytes, added: dict[int, bytes], trailer: bytes, before: int) -> bytes:
    """A file with objects added after its end, which take the place of those of the same number."""
    out = bytearray(content if content.endswith(b"\n") else content + b"\n")
    places: dict[int, int] = {}
    for number, one in sorted(added.items()):
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    start = len(out)
    out += b"xref\n"
    for number, place in places.items():
        out += b"%d 1\n%010d 00000 n \n" % (number, place)
    out += b"trailer\n<< %s /Prev %d >>\nstartxref\n%d\n%%%%EOF\n" % (trailer, before, start)
    return bytes(out)
