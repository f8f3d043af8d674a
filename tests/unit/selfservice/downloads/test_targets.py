"""Every kind of file that Velero knows has one rule, and the fence, the chart and the docs have the same."""

import re
from pathlib import Path
from typing import get_args

from foresail.api.requests import DownloadTarget
from foresail.selfservice.downloads.targets import SERVED, TARGETS, Rule, is_contents, rule_of

ROOT = Path(__file__).parents[4]


def kinds(rule: Rule) -> set[str]:
    return {kind for kind, target in TARGETS.items() if target.rule is rule}


def test_all_fourteen_kinds_of_velero_are_classified() -> None:
    assert TARGETS.keys() == set(get_args(DownloadTarget))
    assert {rule: len(kinds(rule)) for rule in Rule} == {Rule.SERVED: 10, Rule.CONTENTS: 2, Rule.NEVER: 2}


def test_a_kind_that_nobody_has_heard_of_is_never_served() -> None:
    assert rule_of("Secrets") is Rule.NEVER
    assert not is_contents("")


def test_the_fence_lets_the_operator_ask_for_what_is_served_and_for_contents_only_by_the_value_of_the_chart() -> None:
    text = (ROOT / "charts/foresail/templates/fence-self-service.yaml").read_text()
    (rule,) = (each for each in text.split("- expression") if "variables.allowsContents &&" in each)
    always, _, rest = rule.partition("variables.allowsContents &&")
    lists = [set(re.findall(r'"(\w+)"', found)) for found in re.findall(r"in \[([^\]]*)\]", always)]
    assert set(SERVED) in lists
    assert not any(kind in always for kind in kinds(Rule.CONTENTS))
    assert all(f'"{kind}"' in rest for kind in kinds(Rule.CONTENTS))
    assert not any(f'"{kind}"' in text for kind in kinds(Rule.NEVER))


def test_the_table_of_the_docs_has_the_same_rules() -> None:
    text = (ROOT / "docs/reference/self-service.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (always|contents|never) \|", text, re.MULTILINE))
    words = {Rule.SERVED: "always", Rule.CONTENTS: "contents", Rule.NEVER: "never"}
    assert rows == {kind: words[target.rule] for kind, target in TARGETS.items()}
