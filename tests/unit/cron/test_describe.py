import pytest

from foresail.cron import Dialect, parse


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * * *", "every minute, every day (UTC)"),
        ("*/15 * * * *", "every 15 minutes, every day (UTC)"),
        ("0 * * * *", "every hour, on the hour, every day (UTC)"),
        ("5 * * * *", "every hour, at minute 5, every day (UTC)"),
        ("0 3 * * *", "at 03:00, every day (UTC)"),
        ("0,30 3,15 * * *", "at 03:00, 03:30, 15:00 and 15:30, every day (UTC)"),
        ("*/15 8-18 * * 1-5", "every 15 minutes in the hours 08 to 18, every Monday to Friday (UTC)"),
        ("7 */2 * * *", "at minute 7 in every 2nd hour from midnight, every day (UTC)"),
        ("0 0 1,2,15 * *", "at 00:00, on the 1st, 2nd and 15th (UTC)"),
        ("0 0 * 1-3,6 SAT,SUN", "at 00:00, every Sunday and Saturday in January to March and June (UTC)"),
        ("CRON_TZ=Asia/Tokyo 0 9 23 11 *", "at 09:00, on the 23rd in November (Asia/Tokyo)"),
        ("0 0 31 2 *", "never: none of its months has such a day"),
        ("@every 1h", "every hour, counted from the last run"),
        ("@every 26h0m5s", "every 1 day, 2 hours and 5 seconds, counted from the last run"),
    ],
)
def test_a_schedule_is_described_in_plain_words(text: str, words: str) -> None:
    assert parse(text).describe() == words


@pytest.mark.parametrize(
    ("text", "robfig", "gocron"),
    [
        ("0 0 13 * FRI", "on the 13th and also every Friday", "on the 13th if that is a Friday"),
        ("0 0 1-31 * 1", "every day", "every Monday"),
        (
            "0 0 1-7 * 1,2",
            "on the 1st to 7th and also every Monday and Tuesday",
            "on the 1st to 7th if that is a Monday or Tuesday",
        ),
    ],
)
def test_the_description_shows_how_the_dialect_joins_the_days(text: str, robfig: str, gocron: str) -> None:
    assert parse(text, Dialect.ROBFIG).describe() == f"at 00:00, {robfig} (UTC)"
    assert parse(text, Dialect.GOCRON).describe() == f"at 00:00, {gocron} (UTC)"


def test_what_waits_to_be_triggered_says_so() -> None:
    assert parse("@manual", Dialect.GOCRON).describe() == "never by itself: only when triggered by hand"
