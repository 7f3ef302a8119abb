"""A list on a page, read back. Knows no viewer."""

from __future__ import annotations

import re
from html import unescape

_ABBREVIATED = re.compile(r'<span aria-hidden="true">.*?</span>', re.S)


def rows(page: str) -> list[list[str]]:
    """The cells of each line of a page's table, as they are read out; what was found in it is no line."""
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    lines = [line for line in re.findall(r"<tr.*?</tr>", body, re.S) if 'class="found"' not in line]
    return [[_text(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", line, re.S)] for line in lines]


def status(page: str) -> str:
    """What the page says of what it shows."""
    return _text(re.findall(r'role="status">.*?</p>', page, re.S)[0].partition(">")[2])


def _text(html: str) -> str:
    return unescape(re.sub(r"<.*?>", "", _ABBREVIATED.sub("", html), flags=re.S)).strip()
