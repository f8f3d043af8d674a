"""What is told of an object store's answer: the same each time, with the useful word first."""

import pytest

from foresail.schedules.storage_errors import cause_of

S3 = (
    'BackupStorageLocation "default" is unavailable: rpc error: code = Unknown desc = operation error S3: '
    "ListObjectsV2, https response error StatusCode: 404, RequestID: {0}, HostID: {1}, api error NoSuchBucket: The "
    "specified bucket does not exist"
)
TYPED = S3.replace("api error ", "")  # as the SDK words an error that it knows
AZURE = (
    "rpc error: code = Unknown desc = GET https://a.blob.core.windows.net/velero\n"
    "--------\nRESPONSE 404: 404 The specified container does not exist.\nERROR CODE: ContainerNotFound\n--------\n"
    "The specified container does not exist.\nRequestId:{0}\nTime:2026-11-16T04:00:{1}.1234567Z\n"
)
RESET = "Get https://s3: read tcp 10.0.0.5:4{1}1->10.0.0.9:9000: read: connection reset by peer, request id: {0}"


@pytest.mark.parametrize(
    ("message", "first"),
    [
        (S3, "NoSuchBucket: The specified bucket does not exist (BackupStorageLocation"),
        (TYPED, "NoSuchBucket: The specified bucket does not exist (BackupStorageLocation"),
        (AZURE, "ContainerNotFound: "),
        (RESET, "Get https://s3: read tcp->10.0.0.9:9000: read: connection reset by peer"),
    ],
)
def test_two_answers_to_the_same_problem_are_one_cause(message: str, first: str) -> None:
    one = cause_of(message.format("1868A1D5B1CF4D2A", "11"))
    assert one == cause_of(message.format("dd9025bab4ad464b049177c95eb6ebf374d3b3fd1af9251148b658df7ac2e3e8", "59"))
    assert one.startswith(first)
    assert "\n" not in one


def test_nothing_else_is_lost() -> None:
    expected = (
        "NoSuchBucket: The specified bucket does not exist "
        '(BackupStorageLocation "default" is unavailable: rpc error: code = Unknown desc = operation error S3: '
        "ListObjectsV2, https response error StatusCode: 404)"
    )
    assert cause_of(S3.format("1868A1D5B1CF4D2A", "")) == expected


@pytest.mark.parametrize("text", ["", "no such bucket", 'credential file "/tmp/x" does not exist', "api error : "])
def test_what_it_does_not_know_stays(text: str) -> None:
    assert cause_of(text) == text.strip()
