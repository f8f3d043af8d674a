"""Every reason, with what it means and what to do, each with an anchor: from the enum and the advice to tenants."""

import ast
import inspect
import string
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from docs.generate.tables import code, table
from foresail.cli.tenant.advice import ADVICE, capital
from foresail.primers import reasons as primers
from foresail.proof import reasons as proof
from foresail.proof.checks import reasons as checks
from foresail.protection import reasons as protection
from foresail.rollback import reasons as rollback
from foresail.schedules import reasons as schedules
from foresail.selfservice import reasons as selfservice
from foresail.slots import expression

_TOP = """# Reasons

Reasons appear in conditions, Events, metrics and `explain`. Programs may rely on them.
The message beside a reason names the object and the values.
Each reason has a link of its own, such as `reasons.html#schedules-concurrencylimit`.
"""
_ABOUT = {
    schedules: "Schedules\n\nIn Events on the Schedule, in `foresail_schedule_held{reason}`, and in `foresail schedule get`, `describe` and `explain`.",
    selfservice: "Self-service\n\nIn the conditions of NonAdminBackup, NonAdminRestore and NonAdminDownloadRequest, in Events, and in `foresail backup` and `foresail restore`. For a restore, read `restore` for `backup` in the commands.",
    primers: "Primers\n\nIn the conditions of a Primer, in `status.cronJobs[].reason`, in Events, and in `foresail primer explain`.",
    proof: "Proof\n\nIn `foresail coverage`.",
    checks: "Restore checks\n\nIn the conditions `Ready` and `Passed` of a RestoreCheck, in `status.last.reason`, in Events, and in `foresail check get` and `explain`.",
    protection: "Protection\n\nIn the condition `Protected` and in `status.notCovered` of a Protection, in the condition `Ready` of a ProtectionClass, in Events, and in `foresail_protection_gaps{reason}`.",
    rollback: "Rollbacks\n\nIn the conditions `Succeeded` and `Compared` of a Rollback, in Events, and in `foresail_rollbacks_by_reason{reason}`.",
}

_SHARED = Path(str(expression.__file__)).parent
"""Where texts are that several capabilities give their own reasons to."""


def page() -> str:
    """Return the page."""
    return "\n".join([_TOP, *(_section(module, about) for module, about in _ABOUT.items())])


def _section(module: ModuleType, about: str) -> str:
    meanings = _advised() if module is selfservice else documented(module)
    title = about.partition("\n")[0]
    rows = [(f'<a id="{anchor(title, each)}"></a>{code(each)}', meanings[each.name]) for each in module.Reason]
    return f"## {about}\n\n{table(('reason', 'meaning and what to do'), rows)}"


def anchor(title: str, reason: str) -> str:
    """Return the anchor of a reason on the page: two capabilities may have the same word."""
    return f"{title}-{reason}".lower().replace(" ", "-")


def anchors() -> list[str]:
    """Return those of all reasons."""
    titles = {module: about.partition("\n")[0] for module, about in _ABOUT.items()}
    return [anchor(title, each) for module, title in titles.items() for each in module.Reason]


def _advised() -> dict[str, str]:
    """Return the advice to tenants for each reason."""
    names = {"kind": "KIND", "name": "NAME", "namespace": "NAMESPACE", "word": "backup"}
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
