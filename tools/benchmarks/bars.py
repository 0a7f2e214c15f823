"""The picture of the scans, drawn from the table of the page on reading speed.

    python -m tools.benchmarks.bars

A phone shows it in a column's width, and a page with dark colours in dark colours. So it is written
as text, with a style of its own.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from tools.benchmarks.interleaved import Ratio
from tools.marks import Marks

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "contributors" / "measured" / "reading-speed.md"
PICTURE = DOCS / "images" / "scans.svg"
MARKS = Marks("<!-- scans: written by make bench -->", "<!-- end of scans -->")

Scans = Mapping[str, tuple[Ratio, Ratio]]
"""How many times as fast as the peer a scan is, by its name: without the extra `fast`, and with."""

_RATIO = re.compile(r"([\d.]+) \(([\d.]+)-([\d.]+)\)")
_WIDTH, _TOP, _ROW, _BAR, _LEFT, _TIMES = 420, 64, 36, 12, 168, 52
_STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328; }
    .back { fill: #ffffff; }
    .plain { fill: #6ea4d8; }
    .fast { fill: #2463a4; }
    .spread { stroke: #1f2328; }
    .peer { stroke: #b4532a; stroke-width: 1.5; stroke-dasharray: 4 3; }
    .name { fill: #b4532a; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e2e4e9; }
      .back { fill: #1e2129; }
      .plain { fill: #4f86bd; }
      .fast { fill: #8cc1f5; }
      .spread { stroke: #e2e4e9; }
      .peer { stroke: #f0956b; }
      .name { fill: #f0956b; }
    }
  """


def scans(page: Path = PAGE) -> Scans:
    """Return the ratios of the page's table."""
    _, table, _ = MARKS.split(page)
    rows = (re.split(r" *\| *", line) for line in table.splitlines() if line.startswith("| "))
    head, *others = rows
    plain, fast = head.index("plain x"), head.index("fast x")
    return {cells[1]: (_ratio(cells[plain]), _ratio(cells[fast])) for cells in others}


def _ratio(cell: str) -> Ratio:
    found = _RATIO.fullmatch(cell)
    assert found, cell
    return Ratio(*map(float, found.groups()))


def picture(found: Scans) -> str:
    """Return the picture: two bars for each scan, and a line where the peer is."""
    height = _TOP + _ROW * len(found) + 4
    peer = _LEFT + _TIMES
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}"'
        f' width="{_WIDTH}" height="{height}" role="img">',
        "  <title>How many times as fast as Spark's own connector each scan is</title>",
        f"  <style>{_STYLE}</style>",
        f'  <rect class="back" width="{_WIDTH}" height="{height}" rx="8"/>',
        '  <rect class="plain" x="10" y="14" width="12" height="12"/>',
        '  <text x="28" y="25">format("pykafka")</text>',
        f'  <rect class="fast" x="{_LEFT}" y="14" width="12" height="12"/>',
        f'  <text x="{_LEFT + 18}" y="25">with the extra fast</text>',
        f'  <text class="name" x="{peer}" y="48" text-anchor="middle">format("kafka") = 1</text>',
    ]
    for at, (name, ratios) in enumerate(found.items()):
        lines += _row(name, ratios, _TOP + _ROW * at)
    lines.append(f'  <path class="peer" d="M{peer} 54V{height - 6}"/>')
    return "\n".join([*lines, "</svg>", ""])


def _row(name: str, ratios: tuple[Ratio, Ratio], top: int) -> Iterator[str]:
    first, _, second = name.partition(" B, ")
    if second:
        yield f'  <text x="10" y="{top + 10}">{escape(first)} B</text>'
        yield f'  <text x="10" y="{top + 25}">{escape(second)}</text>'
    else:
        yield f'  <text x="10" y="{top + 17}">{escape(name)}</text>'
    for kind, y, ratio in zip(("plain", "fast"), (top, top + 13), ratios, strict=True):
        least, end, most = (
            round(_TIMES * each) for each in (ratio.least, ratio.median, ratio.most)
        )
        middle = y + _BAR // 2
        yield f'  <rect class="{kind}" x="{_LEFT}" y="{y}" width="{end}" height="{_BAR}"/>'
        yield f'  <path class="spread" d="M{_LEFT + least} {middle}H{_LEFT + most}"/>'
        yield f'  <text x="{_LEFT + most + 5}" y="{y + 11}">{ratio.median:.1f}</text>'


def draw(page: Path = PAGE) -> None:
    """Draw the picture anew."""
    PICTURE.write_text(picture(scans(page)))


if __name__ == "__main__":
    draw()
