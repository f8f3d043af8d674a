"""What holds for every test of this project."""

import signal
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does; only tests marked `timed` measure time.
settings.register_profile("without-time", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("without-time")

_figures = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_figures] = []
    # A job in the background of a script is started deaf to Ctrl-C, and so would be every process that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Take a sentence with a measured figure, and print it at the end of the run whatever is captured."""
    return request.config.stash[_figures].append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[_figures]:
        terminalreporter.section("figures measured in this run")
        for line in config.stash[_figures]:
            terminalreporter.write_line(line)
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} skipped: here a skipped test is a failing test", red=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped") and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
