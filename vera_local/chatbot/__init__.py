"""The system under test behind one protocol. Knows no persona and no rubric."""

from vera_local.chatbot.local import LocalChatbot
from vera_local.chatbot.making import Asked, make_chatbot
from vera_local.chatbot.protocol import STUB, Answer, Chatbot, ChatbotDown, ChatbotFailed, ChatbotOverflow, Session
from vera_local.chatbot.recorded import RecordedChatbot
from vera_local.chatbot.settings import (
    External,
    HttpSettings,
    Manners,
    OpenAISettings,
    PythonSettings,
    RecordedSettings,
)

__all__ = [
    "STUB",
    "Answer",
    "Asked",
    "Chatbot",
    "ChatbotDown",
    "ChatbotFailed",
    "ChatbotOverflow",
    "External",
    "HttpSettings",
    "LocalChatbot",
    "Manners",
    "OpenAISettings",
    "PythonSettings",
    "RecordedChatbot",
    "RecordedSettings",
    "Session",
    "make_chatbot",
]
