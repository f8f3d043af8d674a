"""A line of text in a picture: `docs/draw_*.py` share it."""


def svg_text(
    at: tuple[float, float], text: str, size: int, colour: str, *, weight: int = 400, anchor: str = "start"
) -> str:
    """Return an SVG text element."""
    x, y = at
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{text}</text>'
    )
