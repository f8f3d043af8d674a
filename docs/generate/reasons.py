"""Every reason, with what it means and its messages: from the enum, and from where it is used."""

import ast
import inspect
import string
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from docs.generate.tables import code, table
from foresail.cli.tenant.advice import ADVICE, capital
from foresail.primers import reasons as primers
from foresail.proof import reasons as proof
from foresail.proof.checks import reasons as checks
from foresail.schedules import reasons as schedules
from foresail.selfservice import reasons as selfservice
from foresail.slots import expression

_TOP = """# Reasons

Reasons appear in conditions, Events, metrics and `explain`. Programs may rely on them.
The message names the object; ‹…› marks a value that the operator fills in.
"""
_ABOUT = {
    schedules: "Schedules\n\nIn Events on the Schedule, in `foresail_schedule_held{reason}`, and in `foresail schedule get`, `describe` and `explain`.",
    selfservice: "Self-service\n\nIn the conditions of NonAdminBackup, NonAdminRestore and NonAdminDownloadRequest, in Events, and in `foresail backup` and `foresail restore`.",
    primers: "Primers\n\nIn the conditions of a Primer, in `status.cronJobs[].reason`, in Events, and in `foresail primer explain`.",
    proof: "Proof\n\nIn `foresail coverage`.",
    checks: "Restore checks\n\nIn the conditions `Ready` and `Passed` of a RestoreCheck, in `status.last.reason`, in Events, and in `foresail check get` and `explain`.",
}

_SHARED = Path(str(expression.__file__)).parent
"""Where texts are that several capabilities give their own reasons to."""

_UNUSABLE = {schedules: ("INVALID", "NEVER_FIRES")}
"""The reasons for an expression that is invalid, and for one that never fires."""


def page() -> str:
    """Return the page."""
    return "\n".join([_TOP, *(_section(module, about) for module, about in _ABOUT.items())])


def _section(module: ModuleType, about: str) -> str:
    meanings = _advised() if module is selfservice else documented(module)
    said = _messages(Path(str(module.__file__)).parent)
    for never_fires, text in _unusable() if module in _UNUSABLE else ():
        said.setdefault(_UNUSABLE[module][never_fires], []).append(text)
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


def _unusable() -> Iterator[tuple[bool, str]]:
    """Return the texts about expressions without slots, and whether they are about one that never fires."""
    tree = ast.parse(Path(str(expression.__file__)).read_text())
    for function in (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)):
        texts: dict[str, ast.expr] = {}
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.JoinedStr() as value):
                    texts[name] = value
                case ast.Call(func=ast.Name(id=expression.Unusable.__name__), args=[text], keywords=marks):
                    yield bool(marks), filled_in(text, texts)
                case _:
                    pass


@cache
def _returned() -> dict[str, str]:
    """Return the texts that functions of the shared floor return, by their names."""
    found = {}
    for file in sorted(_SHARED.glob("*.py")):
        for function in (each for each in ast.parse(file.read_text()).body if isinstance(each, ast.FunctionDef)):
            texts: dict[str, ast.expr] = {}
            for node in function.body:
                match node:
                    case ast.Assign(targets=[ast.Name(id=name)], value=ast.JoinedStr() | ast.Constant() as value):
                        texts[name] = value
                    case ast.Return(value=ast.JoinedStr() as value):
                        found[function.name] = filled_in(value, texts)
                    case _:
                        pass
    return found


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
        case ast.Name(id=name) | ast.FormattedValue(value=ast.Name(id=name)) if name in texts:
            return filled_in(texts[name], texts)
        case ast.Call(func=ast.Name(id=name)):
            return _returned().get(name, "")
        case ast.JoinedStr(values=values):
            return "".join(filled_in(each, texts) or "‹…›" for each in values)
        case ast.FormattedValue(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return f"‹{name.replace('_', ' ')}›"
        case _:
            return ""
