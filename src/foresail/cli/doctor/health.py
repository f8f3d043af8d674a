"""Whether Velero and Foresail run, in a word each: what the header of every page of the console reports."""

from dataclasses import dataclass

UP, DOWN, UNKNOWN, ABSENT = "up", "down", "unknown", "not installed"
_MOODS = {UP: "good", DOWN: "bad", UNKNOWN: "warn"}


@dataclass(frozen=True, slots=True)
class Health:
    """Whether something runs: a word, and why, or which version."""

    word: str
    detail: str = ""

    @property
    def mood(self) -> str:
        """The colour of the word."""
        return _MOODS.get(self.word, "")


@dataclass(frozen=True, slots=True)
class SystemHealth:
    """Whether Velero and Foresail run."""

    velero: Health = Health(UNKNOWN)
    foresail: Health = Health(UNKNOWN)


NOT_READ = SystemHealth()
