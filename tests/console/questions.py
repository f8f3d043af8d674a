"""What each page of the console must answer, who asks, and the text of the scene that is the answer.

An answer is a regular expression of what this scene must show, so a page that shows something else fails. A word in
angle brackets stands for a fact that is read from the cluster with kubectl just before.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

TENANT, ADMINISTRATOR, FLEET = "tenant", "administrator", "fleet"

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
CLASS = Question(ADMINISTRATOR, "New class", "create a class for every namespace", ("Protection", "Create a class"))
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
        am_I_safe=r"(Unknown whether namespace shop is safe|At risk: namespace shop|Not safe: namespace shop)",
        why_not=r"namespace shop( is safe)?\s+\S.*\S",
        what_is_the_last_good_backup=rf"Last good backup: {_AGE} ago \(",
        when_is_the_next_run=r"Next run: .*04:00 UTC \(in \S+\), shop/nightly",
        has_a_restore_check_proven_it=r"No restore check has proven it",
        which_cluster_is_this=r"Cluster\s+\S+ \(127\.0\.0\.1:\d+\)",
        who_am_I=r"User\s+tenant-of-shop",
        which_namespace_is_this=r"Namespace shop",
        does_Velero_run=r"Velero\s+(up|unknown\s+whether Velero runs)",
        does_the_operator_run=r"Operator\s+up",
        how_old_is_this_page=r"As of\s+\d\d:\d\d:\d\d UTC",
        is_this_page_live=r"UTC\s+(not )?live",
        what_may_I_do_about_it=r"Back up now\s+Back up with options\s+Restore from a backup",
        what_was_backed_up_this_week=r"Time line[\s\S]*Backups[\s\S]*(complete|ended, not judged)",
        what_failed_this_week=r"incomplete",
        was_anything_restored_this_week=r"Restores[\s\S]*restore",
        what_is_planned=r"planned",
        how_far_can_I_look_back=r"Show a\s+day\s+week\s+month\s+quarter\s+year\s+years",
        how_do_I_do_this_in_a_terminal=r"The same in the terminal: foresail report",
        gaps=r"Gaps\s+No gaps found",
        what_failed=r"broken\s+PartiallyFailed[\s\S]*2 errors",
        what_waits_and_why=r"to-mine\s+shop\s+backup[\s\S]*LocationUnavailable",
        next_runs=r"Next runs[\s\S]*nightly\s+.*04:00",
    ),
    *of(
        ADMINISTRATOR,
        "Overview",
        (),
        is_everything_safe=r"(Not safe|At risk): \d of 4 namespaces",
        why_not=r"of 4 namespaces\s+\w+: \S.*",
        how_many_have_no_good_backup=r"3 without any good backup",
        how_many_runs_failed_this_week=r"1 run failed in the last 7 days",
        how_many_run_and_wait=r"\d running, \d waiting",
        which_namespace_is_the_worst=r"the worst first[\s\S]*bare\s+Not safe\s+.*no schedule covers namespace bare",
        what_do_I_do_about_the_worst=r"bare\s+Not safe\s[^\n]*never[\s\S]*?Protect",
        how_did_the_last_runs_go=r"last 14 runs",
        which_cluster_is_this=r"Cluster\s+\S+ \(127\.0\.0\.1:\d+\)",
        who_am_I=r"User\s+walking-administrator",
        does_Velero_run=r"Velero\s+up",
        does_the_operator_run=r"Operator\s+(down|not installed)",
        how_old_is_this_page=r"As of\s+\d\d:\d\d:\d\d UTC",
        gaps=r"bare\s+NoSchedule",
        what_failed=r"<broken>\s+PartiallyFailed[\s\S]*2 errors",
        what_waits_and_why=r"waits-here\s+shop\s+backup\s+New\s+n/a\s+not processed by the operator yet",
        next_runs=r"Next runs[\s\S]*velero-nightly\s+.*03:00",
    ),
    *of(
        TENANT,
        "Namespace",
        ("Namespace shop",),
        newest_good_backup=rf"Last good backup: {_AGE} ago \(<newest>",
        next_run=r"Next run: .*04:00 UTC \(in \S+\), shop/nightly",
        which_schedules_are_there=r"Schedules\s[\s\S]*nightly\s+0 4 \* \* \*",
        what_restores_were_there=r"Restores\s[\s\S]*Completed",
        quota_use=r"backups\s+<stored> of 20\s+active backups\s+0 of 9\s+restores\s+1 of 10",
    ),
    *of(
        TENANT,
        "A month",
        ("month",),
        what_will_be_deleted_this_month=r"Deletions",
        what_happened_this_month=r"The same as a table",
    ),
    *of(TENANT, "Years", ("years",), what_is_deleted_when=r"Deletions[\s\S]*will be deleted"),
    *of(TENANT, "Earlier", ("earlier",), was_there_anything_before=r"Time line[\s\S]*now"),
    *of(
        TENANT,
        "Backup",
        (_BACKUP,),
        how_long_is_it_kept=r"ended",
        is_it_complete=r"status\s+Completed",
        how_long_did_it_take=r"elapsed\s+\d+[sm]",
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
        "Back up with options",
        ("Namespace shop", "Back up with options"),
        what_would_it_write=r"Creates NonAdminBackup shop/console-\d{14}[\s\S]*kind: NonAdminBackup",
        can_I_choose_volumes=r"Data of volumes\s",
        which_command_does_it=r"foresail backup create console-\d{14} -n shop",
    ),
    *of(
        TENANT,
        "Change a schedule",
        ("Namespace shop", "Change nightly"),
        when_would_it_run_next_week=r"7 runs in the next 7 days[\s\S]*04:00 UTC",
        is_anything_written_yet=r"Nothing is written yet",
    ),
    *of(
        TENANT,
        "Restore wizard",
        ("Namespace shop", "Restore from a backup"),
        in_how_many_steps=r"Copy\s+What\s+Confirm",
        which_copy_is_incomplete=r"broken[\s\S]*PartiallyFailed",
        when_does_a_copy_expire=r"expires \d{4}-",
        choose_a_copy_on_a_time_line=r"Copies, the newest first\s[\s\S]*<newest>[\s\S]*broken[\s\S]*kept",
    ),
    *of(
        ADMINISTRATOR,
        "Protect",
        ("Protect ",),
        what_would_protect_write=r"Creates Schedule velero/bare-daily[\s\S]*includedNamespaces:\s+- bare",
        when_would_it_run=r"7 runs in the next 7 days",
        which_command_does_the_same=r"foresail schedule create bare-daily --schedule",
        has_anything_been_written=r"Nothing is written yet",
        how_do_I_get_out=r"Cancel",
    ),
    *of(
        ADMINISTRATOR,
        "Protection",
        ("Protection",),
        what_is_this_page_for=r"A ProtectionClass says when namespaces are backed up",
        what_is_the_first_step=r"The first step:\s+foresail protection preview",
    ),
    *of(
        ADMINISTRATOR,
        "New class",
        ("Protection", "Create a class"),
        whom_would_it_protect=r"ProtectionClass nightly has no namespaces: label some",
        when_would_it_run=r"7 runs in the next 7 days",
        what_would_it_write=r"kind: ProtectionClass\s[\s\S]*name: nightly",
        has_anything_been_written=r"Nothing is written yet",
        which_command_does_the_same=r"foresail protection preview -f FILE; kubectl create -f FILE",
    ),
    CLASS,
    *of(
        ADMINISTRATOR,
        "Namespace",
        ("shop$",),
        is_this_namespace_safe=r"(At risk|Not safe|Unknown)[^\n]*namespace shop",
        what_happened_this_week=r"Time line[\s\S]*Backups",
        what_do_administrators_have_of_it=r"Velero: Schedules and Backups of administrators",
    ),
    *of(
        ADMINISTRATOR,
        "Cancel",
        ("waits-here", "Cancel it"),
        can_what_waits_be_cancelled=r"Velero has not begun it, so no data is lost[\s\S]*deleteBackup: true",
        which_command_cancels=r"foresail backup delete waits-here -n shop",
    ),
    *of(
        ADMINISTRATOR,
        "Run a check",
        ("Checks", "Run "),
        what_does_a_check_do=r"Restores the newest backup into a fenced sandbox",
        which_command_runs_it=r"foresail check run proven -n velero",
        has_it_begun=r"Nothing is written yet",
    ),
    *of(
        FLEET,
        "Fleet",
        (),
        is_the_fleet_safe=r"Silent: 1 of 3 clusters",
        which_clusters_are_silent=r"silent-cluster\s+Silent",
        why_is_it_silent=r"silent-cluster\s+Silent\s+\S.*",
        which_clusters_are_not_safe=r"second\s+(Not safe|At risk)",
        how_many_namespaces_are_safe=r"second\s[^\n]*0 of 4",
        which_is_the_oldest_good_backup=r"oldest\s[\s\S]*second\s[^\n]*\d+[smh]",
        how_many_have_no_good_backup=r"no good backup\s[\s\S]*second\s[^\n]*\s3\s",
        did_a_check_fail=r"failed checks[\s\S]*second\s[^\n]*\s0\s",
        when_did_they_report=r"second\s[^\n]*\d+[sm] ago",
        how_do_I_open_the_console_of_one=r"foresail console --context second",
        where_do_the_figures_come_from=r"From 3 contexts of the kubeconfig, \d{4}-",
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
