"""What each page of the console must answer, who asks, and how the answer is recognised in the text of the page."""

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
    answer: str = ""  # a regular expression; empty: no page answers it yet


def of(who: str, page: str, clicks: tuple[str, ...], **answers: str) -> list[Question]:
    """Return the questions of one page: each by its words, with the pattern of its answer."""
    return [Question(who, page, text.replace("_", " "), clicks, answer) for text, answer in answers.items()]


_BACKUP = r"console-\d{14}$"  # the restore of it has a longer name
_OVERVIEW = {
    "is_everything_protected": r"Protected namespaces\s+\d+ of \d+",
    "worst_RPO": r"Worst RPO\s+\S+",
    "gaps": r"Gaps\s[\s\S]*(NoSchedule|No gaps found)",
    "what_failed": r"Failed runs",
    "what_waits_and_why": r"Waiting and running",
    "next_runs": r"Next run",
}

PLAN = Question(TENANT, "Restore wizard", "the plan item by item", answer=WALKED)
CONFIRM = Question(TENANT, "Restore wizard", "confirm and watch", answer=WALKED)

QUESTIONS: tuple[Question, ...] = (
    PLAN,
    CONFIRM,
    *of(TENANT, "Overview", (), **_OVERVIEW),
    *of(ADMINISTRATOR, "Overview", (), **_OVERVIEW),
    *of(
        TENANT,
        "Namespace",
        ("Namespace shop",),
        newest_good_copy=r"Newest good (copy|backup)",
        its_age=r"\d+[smh]",
        next_run=r"Next run",
        quota_use="",
        back_up_now="Back up now",
        restore="Restore from a copy",
        pause="Pause nightly",
    ),
    *of(
        TENANT,
        "Backup",
        (_BACKUP,),
        live_progress=r"items\s+\d+ of \d+",
        position_in_the_queue=r"position in the queue\s+\S+",
        the_chain_of_explain=r"it is accepted\s+ok",
        why_it_failed=r"summary\s+\S+",
        what_to_do_next=r"next\s+\S+",
    ),
    *of(TENANT, "Log", (_BACKUP, "Show the log"), logs=r"level=info"),
    *of(TENANT, "Contents", (_BACKUP, "Show what is in it"), what_is_in_it=r"ConfigMap\s+v1\s+\d+\s+[\s\S]*settings"),
    *of(
        TENANT,
        "Restore wizard",
        ("Namespace shop", "Restore from a copy"),
        choose_a_copy_on_a_time_line=r"Copies, the newest first[\s\S]*console-",
    ),
    *of(
        ADMINISTRATOR,
        "Calendar",
        ("Calendar",),
        a_week_of_all_Schedules=r"velero-nightly",
        pile_ups=r"In the same minute",
        what_a_SchedulePolicy_would_change="",
    ),
    *of(
        ADMINISTRATOR,
        "Queue",
        ("Queue",),
        who_runs=r"Running\s+\d+",
        who_waits=r"waits-here[\s\S]*waits[\s\S]*not processed by the operator yet",
        shares_per_tenant=r"shop\s+console-walk\s+\d+\s+\d+%",
    ),
    *of(
        ADMINISTRATOR,
        "Policies",
        ("Policies",),
        which_policy_holds_where=r"console-walk[\s\S]*shop",
        location_requests=r"mine\s+shop[\s\S]*pending",
        adoption_requests=r"Backups to adopt",
    ),
    *of(ADMINISTRATOR, "Checks", ("Checks",), results=r"proven\s+Pass"),
    *of(
        ADMINISTRATOR,
        "Check",
        ("Checks", "proven"),
        duration_over_time=r"Runs\s[\s\S]*Pass\s+7",
        evidence_to_download=r"Download the evidence",
    ),
    *of(
        TENANT,
        "Primers",
        ("Primers",),
        cold_against_warm=r"warm\s+shop\s+10m\s+[\s\S]*41s\s+1s",
        next_fires=r"\d{4}-\d\d-\d\d \d\d:\d\d UTC",
        cost=r"1 %",
    ),
    *of(ADMINISTRATOR, "Doctor", ("Doctor",), findings_with_their_fix=r"Findings[\s\S]*fix"),
)
