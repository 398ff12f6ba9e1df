"""The chart of docs/engines.md: transactions a second of each engine at three caches, on fast and on slow storage.

Each panel has a scale of its own, since storage of 400 requests a second makes other rates. Each line has its name at
its right end; names that would touch are moved apart. The picture brings its own background.
"""

from html import escape

import chart

WIDTH, HEIGHT = 1010, 400
TOP, BOTTOM, LEFT, PANEL, GAP = 84, 336, 64, 280, 222
NAME_HEIGHT = 18
CACHES = (64, 128, 256)
# Colours that people with colour blindness tell apart (Okabe and Ito, 2008), darkened for white ground.
ENGINES = (
    ("betree", "betree", "#0b7a53"),
    ("betree-as-b-tree", "betree as a B-tree", "#7fae9a"),
    ("rocksdb", "RocksDB", "#7a4fb5"),
    ("wiredtiger-lsm", "WiredTiger, LSM", "#b3471d"),
    ("wiredtiger-btree", "WiredTiger, B-tree", "#d08a00"),
    ("lmdb-heap", "LMDB, heap", "#3b6ea8"),
)
PANELS = (("Fast storage", ""), ("Slow storage: 400 requests and 20 MB a second", "-slow"))


def lines_of(figures, suffix):
    """Name, colour and rates of each engine that was measured at all caches."""
    for key, name, colour in ENGINES:
        names = [f"{key}.{cache}{suffix}.rate" for cache in CACHES]
        if all(figure in figures for figure in names):
            yield name, colour, [figures[figure]["median"] for figure in names]


def picture(results):
    """The picture as SVG; nothing without raw results."""
    figures = results.get("engine-matrix", {}).get("figures", {})
    panels = [(title, list(lines_of(figures, suffix))) for title, suffix in PANELS]
    panels = [(title, lines) for title, lines in panels if lines]
    if not panels:
        return None
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="Transactions a second of six engines with caches of 64, 128 and 256 MB, on fast and on slow storage">',
        f"<style>{chart.STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff" stroke="#d5dade"/>',
        '<text class="title" x="20" y="32">sysbench-mongodb over each engine of Pando, more data than cache</text>',
    ]
    for place, (title, lines) in enumerate(panels):
        parts += panel_parts(LEFT + place * (PANEL + GAP), title, lines)
    return "\n".join(parts + ["</svg>"]) + "\n"


def panel_parts(left, title, lines):
    top = chart.nice(max(rate for _, _, rates in lines for rate in rates))
    across = lambda place: left + 24 + place * (PANEL - 48) / (len(CACHES) - 1)
    down = lambda rate: BOTTOM - rate / top * (BOTTOM - TOP)
    parts = [f'<text class="panel" x="{left}" y="{TOP - 22}">{escape(title)}</text>']
    for step in range(6):
        rate = top * step / 5
        parts.append(
            f'<line class="{"axis" if step == 0 else "grid"}" x1="{left}" x2="{left + PANEL}" y1="{down(rate):.1f}" y2="{down(rate):.1f}"/>'
        )
        parts.append(f'<text x="{left - 8}" y="{down(rate) + 4:.1f}" text-anchor="end">{rate:g}</text>')
    for place, cache in enumerate(CACHES):
        parts.append(f'<text x="{across(place):.1f}" y="{BOTTOM + 20}" text-anchor="middle">{cache} MB</text>')
    parts.append(
        f'<text x="{left + PANEL / 2}" y="{BOTTOM + 44}" text-anchor="middle">cache (vertical: transactions per second)</text>'
    )
    for name, colour, rates in lines:
        points = [(across(place), down(rate)) for place, rate in enumerate(rates)]
        path = " ".join(f"{'L' if place else 'M'}{x:.1f} {y:.1f}" for place, (x, y) in enumerate(points))
        parts.append(f'<path class="line" stroke="{colour}" d="{path}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points]
    return parts + name_parts(left + PANEL + 4, [(down(rates[-1]), name, colour) for name, colour, rates in lines])


def name_parts(x, ends):
    """The names from above to below, each at the height of its line or right under the one before."""
    parts, free = [], TOP
    for y, name, colour in spread(sorted(ends)):
        y = max(y, free)
        free = y + NAME_HEIGHT
        parts.append(f'<text class="name" x="{x}" y="{y + 4:.1f}" style="fill:{colour}">{escape(name)}</text>')
    return parts


def spread(ends):
    """Moves names up so that those at the bottom stay within the panel."""
    moved, limit = [], BOTTOM
    for y, name, colour in reversed(ends):
        y = min(y, limit)
        limit = y - NAME_HEIGHT
        moved.append((y, name, colour))
    return list(reversed(moved))
