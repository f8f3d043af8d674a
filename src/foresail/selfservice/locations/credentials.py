"""The credentials in a tenant's Secret: two or three keys in plain text, read and written anew.

The AWS SDK in Velero's process can run programs, read files and take on Velero's identity if such a file says so.
Therefore no line of the tenant's file reaches it.
"""

import re
from hashlib import sha256

import msgspec

LARGEST_CREDENTIALS = 8 << 10
"""Bytes of the key of the Secret."""

_ACCESS, _SECRET, _TOKEN = "aws_access_key_id", "aws_secret_access_key", "aws_session_token"
_VALUES = {
    _ACCESS: re.compile(r"[A-Za-z0-9_.+/=-]{3,128}", re.ASCII),
    _SECRET: re.compile(r"[\x21-\x7e]{8,256}", re.ASCII),
    _TOKEN: re.compile(r"[A-Za-z0-9+/=_.-]{1,4096}", re.ASCII),
}


class Credentials(msgspec.Struct, frozen=True):
    """Keys of a bucket, as Velero gets them; `repr` does not show them."""

    text: str

    def __repr__(self) -> str:
        return "Credentials(...)"

    @property
    def digest(self) -> str:
        """A hash that tells whether they changed; keys are random, so it does not reveal them."""
        return sha256(self.text.encode()).hexdigest()


def credentials_of(content: bytes) -> Credentials | str:
    """Return the credentials in a file of the AWS SDK, or what is wrong with it; no message has a value of it."""
    if len(content) > LARGEST_CREDENTIALS:
        return f"it is larger than {LARGEST_CREDENTIALS >> 10} KiB"
    try:
        lines = content.decode("ascii").splitlines()
    except UnicodeDecodeError:
        return "it is not plain text"
    settings: dict[str, str] = {}
    section = ""
    for line in lines:
        text = line.strip()
        if not text or text[0] in "#;":
            continue
        problem = _section_problem(text, section) if text[0] == "[" else _line_problem(line, section, settings)
        if problem:
            return problem
        section = "default" if text[0] == "[" else section
    if _ACCESS not in settings or _SECRET not in settings:
        return f"it lacks {_ACCESS} or {_SECRET} in section [default]"
    rows = (f"{key}={settings[key]}" for key in (_ACCESS, _SECRET, _TOKEN) if key in settings)
    return Credentials("\n".join(("[default]", *rows, "")))


def _section_problem(text: str, before: str) -> str:
    return "" if text == "[default]" and not before else "it has a section beside [default]; remove it"


def _line_problem(line: str, section: str, settings: dict[str, str]) -> str:
    """Take in `key = value`; return what is wrong with it."""
    key, is_pair, value = (part.strip() for part in line.partition("="))
    if not section or line[0].isspace() or not is_pair:
        return "it has a line that is not key=value below [default]"
    if key not in _VALUES:
        return "it has a setting beside aws_access_key_id, aws_secret_access_key and aws_session_token; remove it"
    if key in settings:
        return f"{key} is there twice"
    if not _VALUES[key].fullmatch(value):
        return f"the value of {key} is not valid"
    settings[key] = value
    return ""
