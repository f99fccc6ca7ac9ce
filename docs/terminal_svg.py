#!/usr/bin/env python3
"""Frames of a terminal, as `tmux capture-pane -e -p` prints them, to one SVG that shows them in turn.

    python3 docs/terminal_svg.py docs/demo.svg 1.5:first.txt 1.5:second.txt 6:last.txt

Before each colon stands how many seconds a frame is shown. The SVG loops; viewers without animation show the last frame.
"""

import html
import re
import sys

CELL, LINE, MARGIN = 8.4, 19, 16
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#76e3ea"}


def spans(line):
    """Runs of text of one style: column, text, attributes."""
    style, column = {}, 0
    for escape, text in re.findall(r"\x1b\[([0-9;]*)m|([^\x1b]+)", line):
        if text:
            # Not every viewer keeps runs of blanks, so each word group has a place of its own.
            for words in re.finditer(r"\S+(?: \S+)*", text):
                yield column + words.start(), words.group(), dict(style)
            column += len(text)
            continue
        for code in escape.split(";"):
            if code in ("", "0"):
                style.clear()
            elif code == "1":
                style["font-weight"] = "bold"
            elif code == "2":
                style["fill-opacity"] = "0.6"
            elif code in COLOURS:
                style["fill"] = COLOURS[code]
            elif code == "39":
                style.pop("fill", None)


def rows(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().rstrip("\n").split("\n")
    for row, line in enumerate(lines):
        for column, text, style in spans(line):
            attributes = "".join(f' {name}="{value}"' for name, value in style.items())
            x, y = MARGIN + column * CELL, MARGIN + 44 + row * LINE
            yield row, column + len(text), f'<text x="{x:.1f}" y="{y}"{attributes} textLength="{len(text) * CELL:.1f}">{html.escape(text)}</text>'


def main(out, *arguments):
    frames = [(float(seconds), list(rows(path))) for seconds, path in (argument.split(":", 1) for argument in arguments)]
    height = max(row for _, texts in frames for row, _, _ in texts) + 1
    columns = max(end for _, texts in frames for _, end, _ in texts)
    width, height = columns * CELL + 2 * MARGIN, height * LINE + 2 * MARGIN + 32
    total, at, parts, styles = sum(seconds for seconds, _ in frames), 0.0, [], []
    for number, (seconds, texts) in enumerate(frames):
        begin, end = at / total * 100, (at + seconds) / total * 100
        at += seconds
        last = number == len(frames) - 1
        keys = f"0%,{begin:.3f}%{{visibility:hidden}}{begin + 0.001:.3f}%,{end:.3f}%{{visibility:visible}}"
        keys += "" if last else f"{end + 0.001:.3f}%,100%{{visibility:hidden}}"
        if number == 0:
            keys = f"0%,{end:.3f}%{{visibility:visible}}{end + 0.001:.3f}%,100%{{visibility:hidden}}"
        styles.append(f"@keyframes f{number}{{{keys}}}#f{number}{{animation:f{number} {total:g}s step-end infinite}}")
        hidden = "" if last else ' visibility="hidden"'
        parts.append(f'<g id="f{number}"{hidden}>' + "\n".join(text for _, _, text in texts) + "</g>")
    dots = "".join(f'<circle cx="{20 + 18 * i}" cy="18" r="6" fill="{c}"/>' for i, c in enumerate(["#ff5f56", "#ffbd2e", "#27c93f"]))
    with open(out, "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}">\n'
            f'<title>opilio demo in a terminal</title>\n<style>text{{font:14px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;'
            f'fill:#e6edf3}}{"".join(styles)}</style>\n'
            f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>{dots}\n' + "\n".join(parts) + "\n</svg>\n"
        )


main(*sys.argv[1:])
