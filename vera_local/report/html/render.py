"""Pages as HTML: one file each, which asks nothing of anybody. Knows the templates, and nothing of what they show."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from vera_local.report.html.bars import how_made
from vera_local.report.html.comparing import ComparisonPage
from vera_local.report.html.numbers import NO_DATA
from vera_local.report.html.page import Page
from vera_local.report.html.text import visible
from vera_local.report.record import DEMONSTRATION, LIMITS


def report_html(page: Page) -> str:
    """The report of a run."""
    return render("report.html", ("theme.js", "table.js", "reader.js"), page=page, record=page.record)


def comparison_html(page: ComparisonPage) -> str:
    """Chatbots or judges side by side."""
    return render("compare.html", ("theme.js",), page=page)


@dataclass(frozen=True)
class Served:
    """A page for a browser that asks a server for it, and the policy to send along."""

    html: str
    policy: str


def served(template: str, scripts: tuple[str, ...], **content: Any) -> Served:
    """A page that may send forms to where it came from, and ask there for more."""
    style, script = _inside(scripts)
    policy = _policy(style, script, "connect-src 'self'; form-action 'self'")
    html = _rendered(template, style, script, policy, content)
    return Served(html, f"{policy}; frame-ancestors 'none'")


def render(template: str, scripts: tuple[str, ...], **content: Any) -> str:
    """A template with its style and scripts inside, and a policy that lets the browser run and load nothing else."""
    style, script = _inside(scripts)
    return _rendered(template, style, script, _policy(style, script, "form-action 'none'"), content)


def _inside(scripts: tuple[str, ...]) -> tuple[str, str]:
    return _asset("style.css"), "\n".join(map(_asset, scripts))


def _rendered(template: str, style: str, script: str, policy: str, content: Mapping[str, Any]) -> str:
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(style),
            script=Markup(script),
            policy=policy,
            limits=LIMITS,
            demonstration=DEMONSTRATION,
            intervals=how_made(),
            version=metadata.version("vera-local"),
            **content,
        )
    )


def _policy(style: str, script: str, more: str) -> str:
    return f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'; {more}"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("vera_local.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": _percent, "mean": _mean, "visible": visible}
    return environment


def _shown(value: Any) -> Any:
    """Whatever a page says, made visible: names are as hostile as messages."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _percent(share: float | None) -> str:
    """A share between 0 and 1."""
    return NO_DATA if share is None else f"{100 * share:.1f} %"


def _mean(value: float | None) -> str:
    return NO_DATA if value is None else f"{value:.1f}"


@cache
def _asset(name: str) -> str:
    """A file of ours beside the templates, as it is: it goes where escaping would change its meaning."""
    loader = _environment().loader
    assert loader is not None
    text, *_ = loader.get_source(_environment(), name)
    return text
