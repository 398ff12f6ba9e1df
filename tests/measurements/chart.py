"""The chart of README.md: documents inserted per second under three indexes, while data outgrows memory.

There are two panels, because a server with its clients and a library in process do not compare. On the left is
Pando beside MongoDB over the wire, on the right Pando's engine beside RocksDB. The picture brings its own
background, so that it reads well on light and on dark pages.
"""

from html import escape

WIDTH, HEIGHT = 900, 380
TOP, BOTTOM, LEFT, PANEL, GAP = 84, 316, 64, 370, 66
COLOURS = {"pando": "#0b7a53", "mongodb": "#b3471d", "rocksdb": "#7a4fb5"}
# Points are means over this many stretches of the horizontal axis: single seconds hide the course.
STRETCHES = 40

STYLE = """text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#3b4248;font-size:13px}
.title{font-size:17px;font-weight:600;fill:#14181b}.panel{font-size:14px;font-weight:600;fill:#14181b}
.name{font-weight:600;font-size:14px}.line{fill:none;stroke-width:2.6;stroke-linejoin:round;stroke-linecap:round}
.grid{stroke:#e1e5e8}.axis{stroke:#9aa3aa}.mark{stroke:#5d676e;stroke-dasharray:5 4}"""


def panels(results):
    """The panels that there are raw results for: title, lines with colour and name, setup."""
    found = []
    if "timelines" in results.get("chart", {}):
        lines = results["chart"]["timelines"]
        setup = results["chart"]["setup"]
        is_cut_short = "mongodb" in lines and lines["mongodb"][-1][0] < 0.9 * setup["documents_max"]
        mongodb = f"MongoDB (stopped after {setup['seconds_max']} s)" if is_cut_short else "MongoDB"
        named = [(key, name, lines[key]) for key, name in (("pando", "Pando"), ("mongodb", mongodb)) if key in lines]
        found.append(("Server: 4 clients over the wire", named, setup))
    engines = next((name for name in ("inserts", "engines") if "timelines" in results.get(name, {})), None)
    if engines:
        lines = results[engines]["timelines"]
        named = [
            (colour, name, lines[key])
            for key, name, colour in (("betree", "Pando's engine", "pando"), ("rocksdb", "RocksDB", "rocksdb"))
            if key in lines
        ]
        found.append(("Engine: in process, no server", named, results[engines]["setup"]))
    return [panel for panel in found if panel[1]]


def smooth(points, last):
    """Means of the rate over equal stretches of documents, weighted by time."""
    step, smoothed, begun, seconds = last / STRETCHES, [(0, points[0][1])], 0, 0.0
    previous = 0
    for documents, rate in points:
        seconds += (documents - previous) / rate if rate else 1.0
        previous = documents
        if documents - begun >= step:
            smoothed.append(((begun + documents) / 2, (documents - begun) / seconds))
            begun, seconds = documents, 0.0
    return smoothed


def megabytes(size):
    return f"{size >> 20} MiB" if size % (1 << 20) == 0 else f"{size / 1e6:g} MB"


def nice(value):
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    power = 10 ** (len(str(int(value))) - 1)
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value)


def picture(results):
    """The picture as SVG; nothing without raw results."""
    found = panels(results)
    if not found:
        return None
    # One scale for both panels: the eye compares heights.
    smoothed = [
        (
            title,
            [(key, name, smooth(points, max(line[-1][0] for _, _, line in lines))) for key, name, points in lines],
            setup,
        )
        for title, lines, setup in found
    ]
    top = nice(max(rate for _, lines, _ in smoothed for _, _, points in lines for _, rate in points))
    width = LEFT + len(found) * PANEL + (len(found) - 1) * GAP + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" role="img" '
        f'aria-label="Documents inserted per second while the data outgrows the memory">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{HEIGHT}" rx="8" fill="#ffffff" stroke="#d5dade"/>',
        f'<text class="title" x="20" y="32">Inserts with three indexes while the data outgrows the memory</text>',
    ]
    for place, (title, lines, setup) in enumerate(smoothed):
        parts += panel_parts(LEFT + place * (PANEL + GAP), top, title, lines, setup)
    return "\n".join(parts + ["</svg>"]) + "\n"


def panel_parts(left, top, title, lines, setup):
    last = max(points[-1][0] for _, _, points in lines)
    across = lambda documents: left + documents / last * PANEL
    down = lambda rate: BOTTOM - rate / top * (BOTTOM - TOP)
    cache, cap = megabytes(setup["cache_bytes"]), megabytes(setup["cap_bytes"])
    parts = [
        f'<text class="panel" x="{left}" y="{TOP - 31}">{escape(title)}</text>',
        f'<text x="{left}" y="{TOP - 15}">each with a cache of {cache} and a memory cap of {cap}</text>',
    ]
    for step in range(6):
        rate = top * step / 5
        parts.append(
            f'<line class="{"axis" if step == 0 else "grid"}" x1="{left}" x2="{left + PANEL}" y1="{down(rate):.1f}" y2="{down(rate):.1f}"/>'
        )
        parts.append(f'<text x="{left - 8}" y="{down(rate) + 4:.1f}" text-anchor="end">{rate / 1000:g} k</text>')
    parts += bottom_parts(left, last, across)
    parts += mark_parts(across, last, setup)
    for key, name, points in lines:
        path = " ".join(
            f"{'M' if place == 0 else 'L'}{across(documents):.1f} {down(rate):.1f}"
            for place, (documents, rate) in enumerate(points)
        )
        parts.append(f'<path class="line" stroke="{COLOURS[key]}" d="{path}"/>')
    ends = [(across(points[-1][0]), down(points[-1][1])) for _, _, points in lines]
    parts += [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[key]}"/>' for (key, _, _), (x, y) in zip(lines, ends)
    ]
    for key, name, points in lines:
        x, y, anchor = label_place([(across(documents), down(rate)) for documents, rate in points], left, len(name) * 8)
        parts.append(
            f'<text class="name" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="fill:{COLOURS[key]}">{escape(name)}</text>'
        )
    return parts


def bottom_parts(left, last, across):
    """Ticks of the horizontal axis."""
    step = nice(last / 6)
    parts = []
    documents = 0
    while documents <= last:
        parts.append(
            f'<text x="{across(documents):.1f}" y="{BOTTOM + 20}" text-anchor="middle">{documents / 1e6:g}</text>'
        )
        documents += step
    parts.append(
        f'<text x="{left + PANEL / 2}" y="{BOTTOM + 44}" text-anchor="middle">million documents inserted (vertical: documents per second)</text>'
    )
    return parts


def mark_parts(across, last, setup):
    """Where the documents alone, without their indexes, are as large as the cache."""
    documents = setup["cache_bytes"] / setup["document_bytes"]
    if documents > last:
        return []
    x = across(documents)
    return [
        f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{BOTTOM}"/>',
        f'<text x="{x + 5:.1f}" y="{TOP + 2}">documents = cache</text>',
    ]


def label_place(points, left, width):
    """Place and anchor of a name: behind a line that ends early, else above the last part of the line."""
    x, y = points[-1]
    if x < left + PANEL / 2:
        return x + 10, min(y + 4, BOTTOM - 8), "start"
    beneath = [height for place, height in points if x - width - 8 <= place <= x]
    return x, max(min(beneath) - 9, TOP + 18), "end"
