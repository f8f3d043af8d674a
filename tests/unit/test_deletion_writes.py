"""Whether one module alone deletes Velero Backups, and asks Velero to delete them."""

import ast
from collections.abc import Iterator
from pathlib import Path

from foresail.api import velero
from foresail.selfservice.garbage import decide

SOURCE = Path(__file__).parents[2] / "src" / "foresail"
ACTS = SOURCE / "deletion_writes.py"
FORBIDDEN = {
    "Create": ("DELETE_REQUEST",),
    "Delete": ("velero.BACKUP", "DELETE_REQUEST", "family.velero", "BACKUPS.velero"),
}


def deletions_in(path: Path) -> Iterator[str]:
    """Yield the calls in a module that delete Velero Backups, or ask Velero for it."""
    text = path.read_text()
    if not any(word in text for words in FORBIDDEN.values() for word in words):
        return
    for node in ast.walk(ast.parse(text)):
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if name in FORBIDDEN and isinstance(node, ast.Call) and node.args:
            kind = ast.unparse(node.args[0])
            if any(word in kind for word in FORBIDDEN[name]):
                yield f"{path.relative_to(SOURCE)}:{node.lineno}: {name}({kind})"


def test_one_module_alone_deletes_velero_backups() -> None:
    others = [path for path in SOURCE.rglob("*.py") if path != ACTS]
    assert [call for path in others for call in deletions_in(path)] == []
    assert len(list(deletions_in(ACTS))) == 3, "the request, its withdrawal, and the object alone"


def test_no_command_deletes_velero_backups() -> None:
    for path in (*(SOURCE / "cli").rglob("*.py"), *(SOURCE / "console").rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "velero.BACKUP" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "delete":
                kinds = [ast.unparse(argument) for argument in node.args]
                assert "velero.BACKUP" not in kinds, f"{path}:{node.lineno}"


def test_a_velero_backup_is_never_garbage() -> None:
    assert velero.BACKUP not in decide.KINDS
