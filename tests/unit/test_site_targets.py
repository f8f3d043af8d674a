"""Links of the built site lead somewhere, those of alerts and reasons from outside of it too."""

from pathlib import Path

from docs.generate import metrics, reasons
from docs.site_targets import REASONS, RUNBOOKS, dead, main


def site(folder: Path, page: str = "<p>text</p>") -> Path:
    """Return a folder with the pages that others link to, and one more."""
    (folder / REASONS).parent.mkdir(parents=True)
    (folder / RUNBOOKS).write_text("".join(f'<h2 id="{rule["alert"].lower()}">' for rule in metrics.alerts()))
    (folder / REASONS).write_text("".join(f'<a id="{each}">' for each in reasons.anchors()))
    (folder / "page.html").write_text(page)
    return folder


def test_a_site_whose_links_lead_somewhere_passes(tmp_path: Path) -> None:
    assert main(site(tmp_path, '<a href="#top" id="top">top</a> <a id="here"></a>')) == 0


def test_an_empty_link_is_named_with_its_page(tmp_path: Path) -> None:
    site(tmp_path, '<a href="">here</a> <a href>there</a> <a href="#">folder</a>')
    assert list(dead(tmp_path)) == ["page.html has 3 links to nothing"]
    assert main(tmp_path) == 1


def test_an_alert_without_a_runbook_and_a_reason_without_an_anchor_are_named(tmp_path: Path) -> None:
    (site(tmp_path) / RUNBOOKS).write_text("<h2>Alerts</h2>")
    (tmp_path / REASONS).unlink()
    found = list(dead(tmp_path))
    assert f"{RUNBOOKS} has no anchor foresailstorestale" in found
    assert f"{REASONS} has no anchor schedules-concurrencylimit" in found
    assert len(found) == len(metrics.alerts()) + len(reasons.anchors())


def test_no_two_reasons_share_an_anchor() -> None:
    assert len(set(reasons.anchors())) == len(reasons.anchors()) > 100
