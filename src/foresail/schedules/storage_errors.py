"""Why a bucket cannot be used, from what an object store answered: the useful word first, the same text each time."""

import re

_CHANGES_EACH_TIME = re.compile(
    r"[,;]?\s*\b(?:x-amz-)?(?:request|host|trace|correlation)[ _-]?id(?:-2)?\b[\"']?\s*[:=]\s*[^\s,;<]*"
    r"|[,;]?\s*\btime(?:stamp)?\b[\"']?\s*[:=]\s*\d{4}-\d\d-\d\dT[^\s,;<]*"
    r"|\s\S+:\d+(?=->)",  # the port from which a connection was opened
    re.IGNORECASE,
)
_CODES = (
    re.compile(r"(?<=StatusCode: \d{3}), (?:api error )?(\w+): *(?=\S)"),  # S3; what its SDK knows is no `api error`
    re.compile(r",?\s*api error (\w+): *(?=\S)"),
    re.compile(r"\bERROR CODE: (\w+)"),  # Azure
    re.compile(r"<Code>(\w+)</Code>"),
)


def cause_of(message: str) -> str:
    """Return a message without what differs between two answers to the same problem, with the error code in front."""
    text = " ".join(_CHANGES_EACH_TIME.sub("", message).split())
    for code in _CODES:
        match = code.search(text)
        if match is not None:
            before = text[: match.start()].rstrip(" ,")
            after = text[match.end() :].strip(" ,")
            parts = [part for part in (after, f"({before})" if before else "") if part]
            return f"{match[1]}: {' '.join(parts)}" if parts else match[1]
    return text
