"""The site fetches nothing from other servers when it is read."""

from pathlib import Path

import pytest

from docs.external_assets import external_assets, main


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.html", '<script src="https://x.example/a.js"></script>', ["https://x.example/a.js"]),
        ("a.html", '<link rel="stylesheet" href="//x.example/a.css">', ["//x.example/a.css"]),
        ("a.html", '<link rel="preconnect" href="https://x.example">', ["https://x.example"]),
        ("a.html", '<p style="background: url(http://x.example/a.png)">', ["http://x.example/a.png"]),
        ("a.html", "<style>@import 'https://x.example/a.css'</style>", ["https://x.example/a.css"]),
        ("a.html", '<img src="HTTPS://x.example/a.png">', ["HTTPS://x.example/a.png"]),
        ("a.html", '<pre class="mermaid"></pre>', ["mermaid"]),
        ("a.css", '@font-face { src: url("https://x.example/a.woff2") }', ["https://x.example/a.woff2"]),
        ("a.html", '<a href="https://velero.io">Velero</a> <link rel="canonical" href="https://x.example">', []),
        ("a.html", '<script src="../assets/a.js"></script> <link rel="icon" href="favicon.svg">', []),
        ("a.css", "a { background: url(data:image/svg+xml,abc) }", []),
    ],
)
def test_what_a_browser_fetches_is_found_and_links_are_not(name: str, text: str, expected: list[str]) -> None:
    assert external_assets(name, text) == expected


def test_a_site_that_fetches_something_fails_and_so_does_one_without_pages(tmp_path: Path) -> None:
    assert main(tmp_path) == 1
    (tmp_path / "index.html").write_text("<p>Nothing is fetched.</p>")
    assert main(tmp_path) == 0
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "page.html").write_text('<script src="https://x.example/a.js"></script>')
    assert main(tmp_path) == 1
