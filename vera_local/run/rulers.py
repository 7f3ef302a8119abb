"""How texts are measured in a model's tokens without its engine. Knows no plan."""

from __future__ import annotations

from pathlib import Path

from vera_local.engine.embedded import converted
from vera_local.engine.profile import Profile
from vera_local.engine.seam import ChatMessage
from vera_local.engine.source import locate
from vera_local.errors import UserError
from vera_local.run.paper import BY_CHARACTERS, Ruler
from vera_local.run.players import Player


class Rulers:
    """One ruler for each model: its own tokenizer where its files are on this machine, else characters."""

    def __init__(self) -> None:
        self._made: dict[str, Ruler] = {}

    def __call__(self, player: Player) -> Ruler:
        """Raises UserError where a model's files are here and broken."""
        key = f"{player.profile.source} {player.url}"
        if key not in self._made:
            folder = None if player.url is not None else _folder(player.profile)
            self._made[key] = BY_CHARACTERS if folder is None else _own(folder, player.profile)
        return self._made[key]


def _folder(profile: Profile) -> Path | None:
    """The model's files, where they are here; nothing is converted for this."""
    try:
        return converted() if profile.source.embedded is not None else locate(profile)
    except UserError:
        return None


def _own(folder: Path, profile: Profile) -> Ruler:
    # Heavy to import, and not needed where no model is here.
    from vera_local.engine.template import ChatTemplate

    template = ChatTemplate.load(folder, profile.template, code=bool(profile.engine.trust_remote_code))

    def measure(text: str) -> int:
        return len(template.tokenizer(text, add_special_tokens=False)["input_ids"])

    user, answer = ChatMessage("user", "a"), ChatMessage("assistant", "a")
    one, three = len(template.ids([user])), len(template.ids([user, answer, user]))
    frame = (three - one) / 2 - measure("a")
    return Ruler(measure, frame, "tokens are those of its own tokenizer", one - measure("a") - frame)
