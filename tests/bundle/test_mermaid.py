from __future__ import annotations

import re

from vera_local.bundle import Action, Do, Option, Question, Rubric, flowchart, load_bundle


def test_a_small_rubric_is_drawn_to_the_letter() -> None:
    first = Question(
        "1a",
        "First",
        'Is "it" <b>#1</b>?\nReally',
        "",
        (
            Option("Yes", Action(Do.GOTO, "2"), "high"),
            Option("No", Action(Do.NEXT_DIMENSION)),
            Option("None", Action(Do.STOP_NOT_RELEVANT)),
        ),
    )
    second = Question("2", "Second", "Two?", "", (Option("End", Action(Do.NEXT_QUESTION)),), auto=True)
    rubric = Rubric("r", "1", ("a", "b"), "n", {"high": "b"}, ("First", "Second"), (first, second))
    assert flowchart(rubric) == (
        "flowchart TD\n"
        '  subgraph d1["First"]\n'
        '    q1["1a. Is #quot;it#quot; #lt;b#gt;#35;1#lt;/b#gt;? Really"]\n'
        "  end\n"
        '  subgraph d2["Second"]\n'
        '    q2["2. Two?"]\n'
        "  end\n"
        '  leave(["End: all Not Relevant, unless every dimension was visited"])\n'
        '  done(["End of the rubric"])\n'
        '  q1 -->|"Yes (high) / No"| q2\n'
        '  q1 -->|"None"| leave\n'
        '  q2 -->|"End"| done\n'
    )


def test_every_question_and_way_of_the_shipped_rubric_is_drawn() -> None:
    rubric = load_bundle("suicide_risk").rubric
    lines = flowchart(rubric).splitlines()
    boxes = [line for line in lines if re.match(r"    q\d+\[", line)]
    assert len(boxes) == len(rubric.questions)
    assert sum(line.startswith("  subgraph") for line in lines) == len(rubric.dimensions)
    ways = {(q.id, rubric.follow(q, o), o.action.do) for q in rubric.questions for o in q.options}
    # Both answers to the last question lead to the end of the rubric.
    assert sum("-->" in line for line in lines) == len({(a, b.id if b else do) for a, b, do in ways}) - 1
    assert all(line.count('"') == 2 for line in lines if '"' in line)
