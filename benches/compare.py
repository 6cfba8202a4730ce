#!/usr/bin/env python3
"""Measures polybook against its peers, whole commands in turn, and prints a table in Markdown.

    cargo build --release --examples
    python3 benches/compare.py games.pgn

Peers that are not installed (Debian's polyglot and pgn-extract) are left out. Each pair of commands is
run in turn and the median of the ratios is printed, so that a machine whose speed drifts measures the
same. Use a file of some ten thousand games at least; `synth_pgn` makes one.
"""

import argparse
import os
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
POLYBOOK = os.path.join(ROOT, "target/release/polybook")
FLOOR = os.path.join(ROOT, "target/release/examples/floor")


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare(a, b, runs, output=None):
    """The medians of both times and of b's over a's, after a run of each that is not counted. An output is
    removed before each run: to replace a large one takes longer."""

    def fresh(command):
        if output and os.path.exists(output):
            os.remove(output)
        return seconds(command)

    fresh(b), fresh(a)
    pairs = [(fresh(a), fresh(b)) for _ in range(runs)]
    median = lambda values: statistics.median(list(values))
    return median(x for x, _ in pairs), median(y for _, y in pairs), median(y / x for x, y in pairs)


def program(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/games")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pgn")
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    for path in (POLYBOOK, FLOOR):
        if not os.path.exists(path):
            sys.exit(f"{path} is missing: cargo build --release --examples")
    pgn = os.path.abspath(args.pgn)
    threads = 2
    with tempfile.TemporaryDirectory(dir=".") as directory:
        os.chdir(directory)
        book = [POLYBOOK, "make-book", "-q", "--min-game", "1", "--threads", str(threads), "--bin", "a.bin"]
        print("| job, on two threads | against | seconds | against it | ratio | target |")
        print("|---|---|---|---|---|---|")

        def row(job, a, against, b, target, inverse=False, output=None):
            x, y, ratio = compare(a, b, args.runs, output)
            ratio = 1 / ratio if inverse else ratio
            print(f"| {job} | {against} | {x:.2f} | {y:.2f} | {ratio:.2f} | {target} |", flush=True)

        whole = book + [pgn]
        if polyglot := program("polyglot"):
            theirs = [polyglot, "make-book", "-pgn", pgn, "-bin", "b.bin", "-min-game", "1"]
            row("book of all plies", whole, "Debian polyglot", theirs, "at least 20")
        if extract := program("pgn-extract"):
            row("the same", whole, "pgn-extract -r", [extract, "-r", "-s", pgn], "at least 8")
        row("the same", whole, "the floor", [FLOOR, pgn, str(threads)], "at most 1.6", inverse=True)
        one = [POLYBOOK, "make-book", "-q", "--min-game", "1", "--threads", "1", "--bin", "b.bin", pgn]
        row("two threads", whole, "one thread", one, "at least 1.7")
        if zstd := program("zstd"):
            subprocess.run([zstd, "-q", pgn, "-o", "games.pgn.zst"], check=True)
            row("book from .zst", book + ["games.pgn.zst"], "the plain file", whole, "at most 1.25", inverse=True)
        with open("eight.pgn", "wb") as eight:
            for _ in range(8):
                with open(pgn, "rb") as games:
                    shutil.copyfileobj(games, eight)
        row("8 times the games", book + ["eight.pgn"], "1 times", whole, "at most 8.5", inverse=True)
        index = [POLYBOOK, "make-book", "-q", "--threads", str(threads), "--leveldb", "idx", "--force", pgn]
        row("index", index, "the book", whole, "at most 6", inverse=True)
        default = [POLYBOOK, "make-book", "-q", "--threads", str(threads), "--bin", "a.bin", pgn]
        output = "a.obs.db3"
        obs = ["--obs", output]
        row("book and OOBS, default options", default + obs, "the book", default, "at most 10", True, output)
        row("book and OOBS of every move", whole + obs, "the book", whole, "at most 10", True, output)
        subprocess.run([POLYBOOK, "make-book", "-q", "--min-game", "1", pgn] + obs, check=True)
        convert = [POLYBOOK, "convert", "-q", "a.obs.db3", "b.bin", "--min-game", "1"]
        row("book from OOBS", convert, "from the games", whole, "", inverse=True)
        lookups("a.obs.db3")
        probing()


def lookups(path):
    """Looking EPDs up at random with Python's sqlite3."""
    db = sqlite3.connect(path)
    rows = db.execute("SELECT max(ID) FROM Book").fetchone()[0]
    choose = random.Random(1)
    ids = [choose.randint(1, rows) for _ in range(20_000)]
    epds = [db.execute("SELECT EPD FROM Book WHERE ID = ?", (i,)).fetchone()[0] for i in ids]
    start = time.perf_counter()
    for epd in epds:
        db.execute("SELECT * FROM Book WHERE EPD = ?", (epd,)).fetchall()
    rate = len(epds) / (time.perf_counter() - start)
    print(f"| look-ups of an EPD in OOBS, one core | | | | {rate / 1000:.0f} K a second | at least 20 K |", flush=True)


def probing():
    """Random probes of an open book, from the benchmark of the parts."""
    command = ["cargo", "bench", "--manifest-path", os.path.join(ROOT, "Cargo.toml")]
    command += ["--bench", "parts", "--", "--quick", "probing"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rates = re.search(r"thrpt:\s+\[\S+ \S+ (\S+) (\S)elem/s", output)
    print(f"| random probes of an open book, one core | | | | {rates[1]} {rates[2]} a second | at least 1 M |")


main()
