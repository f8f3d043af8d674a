"""What each page of the console must answer, who asks, and the text of the scene that is the answer.

An answer is a regular expression of what this scene must show, so a page that shows something else fails. A word in
angle brackets stands for a fact that is read from the cluster with kubectl just before.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

TENANT, ADMINISTRATOR = "tenant", "administrator"

WALKED = "walked"
"""The answer of a question that the walk itself looks at, on its way."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, how the texts of the links to its answer begin, and a pattern of the answer."""

    who: str
    page: str
    text: str
    clicks: tuple[str, ...] = ()
    answer: str = WALKED

    def is_answered(self, shown: str, facts: Mapping[str, str]) -> bool:
        """Whether a page shows the answer."""
        pattern = re.sub(r"<(\w+)>", lambda found: re.escape(facts[found[1]]), self.answer)
        return re.search(pattern, shown) is not None


def of(who: str, page: str, clicks: tuple[str, ...], **answers: str) -> list[Question]:
    """Return the questions of one page: each by its words, with the pattern of its answer."""
    return [Question(who, page, text.replace("_", " "), clicks, answer) for text, answer in answers.items()]


_AGE = r"\d+[sm](\d+s)?"  # the walk takes minutes
_BACKUP = r"console-\d{14}$"  # the restore of it has a longer name

BACK_UP = Question(TENANT, "Namespace", "back up now")
PAUSE = Question(TENANT, "Namespace", "pause")
PROGRESS = Question(TENANT, "Backup", "live progress")
PLAN = Question(TENANT, "Restore wizard", "the plan item by item")
CONFIRM = Question(TENANT, "Restore wizard", "confirm and watch")
POSITION = Question(TENANT, "Backup", "position in the queue", ("behind",), r"position in the queue\s+2\s")
PREVIEW = Question(ADMINISTRATOR, "Calendar", "what a SchedulePolicy would change", ("Calendar", "Show what"))
APPROVE = Question(ADMINISTRATOR, "Policies", "approve a location")
ADOPT = Question(ADMINISTRATOR, "Policies", "approve an adoption")
EVIDENCE = Question(ADMINISTRATOR, "Check", "evidence to download", ("Checks", "proven"))

QUESTIONS: tuple[Question, ...] = (
    BACK_UP,
    PAUSE,
    PROGRESS,
    PLAN,
    CONFIRM,
    POSITION,
    *of(
        TENANT,
        "Overview",
        (),
        is_everything_safe=r"Safe namespaces\s+0 of 1\s+unknown is whether Velero",
        oldest_last_good_backup=rf"Oldest last good backup\s+{_AGE}\s+shop",
        gaps=r"Gaps\s+No gaps found",
        what_failed=r"broken\s+PartiallyFailed[\s\S]*2 errors",
        what_waits_and_why=r"to-mine\s+shop\s+backup[\s\S]*LocationUnavailable",
        next_runs=r"Next runs[\s\S]*nightly\s+.*04:00",
    ),
    *of(
        ADMINISTRATOR,
        "Overview",
        (),
        is_everything_safe=r"Safe namespaces\s+0 of 4\s",
        oldest_last_good_backup=r"Oldest last good backup\s+no backup\s+bare and 2 more",
        gaps=r"bare\s+NoSchedule",
        what_failed=r"<broken>\s+PartiallyFailed[\s\S]*2 errors",
        what_waits_and_why=r"waits-here\s+shop\s+backup\s+New\s+n/a\s+not processed by the operator yet",
        next_runs=r"Next runs[\s\S]*velero-nightly\s+.*03:00",
    ),
    *of(
        TENANT,
        "Namespace",
        ("Namespace shop",),
        newest_good_backup=rf"Newest good backup\s+{_AGE} ago\s+<newest>",
        next_run=r"Next run\s+in \S+\s+\S*nightly",
        quota_use=r"backups\s+<stored> of 20\s+active backups\s+0 of 9\s+restores\s+1 of 10",
    ),
    *of(
        TENANT,
        "Backup",
        (_BACKUP,),
        the_chain_of_explain=r"it is accepted\s+ok[\s\S]*Velero",
    ),
    *of(
        TENANT,
        "Failed backup",
        ("broken",),
        why_it_failed=r"errors, warnings\s+2, 0",
        what_to_do_next=r"next\s+.*foresail backup logs",
    ),
    *of(TENANT, "Log", (_BACKUP, "Show the log"), logs=r"level=info[\s\S]*<newest_velero>"),
    *of(TENANT, "Contents", (_BACKUP, "Show what is in it"), what_is_in_it=r"ConfigMap\s+v1\s+\d+\s+.*settings"),
    *of(
        TENANT,
        "Restore wizard",
        ("Namespace shop", "Restore from a backup"),
        choose_a_copy_on_a_time_line=r"Copies, the newest first\s[\s\S]*<newest>[\s\S]*broken[\s\S]*kept",
    ),
    *of(
        ADMINISTRATOR,
        "Calendar",
        ("Calendar",),
        a_week_of_all_Schedules=r"\w{3} \d\d \w{3}\t\t\t\t2\t",
        pile_ups=r"In the same minute\s+every day at 03:00: 2 \(velero-nightly, velero-weekly\)",
        windows=r"velero/at-noon\s+\S+ 22:00 UTC",  # due at noon, and its window opens then
    ),
    PREVIEW,
    *of(
        ADMINISTRATOR,
        "Queue",
        ("Queue",),
        who_runs=r"Running\s+1\s[\s\S]*runs-here\s+shop\s+backup\s+runs\s+InProgress",
        who_waits=r"waits-here\s+shop\s+backup\s+waits\s+New\s+n/a\s+not processed by the operator yet",
        shares_per_tenant=r"shop\s+console-walk\s+3\s+75%[\s\S]*bare\s+none\s+1\s+25%",
    ),
    *of(
        ADMINISTRATOR,
        "Policies",
        ("Policies",),
        which_policy_holds_where=r"console-walk\s+10\s+1\s+20\s+9\s+10\s+\S+\s+kubernetes.io/metadata.name=shop\s+shop",
        which_SchedulePolicy_holds_where=r"evenings\s+0\s+at-noon",
        location_requests=r"mine\s+shop\s+\S+\s+pending[\s\S]*bucket: bucket-of-shop",
        adoption_requests=r"kept\s+shop\s+unverified\s+this namespace\s+Adoptable",
    ),
    APPROVE,
    ADOPT,
    *of(ADMINISTRATOR, "Checks", ("Checks",), results=r"proven\s+velero\s+Pass\s+Complete\s+nightly-1"),
    *of(
        ADMINISTRATOR,
        "Check",
        ("Checks", "proven"),
        duration_over_time=r"Runs\s[\s\S]*2026-11-16T06:00:00Z\s+Pass\s+7",
    ),
    EVIDENCE,
    *of(
        TENANT,
        "Primers",
        ("Primers",),
        cold_against_warm=r"warm\s+shop\s+10m\s+[\s\S]*41s\s+1s",
        next_fires=r"warm\s+shop[\s\S]*2031-02-03 03:00 UTC",
        cost=r"7 %",
    ),
    *of(
        ADMINISTRATOR,
        "Doctor",
        ("Doctor",),
        findings_with_their_fix=r"schedules\s+problem\s+nothing runs the 3 Schedules.*\sstart the operator",
    ),
)
