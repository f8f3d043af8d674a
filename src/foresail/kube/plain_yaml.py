"""The YAML that kubectl and the clouds write into kubeconfigs: maps, lists, and words without riddles.

The import of a whole YAML library takes longer than a request. Anything that is not plainly a text, a map or a list
here is left to that library.
"""

import re
from typing import Any

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
