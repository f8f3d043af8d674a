"""What users once found wrong with the command line, and the tests that keep it right."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CLI = "tests/unit/cli"
FINDINGS = {
    "doctor while the API server is down": [
        f"{CLI}/test_usage.py::test_the_doctor_says_in_one_line_that_the_api_server_is_down"
    ],
    "create -o yaml without a cluster": [
        f"{CLI}/test_primer_create.py::test_a_manifest_needs_no_cluster",
        f"{CLI}/test_tenant_create.py::test_a_manifest_needs_no_cluster",
        f"{CLI}/test_schedule_create.py::test_a_manifest_needs_no_cluster",
        f"{CLI}/test_usage.py::test_a_template_of_what_would_be_created_needs_no_cluster",
    ],
    "any cluster command without a kubeconfig": [
        f"{CLI}/test_usage.py::test_without_a_kubeconfig_a_command_says_so_in_our_words",
        f"{CLI}/test_usage.py::test_a_kubeconfig_that_names_no_cluster_is_named_with_what_it_lacks",
    ],
    "cron check x -o json": [
        f"{CLI}/test_cron_exit_codes.py::test_check_of_an_invalid_schedule_as_json_says_so_and_fails"
    ],
    "cron shift without an exact answer": [
        f"{CLI}/test_cron_exit_codes.py::test_shift_of_an_interval_is_an_error",
        f"{CLI}/test_cron_exit_codes.py::test_an_inexact_shift_prints_the_nearest_and_fails",
    ],
    "cron between of a schedule that never fires": [
        f"{CLI}/test_cron_exit_codes.py::test_between_fails_as_next_does_if_a_schedule_never_fires"
    ],
    "cron next with a count that is no number": [
        f"{CLI}/test_cron_exit_codes.py::test_a_count_that_is_no_number_is_named",
        f"{CLI}/test_usage.py::test_no_command_answers_a_value_with_the_name_of_one_of_our_functions",
    ],
    "cron explain: a false note about both day fields": [
        f"{CLI}/test_cron_exit_codes.py::test_explain_notes_day_fields_only_where_they_surprise"
    ],
    "a misspelt option or command": [
        f"{CLI}/test_usage.py::test_a_misspelt_word_brings_a_suggestion_and_the_usage_of_its_command"
    ],
    "PYTHONIOENCODING=ascii": [f"{CLI}/test_cron_exit_codes.py::test_a_stream_for_ascii_gets_ascii"],
    "abbreviations such as --out": [f"{CLI}/test_usage.py::test_no_command_takes_an_abbreviated_option"],
    "restore create --existing-resource-policy foo": [
        f"{CLI}/test_tenant_create.py::test_an_unknown_existing_resource_policy_is_refused"
    ],
    "tables wider than 80 columns": [
        f"{CLI}/test_schedule_shown.py::test_the_table_fits_80_columns_and_never_loses_why_one_waits",
        f"{CLI}/test_tenant.py::test_the_table_of_requests_fits_80_columns_and_never_loses_why",
        f"{CLI}/test_primer_objects.py::test_the_default_table_fits_80_columns_and_wide_has_the_rest",
        f"{CLI}/test_primer_suggest.py::test_the_table_shows_worth_and_cost_in_80_columns",
    ],
    "schedule get with the location unavailable before the run": [
        f"{CLI}/test_schedule_shown.py::test_what_would_block_the_next_run_is_shown_before_it_is_due"
    ],
    "Ctrl-C at Delete …? [y/N]": [
        f"{CLI}/test_prompt.py::test_ctrl_c_at_the_prompt_ends_the_command_and_nothing_is_deleted"
    ],
    "backup create: no CRDs, wrong namespace, wrong or missing name": [
        f"{CLI}/test_tenant_create.py::test_a_missing_kind_and_a_missing_namespace_are_told_apart_from_a_missing_object",
        f"{CLI}/test_tenant_create.py::test_a_wrong_or_missing_name_is_one_line_and_a_hint",
        f"{CLI}/test_tenant_create.py::test_whoever_may_not_create_is_asked_about_the_namespace_too",
    ],
    "--include-resources clusterroles": [
        f"{CLI}/test_tenant_create.py::test_cluster_scoped_kinds_alone_are_refused",
        f"{CLI}/test_tenant_create.py::test_cluster_scoped_kinds_beside_others_are_named",
    ],
    "--wait at position 1 while Velero is busy": [
        f"{CLI}/test_tenant.py::test_nothing_is_before_a_request_that_is_the_next_to_run",
        f"{CLI}/test_tenant.py::test_the_bar_shows_the_place_in_the_queue_and_then_the_items",
    ],
    "simulate, calendar: durations, length, pile-ups, bold": [
        f"{CLI}/test_schedule_simulation.py::test_how_late_a_run_is_and_how_long_backups_take_reads_like_a_duration",
        f"{CLI}/test_schedule_simulation.py::test_a_week_is_summed_up_in_one_line_for_each_schedule",
        f"{CLI}/test_schedule_calendar.py::test_pile_ups_of_the_same_schedules_are_one_line",
        f"{CLI}/test_schedule_calendar.py::test_today_is_bold_and_no_other_day",
        f"{CLI}/test_cron_exit_codes.py::test_bold_means_today_in_a_picture",
    ],
    "explain a b c in another order": [
        f"{CLI}/test_schedule_shown.py::test_schedules_are_shown_in_the_order_in_which_they_are_named"
    ],
    "primer create of one that holds nothing; suggest sets allowStanding": [
        f"{CLI}/test_primer_create.py::test_a_primer_that_would_hold_nothing_is_refused_unless_forced",
        f"{CLI}/test_primer_suggest.py::test_a_standing_reservation_is_left_out_unless_it_is_allowed",
    ],
    "policy test: minimum above maximum, unknown locations": [
        f"{CLI}/test_policy.py::test_bounds_that_leave_nothing_between_them_are_found",
        f"{CLI}/test_policy.py::test_locations_that_do_not_exist_are_found",
    ],
    "kubectl get and delete of our kinds": [
        "tests/unit/api/test_crds.py::test_wide_tables_show_the_reasons",
        "tests/cluster/test_selfservice_admission.py::test_a_plain_delete_warns_that_it_waits_for_a_decision",
    ],
    "uninstall --crds": [
        f"{CLI}/test_install.py::test_kinds_are_deleted_only_if_somebody_confirms",
        f"{CLI}/test_install.py::test_after_its_end_uninstall_says_which_kinds_stay",
    ],
    "hints that send people to kubectl": [
        f"{CLI}/test_findings.py::test_no_hint_names_kubectl_where_a_foresail_command_exists",
        f"{CLI}/test_schedule_messages.py::test_a_refusal_names_the_object_the_cause_and_what_to_do",
    ],
    "-n with two meanings": [f"{CLI}/test_usage.py::test_options_that_name_a_cluster_have_one_meaning"],
    "options that differ from verb to verb": [
        f"{CLI}/test_usage.py::test_verbs_that_print_objects_take_the_same_options",
        f"{CLI}/test_usage.py::test_every_verb_that_writes_has_both_dry_runs",
        f"{CLI}/test_dry_run.py::test_changes_can_be_tried_by_the_client_and_by_the_server",
    ],
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_each_finding_has_its_tests(finding: str) -> None:
    assert FINDINGS[finding]
    for each in FINDINGS[finding]:
        file, _, name = each.partition("::")
        defined = {node.name for node in ast.parse((ROOT / file).read_text()).body if isinstance(node, ast.FunctionDef)}
        assert name in defined, each


KINDS = "schedules?|nonadminbackups?|nab|nonadminrestores?|nar|primers?|selfservicepolic(?:y|ies)|ssp"
NEEDLESS = re.compile(rf"kubectl (?:get|describe|delete|create) (?:{KINDS}|\{{kind\}})\b")


def test_no_hint_names_kubectl_where_a_foresail_command_exists() -> None:
    assert NEEDLESS.search("see kubectl get schedules -A")
    source = ROOT / "src" / "foresail"
    found = {str(file.relative_to(source)): NEEDLESS.findall(file.read_text()) for file in source.rglob("*.py")}
    assert {name: hits for name, hits in found.items() if hits} == {}
