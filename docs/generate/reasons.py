"""Every reason, with what it means and its messages: from the enum, and from where it is used."""

import ast
import inspect
import string
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from docs.generate.tables import code, table
from foresail.cli.tenant.advice import ADVICE, capital
from foresail.primers import reasons as primers
from foresail.schedules import reasons as schedules
from foresail.selfservice import reasons as selfservice

_TOP = """# Reasons

Reasons appear in conditions, Events, metrics and `explain`. Programs may rely on them.
The message names the object; ‹…› marks a value that the operator fills in.
"""
_ABOUT = {
    schedules: "Schedules\n\nIn Events on the Schedule, in `foresail_schedule_held{reason}`, and in `foresail schedule get`, `describe` and `explain`.",
    selfservice: "Self-service\n\nIn the conditions of NonAdminBackup, NonAdminRestore and NonAdminDownloadRequest, in Events, and in `foresail backup` and `foresail restore`.",
    primers: "Primers\n\nIn the conditions of a Primer, in `status.cronJobs[].reason`, in Events, and in `foresail primer explain`.",
}


def page() -> str:
    """Return the page."""
    return "\n".join([_TOP, *(_section(module, about) for module, about in _ABOUT.items())])


def _section(module: ModuleType, about: str) -> str:
    meanings = _advised() if module is selfservice else documented(module)
    said = _messages(Path(str(module.__file__)).parent)
    rows = [(code(each), meanings[each.name], "<br>".join(said.get(each.name, ()))) for each in module.Reason]
    return f"## {about}\n\n{table(('reason', 'meaning and what to do', 'message'), rows)}"


def _advised() -> dict[str, str]:
    """Return the advice to tenants for each reason."""
    names = {"kind": "KIND", "name": "NAME", "namespace": "NAMESPACE", "word": "backup|restore"}
    texts = {each.name: f"{capital(advice.cause)}. {capital(advice.next_step)}." for each, advice in ADVICE.items()}
    return {name: string.Formatter().vformat(text, (), names) for name, text in texts.items()}


def documented(module: ModuleType) -> dict[str, str]:
    """Return the docstring below each reason."""
    (words,) = (
        each
        for each in ast.parse(inspect.getsource(module)).body
        if isinstance(each, ast.ClassDef) and each.name == "Reason"
    )
    found = {}
    for word, below in pairwise(words.body):
        match word, below:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
            case _:
                pass
    return found


def _messages(folder: Path) -> dict[str, list[str]]:
    """Return for each word the texts that stand beside it in a call."""
    found: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef):
                for name, text in _said(function):
                    if text not in found.setdefault(name, []):
                        found[name].append(text)
    return {name: [each for each in texts if each] for name, texts in found.items()}


def _said(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    texts: dict[str, ast.expr] = {}  # the last that was given to a name, above the line that is looked at
    nodes = [each for each in ast.walk(function) if isinstance(each, ast.Assign | ast.Call | ast.Tuple)]
    for each in sorted(nodes, key=lambda node: node.lineno):
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.JoinedStr() | ast.Constant() as value):
                texts[name] = value
            case ast.Call(args=parts) | ast.Tuple(elts=parts):
                pairs = ((_word(word), text) for word, text in pairwise(parts))
                yield from ((word, filled_in(text, texts)) for word, text in pairs if word)
            case _:
                pass


def _word(of: ast.expr) -> str:
    """Return the name of a word; empty for what is none."""
    is_word = isinstance(of, ast.Attribute) and isinstance(of.value, ast.Name) and of.value.id == "Reason"
    return of.attr if is_word and isinstance(of, ast.Attribute) else ""


def filled_in(of: ast.expr, texts: dict[str, ast.expr]) -> str:
    """Return a text with the names of its placeholders; empty for an expression that is not a string."""
    match of:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name) if name in texts:
            return filled_in(texts[name], texts)
        case ast.JoinedStr(values=values):
            return "".join(filled_in(each, texts) or "‹…›" for each in values)
        case ast.FormattedValue(value=ast.Name(id=name)) if name in texts:
            return filled_in(texts[name], texts)
        case ast.FormattedValue(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return f"‹{name.replace('_', ' ')}›"
        case _:
            return ""
