"""A scatter plot of predicted over published step times, as SVG: both axes logarithmic, with the diagonal and a band
of 12 % around it."""

import html
import math
import pathlib

SIZE, MARGIN, BAND = 480, 56, 0.12


def scatter(path: pathlib.Path, title: str, points: list) -> None:
    """`points`: (label, published, predicted) in seconds, all above 0."""
    values = [value for _, *pair in points for value in pair]
    low, high = math.log10(min(values)) - 0.1, math.log10(max(values)) + 0.1

    def at(value: float) -> float:
        return (math.log10(value) - low) / (high - low) * (SIZE - 2 * MARGIN)

    def x(value: float) -> float:
        return MARGIN + at(value)

    def y(value: float) -> float:
        return SIZE - MARGIN - at(value)

    ends = (10**low, 10**high)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIZE}" height="{SIZE}" font-family="sans-serif" '
             'font-size="11">',
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{SIZE / 2}" y="22" text-anchor="middle" font-size="13">{html.escape(title)}</text>',
             f'<clipPath id="frame"><rect x="{MARGIN}" y="{MARGIN}" width="{SIZE - 2 * MARGIN}" '
             f'height="{SIZE - 2 * MARGIN}"/></clipPath>']
    corners = [(ends[0], ends[0] * (1 - BAND)), (ends[0], ends[0] * (1 + BAND)), (ends[1], ends[1] * (1 + BAND)),
               (ends[1], ends[1] * (1 - BAND))]
    lines.append('<g clip-path="url(#frame)"><polygon fill="#e4ecf7" points="'
                 f'{" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in corners)}"/>'
                 f'<line x1="{x(ends[0]):.1f}" y1="{y(ends[0]):.1f}" x2="{x(ends[1]):.1f}" y2="{y(ends[1]):.1f}" '
                 'stroke="#557"/></g>')
    for tick in _ticks(low, high):
        label = f"{tick:g}"
        lines.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{SIZE - MARGIN}" y2="{SIZE - MARGIN + 4}" '
                     f'stroke="black"/><text x="{x(tick):.1f}" y="{SIZE - MARGIN + 17}" text-anchor="middle">{label}'
                     '</text>')
        lines.append(f'<line x1="{MARGIN - 4}" x2="{MARGIN}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="black"/>'
                     f'<text x="{MARGIN - 7}" y="{y(tick) + 4:.1f}" text-anchor="end">{label}</text>')
    lines.append(f'<rect x="{MARGIN}" y="{MARGIN}" width="{SIZE - 2 * MARGIN}" height="{SIZE - 2 * MARGIN}" '
                 'fill="none" stroke="black"/>')
    for label, published, predicted in points:
        lines.append(f'<circle cx="{x(published):.1f}" cy="{y(predicted):.1f}" r="3.5" fill="#c33" fill-opacity="0.6">'
                     f'<title>{html.escape(label)}: {published:.4g} s, predicted {predicted:.4g} s</title></circle>')
    lines.append(f'<text x="{SIZE / 2}" y="{SIZE - 14}" text-anchor="middle">published step, seconds</text>')
    lines.append(f'<text x="16" y="{SIZE / 2}" text-anchor="middle" transform="rotate(-90 16 {SIZE / 2})">'
                 'predicted step, seconds</text></svg>')
    path.write_text("\n".join(lines) + "\n")


def _ticks(low: float, high: float) -> list:
    """1, 2 and 5 times powers of ten in [10^low, 10^high]; powers alone where that is many."""
    factors = (1, 2, 5) if high - low < 2.5 else (1,)
    return [factor * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for factor in factors
            if low <= math.log10(factor * 10.0**power) <= high]
