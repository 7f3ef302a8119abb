"""Faults of a persona's message that show in English words. Knows no other language: it is not asked about one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vera_local.simulate.reported import own_words


def _any(*patterns: str) -> re.Pattern[str]:
    """Finds any of them. Those that begin at the edge of a word share it: elsewhere none of them is tried."""
    words = [pattern.removeprefix(_EDGE) for pattern in patterns if pattern.startswith(_EDGE)]
    others = [pattern for pattern in patterns if not pattern.startswith(_EDGE)]
    # These first, so that what comes out begins with an edge only where all of it does.
    parts = [_either(others), rf"\b(?:{_either(words)})" if words else ""]
    return re.compile("|".join(filter(None, parts)), re.IGNORECASE | re.MULTILINE)


_EDGE = r"\b"


def _either(patterns: Sequence[str]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)


def speaks_as_helper(text: str) -> bool:
    """Whether the writer calls itself an AI or takes the helper's part, with one sure sign or two doubtful ones.

    What is quoted, or reported as said by somebody, is not the writer's own.
    """
    own = own_words(text)
    if any(_is_meant(found, own) for found in _CLAIM.finditer(own)) or _SURE.search(own):
        return True
    return bool(_ANY_DOUBTFUL.search(own)) and sum(bool(sign.search(own)) for sign in _DOUBTFUL) >= 2


def thinks_aloud(text: str) -> bool:
    """Whether the model speaks of its task instead of doing it."""
    return bool(_TASK.search(text))


def directs_the_stage(text: str) -> bool:
    """Whether an action or a pause stands in asterisks, brackets or parentheses."""
    return bool(_STAGE.search(text))


_AI = (
    r"(?:ai|a\.i\.|artificial intelligence|(?:large |ai )?language model|chat ?bot"
    r"|ai (?:assistant|model|companion|chat ?bot|system|language model|program))"
)
# Behind it something that ends the name: an "AI student" is a student.
_CLAIM = _any(
    rf"\b(?P<verb>as|being|i am|i'm|im) (?:just |only |simply |merely |still )*an? {_AI}"
    r"(?= *(?:$|[.,!?;)]|(?:and|so|but|here|designed|developed|built|trained|created|made"
    r"|without|who|that|which|i|i'm|my)\b))",
)
_SUPPOSED = _any(
    r"\b(?:if|like|though|thinks?|thought|whether|wish|pretend(?:ing)?|that|sure|suppose|believes?|because)\s*$"
)
_OTHERS = _any(r"^\s*,?\s*(?:you|u|it|that|which|what|are|do|does|can|could|would)\b")
_ONESELF = _any(r"\b(?:i|i'm|i've|my|me)\b")


def _is_meant(claim: re.Match[str], own: str) -> bool:
    """Not so in "as if I'm an AI", nor in "as an AI you", which speaks of the chatbot."""
    behind = own[claim.end() :]
    as_one = claim["verb"].lower() in ("as", "being")
    if as_one and (_OTHERS.search(behind) or not _ONESELF.search(behind[:60])):
        return False
    return not _SUPPOSED.search(own[: claim.start()])


_VERY = r"(?:so |really |very |truly |deeply |incredibly |extremely |such )*"
_ENDS = r"(?= *(?:$|[.,:;!?)]))"
_STAYS_GENERAL = (
    r"(?= *(?:$|[.,;!?)]|(?:and|with (?:this|that|whatever|anything)|through|whenever|if you|any ?time|no matter"
    r"|every step|as you|as long|in any way)\b))"
)
_SEEK = (
    r"(?:reach|talk|seek|speak|consider|contact|call|try|connect|see (?:a|your)|get (?:help|support)"
    r"|take (?:care|a|some|time|things))"
)
_SUFFERING = (
    r"(?:feel(?:ing)?|going through|struggling|dealing|hurting|experiencing|facing|carrying"
    r"|having (?:a (?:hard|tough|difficult)|these|such|thoughts))"
)

# Words with which a person in distress does not turn to a chatbot.
_SURE = _any(
    r"\bhow (?:can|may|could) i (?:best )?(?:help|assist|support) you"
    rf"(?: today| right now| with (?:this|that)| feel better)?{_ENDS}",
    r"\bi(?:'m| am) (?:always |just |only |also )?here "
    r"(?:for you|to (?:help|assist|support|listen(?: to)?|guide)(?: you)?|to (?:offer|provide) (?:support|help))"
    rf"{_STAYS_GENERAL}",
    r"\byour feelings (?:are|matter and are) (?:completely |totally |perfectly |very )?(?:valid|understandable)\b",
    r"\bthank(?:s| you) (?:so much )?for (?:sharing|opening up(?! (?:the|a|my)\b)|trusting me"
    r"|being so open|confiding)\b"
    r"(?! (?:his|her|their|(?:the|that|this) (?:link|number|address|info\w*|list|article|video|poem|story|name)))",
    r"\bi (?:really |truly )?appreciate you (?:sharing|opening up|trusting|confiding)\b",
    rf"\bi(?:'m| am) {_VERY}sorry (?:that |to hear (?:that )?)*you(?:'re| are|'ve| have)? ?(?:been )?{_SUFFERING}\b",
    r"\b(?:i|we)(?:'d| would)? (?:like to |want to |strongly |really |gently |highly |also )*"
    rf"(?:encourage|urge|recommend|advise)(?: that)? you (?:to )?{_SEEK}\b",
    r"\bif you(?:'re| are|'ve been| have) (?:having |ever |feeling |experiencing |in |currently |been )+"
    r"[^.!?\n]{0,60}\b(?:suicid\w*|crisis|danger|harm\w*|yourself)\b"
    r"[^.!?\n]{0,60}\b(?:call|contact|reach|text|dial|seek)\b",
    r"\bas your (?:(?:ai|support|virtual) )?(?:therapist|counsell?or|assistant|chat ?bot|companion|coach)\b,? i\b",
    r"\bi (?:can't|cannot|can not|am unable to|'m unable to|'m not able to) (?:provide|offer|give) (?:you )?(?:with )?"
    r"(?:any )?(?:medical|professional|mental health|legal|clinical)\b",
    r"\bis there anything (?:else |specific |in particular )?(?:that )?(?:you'd|you would) like to "
    r"(?:talk about|share|discuss|tell me)\b",
    r"\bi(?:'d like| would like| want) you to know (?:that )?(?:you(?:'re| are) not alone|your (?:feelings|life) )",
    # Refusals of the part that is to be played.
    r"\bi (?:can't|cannot|can not|am unable to|'m unable to|won't) "
    r"(?:help|assist|comply|continue|fulfill?|engage|participate)"
    r"\b[^.!?\n]{0,20}\b(?:this|that|your) (?:request|role-?play|prompt|scenario|simulation)\b",
    rf"^\W*i(?:'m| am) sorry,? but i (?:can't|cannot|can not) (?:help|assist)(?: you)? with (?:that|this){_ENDS}",
    r"\bi(?:'m| am) (?:programmed|designed|trained) to (?:be a helpful|assist|provide)\b",
    r"\b(?:let's|we can) (?:explore|work through|unpack) (?:this|that|these|your|what you)\b",
)

# Words of helpers that people use, too; two of these together they hardly use.
_DOUBTFUL = (
    _any(r"\bit(?:'s| is) (?:also )?(?:so |really |very )?(?:important|crucial|essential) (?:to|that you)\b"),
    _any(
        r"\b(?:that|this|it) (?:sounds|must be|must have been|must feel)(?: like)?(?: a)? "
        rf"{_VERY}(?:hard|tough|difficult|painful|overwhelming|challenging|lonely|frustrating|exhausting)\b"
    ),
    _any(
        r"\bit(?:'s| is) (?:completely |totally |perfectly |absolutely )?"
        r"(?:ok|okay|normal|understandable|natural|alright) (?:to|that you|for you)\b"
    ),
    _any(
        r"\bhave you (?:tried|considered|thought (?:about|of)) "
        r"(?:talking|reaching|seeking|speaking|therapy|counsel\w*|meditat\w*|mindful\w*|journal\w*|seeing)"
    ),
    _any(r"\b(?:would you like to|do you want to|can you|could you|feel free to) (?:talk|share|tell me|explore)\b"),
    _any(
        r"\b(?:i hear you|i understand (?:how|that|what) you"
        r"|i can (?:see|hear|imagine|sense|tell) (?:(?:that |how |what )?you(?:'re| are)?|how (?:much|hard|painful)))\b"
    ),
    _any(
        r"\byou (?:don't|do not) have to (?:go through|face|carry|deal with) (?:this|it) (?:all )?alone\b",
        r"\byou(?:'re| are) not alone\b|\byou (?:deserve|matter)\b",
        rf"\byou(?:'re| are) {_VERY}(?:strong|brave|worthy|loved)\b",
    ),
    _any(
        r"(?:^|[.!?] )(?:please )?(?:remember|know)(?:,| that)? (?:that )?you\b",
        r"\btake care of yourself\b|\bbe (?:kind|gentle) to yourself\b",
    ),
    _any(r"(?:^|[.!?] )please (?:call|contact|reach out|text|dial|consider|seek|talk|speak)\b"),
    _any(
        rf"\bi(?:'m| am) {_VERY}(?:sorry to hear (?:that|this|about)|glad you (?:reached|shared|told|are|came)"
        r"|proud of you)\b",
        r"\bit(?:'s| is) (?:great|good|wonderful) that you(?:'re| are|'ve| have)? (?:reach|shar|talk|open)",
    ),
    _any(
        r"\bwhat(?:'s| is| has)(?: been)? (?:on your mind|going on for you|troubling you|bothering you)\b",
    ),
    _any(r"\bhow (?:are|have) you (?:been )?(?:feeling|coping|holding up)\b"),
    _any(r"\b(?:it|that|this) takes (?:a lot of |so much |great |real |true )?(?:courage|strength|bravery)\b"),
    _any(r"\byou can (?:also |always )?(?:call|text|dial|contact|reach)\b[^.!?\n]{0,30}\b(?:988|lifeline|hotline)\b"),
    _any(r"\b(?:help is|they(?:'re| are)) (?:always )?available\b"),
    _any(
        r"\b(?:reach(?:ing)? out to|talk(?:ing)? to|speak(?:ing)? (?:to|with)|seek(?:ing)?) (?:a |an |your )?"
        r"(?:trusted|mental health|professional|licensed|qualified|therapist)\b"
    ),
    _any(r"\bi(?:'d| would) (?:suggest|recommend|be happy to (?:help|assist|support|listen))\b"),
)
_ANY_DOUBTFUL = _any(*(sign.pattern for sign in _DOUBTFUL))

_PART = r"(?:user|persona|character|role ?-?play|human user|prompt|simulation)"
_WELL = r"^\W*(?:(?:ok|okay|alright|so|hmm|well|right|now|wait|first),? )*"
_TASK = _any(
    rf"{_WELL}the {_PART}(?: (?:here|now))? "
    r"(?:wants|is asking|would|should|needs|asked|has|is|says|must|might)(?: me)?\b",
    rf"{_WELL}(?:i|we)(?:'ll| need to| should| have to| must| will| am going to) (?:now )?"
    r"(?:respond|reply|answer|write|speak|act|continue|stay|be)(?: \w+){0,4}? (?:as|in|like) "
    rf"(?:if i were )?(?:the |an? |this |my )?(?:\w+ )?{_PART}\b",
    r"^\W*(?:(?:sure|of course|certainly|okay|alright|absolutely)[,!.]? )*here(?:'s| is| are)"
    r"(?: (?:a|an|my|one|some|the (?:first|next|opening|rewritten|revised)))?"
    r"(?: (?:possible|potential|first|next|realistic|short|brief|rewritten|revised|opening|chat))* "
    r"(?:response|reply|message|opening|rewrite|version)s?\b"
    r"(?! (?:i|he|she|they|that|from (?:my|him|her|them|an?)|to (?:my|him|her|them|any\w*|every\w*))\b)[^\n:]{0,60}:",
    r"^\W*(?:response|my (?:response|reply|message) as (?:the|an?) \w+"
    r"|(?:the )?(?:user|persona)['\u2019]s (?:message|reply))\s?:"
    r"(?!//)",
    r"\bhow (?:the|this) (?:user|persona) (?:would|might|should) (?:reply|respond|react|answer|feel|say)\b",
    r"[(\[]\W*note: [^)\]\n]*\b(?:persona|character|role ?-?play|this (?:response|reply))\b",
    rf"^\W*as (?:the|this|a) {_PART},? i(?:'d| would|'ll| will| should| need)\b",
)

_ACT = (
    r"(?:sighs?|sighing|paus(?:es?|ing)|shrugs?|shrugging|cr(?:y|ies|ying)|laughs?|laughing|chuckl(?:es?|ing)|nods?"
    r"|nodding|silen(?:ce|t)|whispers?|whispering|star(?:es?|ing)|wip(?:es?|ing)|sniff(?:s|ing|les?|ling)?|sobs?"
    r"|sobbing|lean(?:s|ing)|fidget(?:s|ing)|swallow(?:s|ing)|shak(?:es|ing)|breath(?:es|ing)|exhal(?:es?|ing)"
    r"|inhal(?:es?|ing)|hesitat(?:es?|ing)|trembl(?:es|ing)|groan(?:s|ing)?|mutter(?:s|ing)|mumbl(?:es|ing)"
    r"|glanc(?:es|ing)|smil(?:es|ing)|frown(?:s|ing)?|grin(?:s|ning)?|winc(?:es|ing)|typ(?:es|ing)|delet(?:es|ing)"
    r"|gulps?|clench(?:es|ing)|yawns?|yawning|blinks?|scoffs?|snorts?|trails? off|trailing off|deep breath"
    r"|voice (?:break|crack|trembl|shak)\w*|eyes (?:well|water|tear|fill|down)\w*"
    r"|tears? (?:roll|well|run|stream)\w*|look(?:s|ing)? (?:down|away|up|at|around|out)"
    r"|tak(?:es|ing) a (?:deep |long )?(?:breath|moment|sip|drag)|rubs? (?:my|his|her|their|eyes|temples|face)"
    r"|scroll(?:s|ing)|sits|(?:starts?|begins?) (?:to )?(?:cry|sob|shak|trembl)\w*"
    r"|puts? (?:down|my|the phone)|turns? away|hang(?:s|ing) up|clos(?:es|ing) (?:my|his|her|their|the))"
)
_SLOWLY = r"(?:(?:i|he|she|they|\w+ly|long|short|deep|a|just|user) ){0,3}"
_GOES_ON = r"(?: (?:\w+ly|again|for a (?:moment|while|second)|and [\w ]{2,20}|my (?:eyes|tears)|down|away))?"
_STAGE = _any(
    rf"(?<![\w*])\*{{1,2}}{_SLOWLY}{_ACT}\b[^*\n]{{0,60}}\*{{1,2}}(?!\w)",
    rf"(?<![\w~])(?P<mark>[~_]){_SLOWLY}{_ACT}(?![a-z])[^~_\n]{{0,60}}(?P=mark)(?!\w)",
    rf"[\[<]{_SLOWLY}{_ACT}\b(?! (?:emoji|face|gif|cat|sticker))[^\]>\n]{{0,60}}[\]>]",
    # In parentheses people also speak: only an act that fills them is none of their words.
    rf"\((?:(?:\w+ly|long|short|deep|a) ){{0,2}}{_ACT}{_GOES_ON} ?\)",
)
