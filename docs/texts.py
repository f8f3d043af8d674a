"""Every text that a person reads: help, reasons, advice, messages, metrics and alerts, each with its source."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docs.generate import metrics, reasons
from foresail.cli.main import parser
from foresail.cli.tenant.advice import ADVICE, REFUSED, UNSEEN
from foresail.primers import reasons as primers
from foresail.proof import reasons as proof
from foresail.proof.checks import reasons as checks
from foresail.protection import reasons as protection
from foresail.rollback import reasons as rollback
from foresail.schedules import reasons as schedules

ROOT = Path(__file__).parent.parent
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Text(NamedTuple):
    """A text and where it comes from."""

    source: str
    text: str


def every_text() -> Iterator[Text]:
    """Yield all of them."""
    yield from helps()
    yield from reason_texts()
    yield from messages()
    yield from metric_helps()
    yield from alert_texts()


def helps() -> Iterator[Text]:
    """Yield the description and the options of every command."""
    for words, one in parser().commands():
        yield Text(f"{words} --help", one.description or "")
        yield from (Text(f"{words} --help, {each.dest}", each.help or "") for each in one._actions)  # noqa: SLF001


def reason_texts() -> Iterator[Text]:
    """Yield the meaning of every reason and the advice about it."""
    for module in (schedules, primers, proof, checks, protection, rollback):
        yield from (Text(f"{module.__name__}.{name}", text) for name, text in reasons.documented(module).items())
    for reason, advice in [*ADVICE.items(), ("WriteRefused", REFUSED), ("no reason", UNSEEN)]:
        for text in (advice.cause, advice.next_step, advice.of_restore):
            yield Text(f"advice for {reason}", text)


def messages() -> Iterator[Text]:
    """Yield each text in our source code, with what a function puts together from several."""
    for file in sorted((ROOT / "src" / "foresail").rglob("*.py")):
        yield from (Text(f"{file.relative_to(ROOT)}:{line}", text) for line, text in literals(file.read_text()))


def literals(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the content of each text in Python code; docstrings are for developers and left out."""
    tree = ast.parse(source)
    for scope in (each for each in ast.walk(tree) if isinstance(each, ast.Module | _FUNCTIONS)):
        known: dict[str, ast.expr] = {}
        for node in sorted(_in_scope(scope), key=lambda each: (each.lineno, each.col_offset)):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.JoinedStr() | ast.Constant() as value):
                    yield node.lineno, reasons.filled_in(value, known)
                    known = {**known, name: ast.Constant(reasons.filled_in(value, known))}
                case ast.JoinedStr() | ast.Constant(value=str()):
                    yield node.lineno, reasons.filled_in(node, known)
                case _:
                    pass


def _in_scope(scope: ast.AST) -> Iterator[ast.Assign | ast.JoinedStr | ast.Constant]:
    """Yield the texts of a function or module, without those of functions in it."""
    for node in ast.iter_child_nodes(scope):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name()], value=ast.JoinedStr() | ast.Constant(value=str())):
                yield node
            case ast.JoinedStr() | ast.Constant(value=str()):
                yield node
            case _:
                yield from _in_scope(node)


def metric_helps() -> Iterator[Text]:
    """Yield the help of every metric."""
    for collector in (each for group in metrics.collectors().values() for each in group):
        yield from (Text(each.name, each.documentation) for each in collector.collect())


def alert_texts() -> Iterator[Text]:
    """Yield the summary and the description of every alert."""
    for rule in metrics.alerts():
        for name in ("summary", "description"):
            yield Text(f"{rule['alert']}, {name}", metrics.filled(rule["annotations"][name]))
