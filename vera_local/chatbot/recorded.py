"""Replies that were given before: the n-th reply to a persona is the n-th recorded one. Knows no file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vera_local.chatbot.protocol import Answer, ChatbotFailed
from vera_local.conversation import Conversation, Message, Speaker


class RecordedChatbot:
    """Of several conversations with one persona, the first belongs to the run's first with it, and so on."""

    def __init__(self, conversations: Iterable[Conversation]) -> None:
        self._recorded: dict[str, list[Conversation]] = {}
        for conversation in sorted(conversations, key=lambda c: c.repeat):
            self._recorded.setdefault(conversation.persona, []).append(conversation)

    @property
    def remembers(self) -> bool:
        return False

    @property
    def places(self) -> int | None:
        return None

    async def check(self) -> None:
        return None

    async def open(self, conversation: Conversation, seed: int) -> RecordedSession:
        held = self._recorded.get(conversation.persona, [])
        if conversation.repeat > len(held):
            raise ChatbotFailed(
                f"{len(held)} conversations with {conversation.persona} are recorded; none is left for repeat "
                f"{conversation.repeat}"
            )
        return RecordedSession(held[conversation.repeat - 1])

    async def aclose(self) -> None:
        return None


class RecordedSession:
    """One recorded conversation."""

    def __init__(self, recorded: Conversation) -> None:
        self._replies = [m.text for m in recorded.messages if m.speaker is Speaker.CHATBOT]
        self._id = recorded.id

    async def reply(self, history: Sequence[Message], seed: int) -> Answer:
        given = sum(m.speaker is Speaker.CHATBOT for m in history)
        if given >= len(self._replies):
            raise ChatbotFailed(f"the recording {self._id} has {len(self._replies)} replies and no further one")
        return Answer(self._replies[given])

    async def aclose(self) -> None:
        return None
