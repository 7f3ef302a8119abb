"""Any kind of chatbot behind the protocol, treated with manners. Knows no kind of its own and no persona."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol, TypeVar

from vera_local.chatbot.keyring import Keyring
from vera_local.chatbot.manners import Attempt, Breaker, Fault, Gate
from vera_local.chatbot.protocol import Answer, ChatbotFailed, ChatbotLost, ChatbotOverflow
from vera_local.chatbot.settings import Manners
from vera_local.conversation import Conversation, Message
from vera_local.errors import UserError
from vera_local.seed import derive
from vera_local.together import told_to_end

T = TypeVar("T")


class Line(Protocol):
    """One conversation with one kind of chatbot, one try at a time."""

    async def ask(self, history: Sequence[Message], seed: int) -> Answer:
        """One try; raises Fault where another may help, ChatbotFailed where none will."""
        ...

    async def end(self) -> None:
        """Let go of the conversation; a Fault or ChatbotFailed is of no more concern to anyone."""
        ...


class Kind(Protocol):
    """One kind of chatbot, without manners."""

    @property
    def remembers(self) -> bool:
        """As `Chatbot.remembers`."""
        ...

    @property
    def places(self) -> int | None:
        """As `Chatbot.places`."""
        ...

    async def check(self) -> None:
        """As `Chatbot.check`."""
        ...

    async def begin(self) -> Line:
        """One try to begin a conversation; raises as `Line.ask`."""
        ...

    async def aclose(self) -> None:
        """As `Chatbot.aclose`."""
        ...


class PoliteChatbot:
    """Every request goes through one gate, and every failure is told without a key or a message in it."""

    def __init__(self, kind: Kind, manners: Manners, keyring: Keyring) -> None:
        self._kind = kind
        self._limit = manners.reply_limit
        self._empty_retries = manners.empty_retries
        self._gate = Gate(manners)
        self._breaker = Breaker(manners.give_up_after)
        self._keyring = keyring

    @property
    def remembers(self) -> bool:
        return self._kind.remembers

    @property
    def places(self) -> int | None:
        return self._kind.places

    async def check(self) -> None:
        try:
            await self._kind.check()
        except UserError as error:
            raise UserError(self._keyring.hide(str(error))) from None

    async def open(self, conversation: Conversation, seed: int) -> PoliteSession:
        return PoliteSession(await self.asked(self._kind.begin, seed), self)

    async def aclose(self) -> None:
        await self._kind.aclose()

    async def reply(self, line: Line, history: Sequence[Message], seed: int) -> Answer:
        """A reply on this line; an empty one is asked for again as often as is set."""
        answer = await self._answer(line, history, seed)
        for again in range(self._empty_retries):
            if answer.text.strip():
                break
            answer = await self._answer(line, history, derive(seed, "empty", again))
        return answer

    async def asked(self, attempt: Attempt[T], seed: int) -> T:
        """What an attempt gives; raises ChatbotFailed, or ChatbotDown where too many in a row have failed."""
        try:
            return await self._gate.ask(attempt, seed)
        except (ChatbotOverflow, ChatbotLost) as error:
            # Nothing of it says that the chatbot is down.
            raise type(error)(self._keyring.hide(str(error))) from None
        except ChatbotFailed as error:
            hidden = ChatbotFailed(self._keyring.hide(str(error)))
            self._breaker.failed(hidden)
            raise hidden from None

    async def end(self, line: Line) -> None:
        """One try to end a conversation, which waits for its turn unless the whole run is being stopped."""
        await (line.end() if told_to_end() else self._gate.once(line.end))

    async def _answer(self, line: Line, history: Sequence[Message], seed: int) -> Answer:
        async def attempt() -> Answer:
            with self._keyring.unsaid(m.text for m in history):
                return self._sound(await line.ask(history, seed))

        answer = await self.asked(attempt, seed)
        self._breaker.replied()
        return answer

    def _sound(self, answer: Answer) -> Answer:
        """An answer that can be kept; Fault where it cannot."""
        try:
            size = len(answer.text.encode())
        except UnicodeEncodeError:
            raise Fault("its reply holds half of a surrogate pair") from None
        if size > self._limit:
            raise Fault(f"its reply is larger than {self._limit} bytes")
        return replace(answer, text=self._keyring.hide(answer.text))


class PoliteSession:
    """One conversation with a PoliteChatbot."""

    def __init__(self, line: Line, chatbot: PoliteChatbot) -> None:
        self._line = line
        self._chatbot = chatbot

    async def reply(self, history: Sequence[Message], seed: int) -> Answer:
        return await self._chatbot.reply(self._line, history, seed)

    async def aclose(self) -> None:
        with suppress(Fault, ChatbotFailed):
            await self._chatbot.end(self._line)
