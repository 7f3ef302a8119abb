"""A chatbot behind a service of its own, with sessions: python3 examples/http_service.py [PORT].

It is what examples/http.toml asks. It has no model, so that it runs anywhere: it asks back. Three calls: POST
/sessions begins a conversation, POST /sessions/ID/messages gives a reply, DELETE /sessions/ID ends it.
"""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

SESSIONS: dict[str, list[str]] = {}
"""Session -> what its user has said."""


class Service(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Begin a conversation, or reply in one."""
        length = int(self.headers.get("Content-Length", 0))
        body: dict[str, Any] = json.loads(self.rfile.read(length) or b"{}")
        if self.path == "/sessions":
            session = str(uuid4())
            SESSIONS[session] = []
            self.answer(201, {"session": {"id": session}})
            return
        found = re.fullmatch(r"/sessions/([\w-]+)/messages", self.path)
        if found is None or found[1] not in SESSIONS:
            self.answer(404, {"error": "no such session"})
            return
        said = SESSIONS[found[1]]
        said.append(body["text"])
        self.answer(200, {"messages": [{"text": f"I have heard {len(said)} of your messages. Tell me more?"}]})

    def do_DELETE(self) -> None:
        """End a conversation."""
        SESSIONS.pop(self.path.rpartition("/")[2], None)
        self.answer(200, {})

    def answer(self, status: int, content: dict[str, Any]) -> None:
        """Send JSON."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep conversations out of the log."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8010), Service)
    print(f"listening at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
