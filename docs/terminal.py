#!/usr/bin/env python3
"""Draws docs/terminal.svg, the picture in the README, from what polybook really prints.

    cargo build --release
    python3 docs/terminal.py target/release/polybook > docs/terminal.svg

The text stays text, in whatever monospaced font the reader has; `textLength` keeps the columns in line.
tests/docs.rs runs the commands of the picture again and compares the output.
"""

import html
import os
import subprocess
import sys
import tempfile

COMMANDS = [
    "polybook make-book data/selfplay.pgn data/famous.pgn --leveldb games.idx --explorer --bin book.bin",
    'polybook show book.bin --moves "1. e4"',
    'polybook games --leveldb games.idx --moves "1. e4 e5 2. Nf3 d6"',
    'polybook moves --leveldb games.idx --moves "1. e4 e5 2. Nf3"',
]

COLUMN = 8.0  # pixels a character
LINE = 20  # pixels a line
MARGIN = 18
TITLE = 34

STYLE = """
  .window { fill: #ffffff; stroke: #c9d1d9; }
  .bar { fill: #eef1f4; }
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; fill: #24292f; }
  .prompt { fill: #1a7f37; }
  .command { font-weight: bold; }
  @media (prefers-color-scheme: dark) {
    .window { fill: #0d1117; stroke: #30363d; }
    .bar { fill: #161b22; }
    text { fill: #d0d7de; }
    .prompt { fill: #3fb950; }
  }
"""


def transcript(polybook):
    """The lines of the session: (is it a command, its text)."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.path.dirname(os.path.abspath(polybook)) + os.pathsep + os.environ["PATH"]
    with tempfile.TemporaryDirectory() as directory:
        os.symlink(os.path.join(root, "data"), os.path.join(directory, "data"))
        for command in COMMANDS:
            yield True, command
            run = subprocess.run(
                command,
                shell=True,
                check=True,
                cwd=directory,
                env={**os.environ, "PATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for line in run.stdout.splitlines():
                yield False, line.rstrip()


def draw(lines):
    columns = max(len(text) + 2 * command for command, text in lines)
    width = round(columns * COLUMN + 2 * MARGIN)
    height = TITLE + len(lines) * LINE + MARGIN
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    yield "<title>polybook makes a book and an index, then answers questions about them</title>"
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="window" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    yield f'<path class="bar" d="M1 {TITLE - 8} V9 a8 8 0 0 1 8 -8 H{width - 9} a8 8 0 0 1 8 8 V{TITLE - 8} Z"/>'
    for i, color in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        yield f'<circle cx="{MARGIN + 18 * i}" cy="{TITLE / 2 - 3}" r="5.5" fill="{color}"/>'
    for i, (command, text) in enumerate(lines):
        if not text:
            continue
        length = (len(text) + 2 * command) * COLUMN
        escaped = html.escape(text, quote=False)
        if command:
            escaped = f'<tspan class="prompt">$ </tspan><tspan class="command">{escaped}</tspan>'
        y = TITLE + i * LINE + 14
        yield f'<text x="{MARGIN}" y="{y}" textLength="{length:g}" xml:space="preserve">{escaped}</text>'
    yield "</svg>"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: terminal.py POLYBOOK > terminal.svg")
    print("\n".join(draw(list(transcript(sys.argv[1])))))


main()
