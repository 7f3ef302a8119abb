"""Who may ask, and what a browser may do with the answer. Knows no run."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""With every answer, whatever it is; a page has a policy of its own, which lets its own style and scripts work."""


class Guard:
    """Lets through who asks this machine by its own name and knows the token, to read and not to write.

    A page from elsewhere can make a browser ask a server on this machine. It does not know the token, and where it
    had its own name point here, the browser still tells that name.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        app = self._app if refused is None else PlainTextResponse(refused[1], refused[0])
        await app(scope, receive, _adding(HEADERS, send))

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        if Headers(scope=scope).getlist("host") not in [[host] for host in self._hosts]:
            return 421, "This server answers on this machine and by its own address only.\n"
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "Runs are shown here; nothing can be changed.\n"
        first = scope["path"].removeprefix("/").partition("/")[0]
        if not hmac.compare_digest(first.encode(errors="surrogatepass"), self._token):
            return 404, "There is nothing here: use the address that `vera-local view` printed.\n"
        return None


def _adding(headers: Mapping[str, str], send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = MutableHeaders(scope=message)
            for name, value in headers.items():
                given.setdefault(name, value)
        await send(message)

    return sending
