"""Messages that would do harm in a page that takes them for anything but text. Knows no page."""

from __future__ import annotations

FLAG = "harmed"
"""What any of them that is executed sets on the window."""

_HARM = f"window.{FLAG}=1"

HOSTILE = (
    f"<script>{_HARM};alert(1)</script>",
    f"</script><script>{_HARM}</script><!-- <img src=x onerror={_HARM}>",
    f"</textarea></title></style><svg onload={_HARM}><iframe srcdoc='<script>parent.{FLAG}=1</script>'>",
    f"**bold** _it_ [x](javascript:{_HARM}) `code`\n\n- list\n<a href=javascript:{_HARM}>x</a>",
    "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "\U0001f469\u200d\U0001f4bb \U0001f1fa\U0001f1f3 e\u0301 emoji",
    "x" * 20_000,
    "a\x00b\x1bc\u2028d\r\ne\x7ff",
    "{{ 7 * 7 }} {% raw %} ${7*7} &amp; &#60;b&#62; \"quoted\" 'too' \\u003cb\\u003e",
    "' onmouseover='window.harmed=1' x=\" autofocus onfocus=window.harmed=1 y=",
)


def hostile(conversation: int, turn: int) -> str:
    """One of them in each turn."""
    return HOSTILE[(conversation + turn) % len(HOSTILE)]
