"""A chatbot as a program: a line of JSON in, a line of JSON out, in one process per conversation."""

from __future__ import annotations

import json
import sys

for heard, line in enumerate(sys.stdin, 1):
    asked = json.loads(line)  # session, message, history, turn, seed
    print(json.dumps({"reply": f"You wrote {len(asked['message'])} letters in message {heard}. Go on?"}), flush=True)
