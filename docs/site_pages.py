"""A hook of mkdocs: how pages are shown. Front matter would appear as text wherever else the pages are read."""

from mkdocs.structure.pages import Page


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Show the front page without side columns, and let search prefer the pages for users."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc"]
    if page.file.src_uri.startswith("contributing/"):
        page.meta["search"] = {"boost": 0.3}
    return markdown
