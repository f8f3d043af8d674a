"""Reads kubeconfig files: which ones, merged as kubectl merges them, and the entries of one context.

The import of a whole YAML library takes longer than a request. So the YAML that kubectl and the clouds write is read
here: maps, lists, and words without riddles. Anything else is left to that library.
"""

import base64
import binascii
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

_LINE = re.compile(r"( *)((?:- )?)(?:([A-Za-z][A-Za-z0-9._-]*):(?: (.+))?|(.+))")
_WORD = re.compile(r"(?:-{0,2}[A-Za-z]|/)[A-Za-z0-9_./:@=+,-]*(?<!:)")
_QUOTED = re.compile(r""""[ !#-\[\]-~]*"|'[ -&(-~]*'""")
_SPECIAL = frozenset({"yes", "no", "on", "off", "null", "true", "false"})  # in any case
_VALUES: dict[str, Any] = {"true": True, "false": False}

Token = tuple[int, str, str]  # how far it is indented, its key or a dash, and its text


class NotPlainError(ValueError):
    """The text has more of YAML than is read here."""


def load_plain(text: str) -> Any:  # noqa: ANN401 - any document
    """Return the document, exactly as a YAML library would; a NotPlainError if it is not plain."""
    tokens = [token for line in text.split("\n") if line and line[0] != "#" for token in _tokens(line)]
    if not tokens:
        raise NotPlainError
    value, end = _block(tokens, 0, 0)
    if end != len(tokens):
        raise NotPlainError
    return value


def _tokens(line: str) -> list[Token]:
    match = _LINE.fullmatch(line)
    if match is None:
        raise NotPlainError
    indent = len(match[1])
    dash = match[2]
    key = match[3]
    value = match[4]
    item = match[5]
    if key is None:
        if not dash:
            raise NotPlainError
        return [(indent, "-", item)]
    if key.lower() in _SPECIAL:
        raise NotPlainError
    own = (indent + len(dash), key, value or "")
    return [(indent, "-", ""), own] if dash else [own]


def _block(tokens: list[Token], at: int, indent: int) -> tuple[Any, int]:
    """Return the list or the map that begins at a token, and the token after it."""
    if tokens[at][0] != indent:
        raise NotPlainError
    return _list(tokens, at, indent) if tokens[at][1] == "-" else _map(tokens, at, indent)


def _list(tokens: list[Token], at: int, indent: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while at < len(tokens) and tokens[at][:2] == (indent, "-"):
        text = tokens[at][2]
        item, at = (_scalar(text), at + 1) if text else _map(tokens, at + 1, indent + 2)
        items.append(item)
    return items, at


def _map(tokens: list[Token], at: int, indent: int) -> tuple[dict[str, Any], int]:
    fields: dict[str, Any] = {}
    while at < len(tokens) and tokens[at][0] == indent and tokens[at][1] != "-":
        _, key, text = tokens[at]
        if key in fields:
            raise NotPlainError
        at += 1
        if text:
            fields[key] = _scalar(text)
        elif at < len(tokens) and (tokens[at][0] > indent or tokens[at][:2] == (indent, "-")):
            fields[key], at = _block(tokens, at, tokens[at][0])
        else:
            fields[key] = None
    return fields, at


def _scalar(text: str) -> Any:  # noqa: ANN401
    if text in _VALUES:
        return _VALUES[text]
    if _QUOTED.fullmatch(text):
        return text[1:-1]
    if text in ("{}", "[]"):
        return {} if text == "{}" else []
    if _WORD.fullmatch(text) and text.lower() not in _SPECIAL:
        return text
    raise NotPlainError


_DEFAULT = "~/.kube/config"


class KubeconfigError(ValueError):
    """A kubeconfig that cannot be used; the message names the file and the field, and never a secret."""


class Secretive(msgspec.Struct, frozen=True):
    """What holds secrets: its repr shows none of it, because logs and tracebacks have the repr of what they name."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Entry(Secretive, frozen=True):
    """A named cluster, user or context of a kubeconfig file."""

    name: str
    file: Path
    fields: Mapping[str, Any]

    def text(self, name: str) -> str:
        """Return a field that must be text; empty if it is not set."""
        value = self.fields.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(f"{name} is not text")
        return value

    def flag(self, name: str) -> bool:
        """Return a field that must be true or false; false if it is not set."""
        value = self.fields.get(name) or False
        if not isinstance(value, bool):
            raise self.error(f"{name} is neither true nor false")
        return value

    def path(self, name: str) -> Path | None:
        """Return a field that names a file, relative to the kubeconfig; None if it is not set."""
        text = self.text(name)
        return self.file.absolute().parent / text if text else None

    def pem(self, name: str) -> bytes:
        """Return certificates or a key: the field NAME-data if it is set, else the content of the file in NAME."""
        data = self.text(f"{name}-data")
        path = self.path(name)
        if data:
            try:
                return base64.b64decode("".join(data.split()), validate=True)
            except binascii.Error:
                raise self.error(f"{name}-data is not base64") from None
        return path.read_bytes() if path is not None else b""

    def error(self, problem: str) -> KubeconfigError:
        """Return a problem of this entry as an error that names it and its file."""
        return KubeconfigError(f"kubeconfig {self.file}: {self.name}: {problem}")


class Context(msgspec.Struct, frozen=True):
    """A context of a kubeconfig with the cluster and the user that it names."""

    name: str
    namespace: str
    cluster: Entry
    user: Entry


def kubeconfig_paths(given: str | None) -> str:
    """Return the paths of the kubeconfig: the one given, those of KUBECONFIG, or the default."""
    return given or os.environ.get("KUBECONFIG") or _DEFAULT


def read_context(paths: str, context: str | None) -> Context:
    """Return a context, or the current one; of several files, the first that sets a name or a value wins."""
    files = _existing_files(paths)
    contents = [(file, _content(file)) for file in files]
    where = f"kubeconfig {', '.join(map(str, files))}"
    current = (str(content["current-context"]) for _, content in contents if content.get("current-context"))
    wanted = context or next(current, "")
    if not wanted:
        raise KubeconfigError(f"{where} sets no current context")
    contexts = _entries(contents, "context")
    if wanted not in contexts:
        raise KubeconfigError(f"{where} has no context {wanted!r}; it has: {', '.join(contexts) or 'none'}")
    entry = contexts[wanted]
    cluster = _entries(contents, "cluster").get(entry.text("cluster"))
    if cluster is None:
        raise entry.error(f"its cluster {entry.text('cluster')!r} is in no file")
    user = _entries(contents, "user").get(entry.text("user"))
    if user is None and entry.text("user"):
        raise entry.error(f"its user {entry.text('user')!r} is in no file")
    anonymous = Entry("no user", entry.file, {})
    return Context(wanted, entry.text("namespace") or "default", cluster, user or anonymous)


def context_names(paths: str) -> list[str]:
    """Return the names of all contexts, in the order of the files."""
    return list(_entries([(file, _content(file)) for file in _existing_files(paths)], "context"))


def _existing_files(paths: str) -> list[Path]:
    files = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    existing = [file for file in files if file.exists()]
    if not existing:
        raise KubeconfigError(f"there is no kubeconfig at {', '.join(map(str, files))}")
    return existing


def _content(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"kubeconfig {file} cannot be read: {error}") from error
    try:
        content = load_plain(text)
    except NotPlainError:
        content = _loaded(file, text)
    if not isinstance(content, dict):
        raise KubeconfigError(f"kubeconfig {file} is {'empty' if content is None else 'no kubeconfig'}")
    return content


def _loaded(file: Path, text: str) -> Any:  # noqa: ANN401 - any YAML
    import yaml  # noqa: PLC0415 - it takes longer than a request, and few kubeconfigs need it

    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - it is safe
    except yaml.YAMLError:
        raise KubeconfigError(f"kubeconfig {file} is not YAML") from None  # its message quotes the file


def _entries(contents: list[tuple[Path, dict[str, Any]]], kind: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for file, content in contents:
        listed = content.get(f"{kind}s")
        for item in listed if isinstance(listed, list) else []:
            if isinstance(item, dict) and "name" in item:
                fields = item.get(kind)
                name = str(item["name"])
                entry = Entry(f"{kind} {name!r}", file, fields if isinstance(fields, dict) else {})
                found.setdefault(name, entry)
    return found
