from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from vera_local.chatbot.keyring import TOLD, Keyring
from vera_local.errors import UserError

KEY = "s3cret-key-of-the-bot"


def test_a_key_stands_where_its_variable_is_named() -> None:
    assert Keyring({"BOT_KEY": f" {KEY}\n"}).fill("Bearer env:BOT_KEY!") == f"Bearer {KEY}!"


@pytest.mark.parametrize(
    ("value", "told"), [("", "BOT_KEY is empty; put"), ("  ", "BOT_KEY is empty"), ("a\nb", "no key has")]
)
def test_a_variable_without_a_key_is_told(value: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as caught:
        Keyring({"BOT_KEY": value}).fill("env:BOT_KEY")
    assert "a\nb" not in str(caught.value)


def test_a_key_that_was_used_is_hidden() -> None:
    keyring = Keyring({"BOT_KEY": KEY})
    assert keyring.hide(f"{KEY} was wrong") == f"{KEY} was wrong", "not yet used"
    keyring.value("BOT_KEY")
    assert keyring.hide(f"{KEY} was wrong: {KEY}") == "[BOT_KEY] was wrong: [BOT_KEY]"


def test_a_key_is_hidden_in_every_way_of_writing_it() -> None:
    key = 'a/b+c"d e=='
    keyring = Keyring({"BOT_KEY": key})
    keyring.value("BOT_KEY")
    for written in (key, json.dumps(key), json.dumps(key).replace("/", "\\/"), quote(key), quote(key, safe="")):
        assert "[BOT_KEY]" in keyring.hide(f"no access with {written}")


def test_a_key_that_begins_with_another_is_hidden_whole() -> None:
    keyring = Keyring({"ONE": KEY, "TWO": f"{KEY}-and-more"})
    keyring.value("ONE"), keyring.value("TWO")
    assert keyring.hide(f"{KEY}-and-more") == "[TWO]"


@pytest.mark.parametrize("before", range(TOLD - len(KEY) - 1, TOLD + 2))
def test_words_that_are_told_end_in_no_part_of_a_key(before: int) -> None:
    keyring = Keyring({"BOT_KEY": KEY})
    keyring.value("BOT_KEY")
    told = keyring.told("x" * before + KEY + " " + KEY)
    assert len(told) <= TOLD and KEY[:4] not in told


def test_words_that_are_told_can_be_kept_in_a_file() -> None:
    assert Keyring({}).told("half of \ud83d one, a whole \U0001f600") == "half of ? one, a whole \U0001f600"


def test_stand_ins_are_no_secrets() -> None:
    keyring = Keyring({"BOT_KEY": "EMPTY"})
    keyring.value("BOT_KEY")
    assert keyring.hide("the list is EMPTY") == "the list is EMPTY"


def test_keys_that_other_code_reads_are_hidden_by_the_names_of_their_variables() -> None:
    keyring = Keyring({"SERVICE_API_KEY": KEY, "HOME": "/home/somebody"})
    keyring.watch()
    assert keyring.hide(f"{KEY} in /home/somebody") == "[SERVICE_API_KEY] in /home/somebody"
