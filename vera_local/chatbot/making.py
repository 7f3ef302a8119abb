"""From settings to a chatbot. Knows every kind that needs no model of ours, and none from the inside."""

from __future__ import annotations

from vera_local.chatbot.command import CommandKind
from vera_local.chatbot.http import HttpKind
from vera_local.chatbot.keyring import Keyring
from vera_local.chatbot.openai import OpenAIKind
from vera_local.chatbot.polite import Kind, PoliteChatbot
from vera_local.chatbot.python import PythonKind
from vera_local.chatbot.settings import CommandSettings, HttpSettings, OpenAISettings, PythonSettings
from vera_local.errors import UserError

Asked = OpenAISettings | HttpSettings | PythonSettings | CommandSettings
"""Settings of the chatbots that are asked while a run goes on."""


def make_chatbot(settings: Asked, system_prompt: str = "", aliases: tuple[str, ...] = ()) -> PoliteChatbot:
    """The chatbot that the settings describe; nothing is sent yet.

    `system_prompt` and `aliases` (further names of the model) are for chat completions. Raises UserError where a key
    or the user's code is missing.
    """
    keyring = Keyring()
    try:
        kind = _kind(settings, keyring, system_prompt, aliases)
    except UserError as error:
        raise UserError(keyring.hide(str(error))) from None
    at_once = 1 if isinstance(settings, CommandSettings) and settings.shared else settings.concurrency
    manners = settings.model_copy(update={"concurrency": at_once})
    return PoliteChatbot(kind, manners, keyring)


def _kind(settings: Asked, keyring: Keyring, system_prompt: str, aliases: tuple[str, ...]) -> Kind:
    match settings:
        case OpenAISettings():
            return OpenAIKind(settings, keyring, system_prompt, aliases)
        case HttpSettings():
            return HttpKind(settings, keyring)
        case PythonSettings():
            return PythonKind(settings, keyring)
        case CommandSettings():
            return CommandKind(settings, keyring)
