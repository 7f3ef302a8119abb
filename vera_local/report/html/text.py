"""Text that others wrote, made safe to show. Knows no template: these escape for HTML, and this makes visible."""

from __future__ import annotations

import json
import re
from typing import Any

# Control characters but for line feed and tab, halves of characters, which UTF-8 cannot hold, and what XML cannot.
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_PICTURES = 0x2400  # where Unicode has a picture of each control character up to 0x20

# Inside a script element these could end it, open a comment in it, or be taken for the end of a line.
_UNSAFE = re.compile("[<>&\u2028\u2029]")


def visible(text: str) -> str:
    """The text with each control character as a sign that can be seen; line feeds and tabs stay.

    Marks of direction stay, too: right-to-left text needs them, and the page isolates every message.
    """
    return _INVISIBLE.sub(lambda found: _sign(ord(found.group())), text.replace("\r\n", "\n"))


def all_visible(content: Any) -> Any:
    """The same data with every string in it `visible`, keys as well."""
    if isinstance(content, str):
        return visible(content)
    if isinstance(content, dict):
        return {all_visible(key): all_visible(value) for key, value in content.items()}
    return [all_visible(one) for one in content] if isinstance(content, list | tuple) else content


def script_json(content: Any) -> str:
    """JSON that can stand in a script element: all is `visible`, and no character means anything to HTML."""
    text = json.dumps(all_visible(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def shortened(text: str, most: int) -> str:
    """At most so many characters, cut at a space where there is one near, with a sign that there is more."""
    if len(text) <= most:
        return text
    cut = text[:most]
    at = cut.rfind(" ", most * 3 // 4)
    return cut[: at if at > 0 else most].rstrip() + " …"


def _sign(code: int) -> str:
    if code < 0x20:
        return chr(_PICTURES + code)
    return "\u2421" if code == 0x7F else f"\\u{code:04x}"
