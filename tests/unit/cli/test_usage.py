"""Wrong usage: one line that says what is wrong, one that suggests, one with the usage of that very command."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from foresail.cli.main import main, parser


@pytest.mark.parametrize(
    ("words", "problem", "hint", "usage"),
    [
        ("cron nexxt", "unknown command 'nexxt'", "did you mean next?", "foresail cron COMMAND"),
        ("cron next --ouput json x", "unknown option '--ouput'", "did you mean --output?", "foresail cron next EXPR"),
        ("schedul get", "unknown command 'schedul'", "did you mean schedule?", "foresail COMMAND"),
        ("schedule get --namespac x", "unknown option '--namespac'", "did you mean --namespace?", "foresail schedule"),
        ("schedule get -o jsn", "'jsn' is not one of", "did you mean json?", "foresail schedule get [NAME ...]"),
        ("schedule", "missing COMMAND", "commands: create, get", "foresail schedule COMMAND"),
        ("--context x doctor", "unknown option '--context'", "write options after the command", "foresail COMMAND"),
        ("cron next 0 3 1 1 1", "unexpected argument '3'", "quote a value", "foresail cron next EXPR"),
    ],
)
def test_a_misspelt_word_brings_a_suggestion_and_the_usage_of_its_command(
    words: str, problem: str, hint: str, usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    first, second, third = said.err.splitlines()
    assert first.startswith("error: ")
    assert problem in first
    assert second.startswith(f"hint: {hint}")
    assert third.startswith(f"usage: {usage}")


@pytest.mark.parametrize("words", ["backup wait", "schedule create --schedule x", "cron next", "primer create"])
def test_what_is_missing_is_named_in_one_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    first, usage = capsys.readouterr().err.splitlines()
    assert first.startswith("error: missing ")
    assert usage.startswith(f"usage: foresail {' '.join(words.split()[:2])} ")


def test_usage_names_an_option_by_its_first_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["restore", "create", "undo"])
    error = capsys.readouterr().err
    assert error.startswith("error: missing --from-backup or --from-protection\n")
    assert "usage: foresail restore create (--from-backup NAME | --from-protection BACKUP) [NAME] [OPTIONS]" in error


EVERY = dict(parser().commands())


def test_no_command_takes_an_abbreviated_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert not [words for words, one in EVERY.items() if one.allow_abbrev]
    for words in ("cron next x", "schedule get", "backup get", "primer get", "policy test -f x", "doctor"):
        with pytest.raises(SystemExit):
            main([*words.split(), "--outpu", "json"])
        assert "unknown option '--outpu'" in capsys.readouterr().err


@pytest.mark.parametrize("words", EVERY)
def test_no_command_answers_a_value_with_the_name_of_one_of_our_functions(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for action in EVERY[words].get_actions():
        if action.type is None or not action.option_strings:
            continue
        with pytest.raises(SystemExit):
            main([*words.split()[1:], f"{action.option_strings[0]}={'x'}"])
        assert "invalid" not in capsys.readouterr().err


def test_hold_is_not_listed_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "hold" not in capsys.readouterr().out.replace("holds", "")
    assert main(["hold", "0"]) == 0


def test_canary_is_not_listed_for_people_and_says_nothing_outside_a_pod(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([]) == 0
    assert "canary" not in capsys.readouterr().out
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert main(["canary"]) == 1


def _foresail(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    script = Path(sys.executable).with_name("foresail")
    kept = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    return subprocess.run([script, *words], env={**kept, **variables}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words",
    [
        "schedule get",
        "backup get",
        "restore get",
        "primer get",
        "doctor",
        "install",
        "uninstall",
        "policy test -f policy.yaml",
    ],
)
def test_without_a_kubeconfig_a_command_says_so_in_our_words(words: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("kind: SelfServicePolicy\nmetadata: {name: a}\nspec: {namespaceSelector: {}}\n")
    said = _foresail(*words.replace("policy.yaml", str(policy)).split(), HOME=str(tmp_path))
    assert said.returncode == 3
    assert said.stdout == ""
    error, hint = said.stderr.splitlines()
    assert error == f"error: there is no kubeconfig at {tmp_path}/.kube/config"
    assert hint.startswith("hint: specify a kubeconfig with --kubeconfig or KUBECONFIG, and a context with --context")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is empty"),
        ("[]", "is no kubeconfig"),
        ("a: {", "is not YAML"),
        ("contexts: [{name: a}]", "sets no current context"),
        ("{contexts: [{name: a}], current-context: b}", "has no context 'b'; it has: a"),
    ],
)
def test_a_kubeconfig_that_names_no_cluster_is_named_with_what_it_lacks(
    content: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    said = _foresail("schedule", "get", KUBECONFIG=str(file), HOME=str(tmp_path))
    assert said.returncode == 3
    assert said.stderr.splitlines()[0] == f"error: kubeconfig {file} {problem}"


def test_a_wrong_value_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cron", "next", "0 3 * * *", "--after", "soon"]) == 2
    assert "error: 'soon' is not a date or time" in capsys.readouterr().err
    assert main(["install", "--timeout", "soon"]) == 2
    assert "error: --timeout: 'soon' is not a duration" in capsys.readouterr().err


def test_a_server_that_does_not_answer_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    said = _foresail("schedule", "get", KUBECONFIG=str(_nowhere(tmp_path)))
    assert said.returncode == 3
    assert said.stderr.startswith("error: the API server does not answer")


def test_the_doctor_says_in_one_line_that_the_api_server_is_down(tmp_path: Path) -> None:
    said = _foresail("doctor", KUBECONFIG=str(_nowhere(tmp_path)))
    assert said.returncode == 3
    assert said.stdout == ""
    error, hint = said.stderr.splitlines()
    assert error.startswith("error: the API server does not answer")
    assert hint == "hint: check --kubeconfig, --context and the network"


def _nowhere(folder: Path) -> Path:
    """Return a kubeconfig of a server that refuses every connection."""
    file = folder / "nowhere"
    file.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
    )
    return file


@pytest.mark.parametrize("words", EVERY)
def test_every_help_has_a_description_and_short_sentences(words: str) -> None:
    one = EVERY[words]
    assert one.description
    texts = [one.description, *(each.help or "" for each in one.get_actions())]
    sentences = [sentence for text in texts for sentence in re.split(r"(?<=[.!?])\s+", text)]
    assert [each for each in sentences if len(each.split()) > 30] == []
    undocumented = [each.dest for each in one.get_actions() if not each.help and each.metavar != "COMMAND"]
    assert undocumented == []


@pytest.mark.parametrize("words", EVERY)
def test_every_help_ends_with_examples_that_can_be_parsed(words: str) -> None:
    _, _, listed = (EVERY[words].epilog or "").partition("examples:\n")
    shown = [line.strip() for line in listed.split("\n\n")[0].splitlines()]
    assert shown
    for line in shown:
        for command in re.split(r" [|>]+ ", line):
            if command.startswith("foresail "):
                parser().parse_args(shlex.split(command)[1:])


@pytest.mark.parametrize("words", EVERY)
def test_options_that_name_a_cluster_have_one_meaning(words: str) -> None:
    options = {text: each.dest for each in EVERY[words].get_actions() for text in each.option_strings}
    assert options.get("--kubeconfig", "kubeconfig") == "kubeconfig"
    assert options.get("--context", "context") == "context"
    assert options.get("-n", "namespace") == "namespace"
    assert ("--kubeconfig" in options) == ("--context" in options)


PRINTS_OBJECTS = {
    "backup": ("create", "get", "delete"),
    "backup schedule": ("create", "get", "pause", "unpause", "delete"),
    "restore": ("create", "get", "delete"),
    "schedule": ("create", "get", "pause", "unpause", "delete", "run"),
    "primer": ("create", "get", "suspend", "resume", "delete", "suggest"),
    "policy": ("get",),
}
NAMED_ALONE = ("create", "run")
"""Verbs that make one object, whose name they are given."""


def test_every_verb_that_lists_or_changes_objects_is_known_here() -> None:
    verbs = [verb for group in PRINTS_OBJECTS for verb in EVERY[f"foresail {group}"].verbs()]
    others = {
        "describe",
        "explain",
        "wait",
        "logs",
        "schedule",  # of backup: a group of its own
        "contents",
        "diff",
        "usage",
        "simulate",
        "calendar",
        "spread",
        "preview",
        "test",
        "adopt",
        "retry",
        "retention",
        "keep",  # by name only
        "pin",
        "unpin",
        "plan",
    }
    assert set(verbs) == {each for verbs in PRINTS_OBJECTS.values() for each in verbs} | others


@pytest.mark.parametrize(
    "words", [f"foresail {group} {verb}" for group, verbs in PRINTS_OBJECTS.items() for verb in verbs]
)
def test_verbs_that_print_objects_take_the_same_options(words: str) -> None:
    options = {text: each for each in EVERY[words].get_actions() for text in each.option_strings}
    assert options["-o"].metavar == "table|wide|json|yaml|name|jsonpath=TEMPLATE"
    assert {"--output", "--kubeconfig", "--context"} <= set(options)
    if words.endswith(NAMED_ALONE):
        return
    assert {"-l", "--selector"} <= set(options)
    if not words.startswith("foresail policy"):  # its kind has no namespace
        assert {"-n", "--namespace", "-A", "--all-namespaces"} <= set(options)


@pytest.mark.parametrize("words", EVERY)
def test_every_verb_that_writes_has_both_dry_runs(words: str) -> None:
    options = {text: each for each in EVERY[words].get_actions() for text in each.option_strings}
    writes = ("create", "pause", "unpause", "delete", "run", "suspend", "resume", " install", " pin", "unpin")
    if words.endswith(writes) and words != "foresail operator run":
        assert options["--dry-run"].choices == ["client", "server"]


@pytest.mark.parametrize(
    "words",
    [
        ("backup", "create", "daily", "-n", "shop"),
        ("restore", "create", "daily", "--from-backup", "b", "-n", "shop"),
        ("schedule", "create", "daily", "--schedule", "0 3 * * *"),
        ("primer", "create", "daily", "--warm-up", "10m"),
    ],
    ids=lambda words: words[0],
)
def test_a_template_of_what_would_be_created_needs_no_cluster(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--kubeconfig=missing", "-o", "jsonpath={.metadata.name}"]) == 0
    assert capsys.readouterr().out.strip() == "daily"


def test_every_help_text_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    texts = {words: command.format_help() for words, command in parser().commands()}
    assert len(texts) > 50
    assert {words for words, text in texts.items() if max(map(len, text.splitlines())) > 80} == set()
