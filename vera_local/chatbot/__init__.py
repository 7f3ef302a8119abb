"""The system under test behind one protocol. Knows no persona and no rubric."""

from vera_local.chatbot.local import LocalChatbot
from vera_local.chatbot.protocol import Chatbot

__all__ = ["Chatbot", "LocalChatbot"]
