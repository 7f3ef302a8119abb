"""A page read back as a browser would, as far as tests need it. Knows no report."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from typing import Any, NamedTuple

VOID = {"meta", "input", "br", "hr", "img", "link"}


class Shown(NamedTuple):
    """A number: its place in the JSON file, its exact value, what is read."""

    pointer: str
    value: str
    text: str


@dataclass
class Node:
    """An element and the pieces of all text inside it, in order."""

    tag: str
    attributes: dict[str, str]
    parents: list[Node] = field(repr=False)
    chunks: list[str] = field(default_factory=list, repr=False)

    @cached_property
    def text(self) -> str:
        return "".join(self.chunks)

    def inside(self, id: str) -> bool:
        return any(parent.attributes.get("id") == id for parent in (self, *self.parents))


class Parsed(HTMLParser):
    """`plain`: text that is no number with a place, by the id of its section."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.nodes: list[Node] = []
        self.plain: dict[str, str] = {}
        self._open: list[Node] = []

    @classmethod
    def of(cls, html: str) -> Parsed:
        page = cls()
        page.feed(html)
        page.close()
        assert page._open == [], [node.tag for node in page._open]
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        node = Node(tag, {name: value or "" for name, value in attrs}, [*self._open])
        self.nodes.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open[-1].tag == tag, (tag, self._open[-1].tag, self._open[-1].attributes)
            self._open.pop()

    def handle_data(self, data: str) -> None:
        for node in self._open:
            node.chunks.append(data)
        if not any("data-at" in node.attributes or node.tag in ("script", "style") for node in self._open):
            for node in self._open:
                if node.tag == "section" and "id" in node.attributes:
                    id = node.attributes["id"]
                    self.plain[id] = self.plain.get(id, "") + data

    def all(self, tag: str) -> list[Node]:
        return [node for node in self.nodes if node.tag == tag]

    def by_id(self, id: str) -> Node:
        (found,) = [node for node in self.nodes if node.attributes.get("id") == id]
        return found

    @property
    def numbers(self) -> list[Shown]:
        """In HTML the value is an attribute of its own, in SVG it cannot be."""
        return [
            Shown(n.attributes["data-at"], n.attributes.get("value", n.attributes.get("data-value", "")), n.text)
            for n in self.nodes
            if "data-at" in n.attributes
        ]

    def data(self, id: str) -> Any:
        return json.loads(self.by_id(id).text)

    @property
    def conversations(self) -> list[Any]:
        """The data of all conversations, in order."""
        return [json.loads(n.text) for n in self.all("script") if n.attributes.get("id", "").startswith("data-c")]


def at(content: Any, pointer: str) -> Any:
    """The value that a JSON pointer leads to."""
    for key in pointer.split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        content = content[int(key)] if isinstance(content, list) else content[key]
    return content


def leaves(content: Any, pointer: str = "") -> dict[str, float]:
    """Every number with its pointer."""
    if isinstance(content, bool) or content is None or isinstance(content, str):
        return {}
    if isinstance(content, int | float):
        return {pointer: content}
    pairs = content.items() if isinstance(content, dict) else ((str(i), one) for i, one in enumerate(content))
    found: dict[str, float] = {}
    for key, one in pairs:
        found |= leaves(one, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    return found
