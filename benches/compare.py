#!/usr/bin/env python3
"""Measures whole commands of polybook against its peers and prints rows for the table of docs/performance.md.

    cargo build --profile dist --bins --examples
    python3 benches/compare.py games.pgn

A and B run in turn, several times, so that a machine whose speed drifts measures the same. A row has the median and the
range of the pairs' ratios. Peers that are not installed or given are left out: Debian's polyglot and pgn-extract, zstd, an
older polybook (`--before`). With `--check`, the run fails if a median is worse than the whole range of its row in
docs/performance.md. Use some ten thousand games at least; `synth_pgn` makes any number.
"""

import argparse
import json
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
DOCUMENT = os.path.join(ROOT, "docs/performance.md")
THREADS = "2"


class Run:
    """The resources that a run of a command used."""

    def __init__(self, command):
        # Replacing a large file takes longer than creating one, so remove it first.
        for output in ("a.bin", "b.bin", "a.obs.db3", "b.obs.db3"):
            if os.path.exists(output):
                os.remove(output)
        start = time.perf_counter()
        with open(os.devnull, "w") as null:
            process = subprocess.Popen(command, stdout=null, stderr=null)
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"failed: {' '.join(command)}")
        self.time = time.perf_counter() - start
        self.cpu = usage.ru_utime + usage.ru_stime
        self.peak = usage.ru_maxrss * 1024


def program(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/games")


def documented():
    """Returns the ranges in the table of the documentation, by the first three cells of each row."""
    row = re.compile(r"^\| (.+?) \| (.+?) \| (.+?) \| \**([\d.]+)\** \| ([\d.]+) to ([\d.]+) \|")
    with open(DOCUMENT) as document:
        found = filter(None, map(row.match, document))
        return {m.group(1, 2, 3): (float(m[5]), float(m[6])) for m in found}


class Table:
    """Measures and prints rows, and records which are worse than documented."""

    def __init__(self, runs):
        self.runs = runs
        self.documented = documented()
        self.worse = []
        print("| job | against | what | ratio | range | target |\n|---|---|---|---|---|---|", flush=True)

    def compare(self, job, a, against, b, what, target):
        """Returns the ratio of the times or CPU times of a and b, or of b and a if the target is a speed-up."""
        Run(b), Run(a)
        pairs = [(Run(a), Run(b)) for _ in range(self.runs)]
        ratios = [getattr(x, what) / getattr(y, what) for x, y in pairs]
        if target.startswith("at least"):
            ratios = [1 / ratio for ratio in ratios]
        self.row(job, against, what, ratios, target)

    def row(self, job, against, what, values, target):
        median, low, high = statistics.median(values), min(values), max(values)
        print(f"| {job} | {against} | {what} | {median:.2f} | {low:.2f} to {high:.2f} | {target} |", flush=True)
        least, most = self.documented.get((job, against, what), (0, float("inf")))
        higher_is_better = target.startswith("at least")
        if median < least if higher_is_better else median > most:
            self.worse.append(f"{job}, against {against}: {median:.2f}, documented {least} to {most}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pgn")
    parser.add_argument("--runs", type=int, default=7, help="how many pairs of each row (default: 7)")
    parser.add_argument("--polybook", default=os.path.join(ROOT, "target/dist/polybook"))
    parser.add_argument("--floor", default=os.path.join(ROOT, "target/dist/examples/floor"))
    parser.add_argument("--before", help="an older polybook")
    parser.add_argument("--synthetic", help="a million games of synth_pgn")
    parser.add_argument("--check", action="store_true", help="fail where a ratio is worse than documented")
    args = parser.parse_args()
    for path in (args.polybook, args.floor):
        if not os.path.exists(path):
            sys.exit(f"{path} is missing: cargo build --profile dist --bins --examples")
    for name in ("pgn", "polybook", "floor", "before", "synthetic"):
        if path := getattr(args, name):
            setattr(args, name, os.path.abspath(path))
    table = Table(args.runs)
    with tempfile.TemporaryDirectory(dir=".") as directory:
        os.chdir(directory)
        books(table, args)
        packed(table, args)
        before(table, args)
        databases(table, args)
        counts(table, args)
        memory(table, args)
        os.chdir("..")
    if args.check and table.worse:
        sys.exit("worse than documented:\n" + "\n".join(table.worse))


def make(polybook, pgn, *options, threads=THREADS):
    return [polybook, "make-book", "-q", "--threads", threads, *options, pgn]


EVERY = ("--min-game", "1", "--bin", "a.bin")


def books(table, args):
    book = make(args.polybook, args.pgn, *EVERY)
    one = make(args.polybook, args.pgn, *EVERY, threads="1")
    table.compare("book of every move", one, "bare replay", [args.floor, args.pgn, "1"], "cpu", "at most 1.0")
    if polyglot := program("polyglot"):
        theirs = [polyglot, "make-book", "-pgn", args.pgn, "-bin", "b.bin", "-min-game", "1"]
        table.compare("book of every move", book, "Debian polyglot", theirs, "time", "at least 25")
    if extract := program("pgn-extract"):
        table.compare("book of every move", book, "pgn-extract -r", [extract, "-r", "-s", args.pgn], "time", "at least 8")
    table.compare("two threads", book, "one thread", one, "time", "at least 1.7")


def packed(table, args):
    book = make(args.polybook, args.pgn, *EVERY)
    if zstd := program("zstd"):
        subprocess.run([zstd, "-q", args.pgn, "-o", "games.pgn.zst"], check=True)
        theirs = make(args.polybook, "games.pgn.zst", *EVERY)
        table.compare("book from .zst", theirs, "the plain file", book, "cpu", "at most 1.1")
    with open("eight.pgn", "wb") as eight:
        for _ in range(8):
            with open(args.pgn, "rb") as games:
                shutil.copyfileobj(games, eight)
    eightfold = make(args.polybook, "eight.pgn", *EVERY)
    table.compare("8 times the games", eightfold, "1 times", book, "time", "at most 8.2")
    os.remove("eight.pgn")


def before(table, args):
    if not args.before:
        return
    jobs = [
        ("book of every move", args.pgn, EVERY, "at most 1.0"),
        ("book, default options", args.pgn, ("--bin", "a.bin"), "at most 1.0"),
        ("index", args.pgn, ("--force", "--leveldb", "index"), "at most 0.45"),
        ("index with statistics", args.pgn, ("--force", "--leveldb", "index", "--index-stats"), "at most 0.23"),
    ]
    tight = (*EVERY, "--memory", "64MiB")
    jobs.append(("book of every move, 64 MiB", args.pgn, tight, "at most 1.0"))
    if args.synthetic:
        jobs.append(("a million synthetic games, every move", args.synthetic, EVERY, "at most 0.6"))
        jobs.append(("a million synthetic games", args.synthetic, ("--bin", "a.bin"), "at most 0.6"))
    for job, pgn, options, target in jobs:
        ours, theirs = make(args.polybook, pgn, *options), make(args.before, pgn, *options)
        table.compare(job, ours, "the version before", theirs, "cpu", target)


def databases(table, args):
    database = ("--obs", "a.obs.db3")
    book = make(args.polybook, args.pgn, *EVERY)
    default = make(args.polybook, args.pgn, "--bin", "a.bin")
    both = make(args.polybook, args.pgn, "--bin", "a.bin", *database)
    table.compare("book and OOBS, default options", both, "the book", default, "time", "at most 10")
    both = make(args.polybook, args.pgn, *EVERY, *database)
    table.compare("book and OOBS of every move", both, "the book", book, "time", "at most 5")
    table.compare("book and OOBS of every move", both, "the book", book, "cpu", "at most 5")
    if args.before:
        theirs = make(args.before, args.pgn, *EVERY, *database)
        table.compare("book and OOBS of every move", both, "the version before", theirs, "cpu", "at most 1.0")
    subprocess.run(make(args.polybook, args.pgn, "--min-game", "1", "--obs", "kept.obs.db3"), check=True)
    convert = [args.polybook, "convert", "-q", "kept.obs.db3", "b.bin", "--min-game", "1"]
    table.compare("book from OOBS", convert, "from the games", book, "time", "")
    lookups(table, "kept.obs.db3")


def counts(table, args):
    """Measures counts as Parquet: writing those of all games, and adding up those of seven parts."""
    book = make(args.polybook, args.pgn, "--bin", "a.bin")
    written = make(args.polybook, args.pgn, "--counts", "a.counts", "--force")
    table.compare("counts", written, "the book", book, "cpu", "at most 1.5")
    with open(args.pgn, "rb") as file:
        games = file.read()
    begins = [match.start() for match in re.finditer(rb"^\[Event ", games, re.MULTILINE)]
    cuts = [begins[len(begins) * part // 7] for part in range(7)] + [len(games)]
    for part in range(7):
        with open(f"{part}.pgn", "wb") as file:
            file.write(games[cuts[part] : cuts[part + 1]])
        subprocess.run(make(args.polybook, f"{part}.pgn", "--counts", f"{part}.counts"), check=True)
    added = make(args.polybook, "0.counts", "--bin", "a.bin") + [f"{part}.counts" for part in range(1, 7)]
    table.compare("book from seven counts", added, "from the games", book, "cpu", "at most 0.30")


def lookups(table, path):
    """Measures random look-ups of EPDs with Python's sqlite3."""
    db = sqlite3.connect(path)
    rows = db.execute("SELECT max(ID) FROM Book").fetchone()[0]
    choose = random.Random(1)
    ids = [choose.randint(1, rows) for _ in range(20_000)]
    epds = [db.execute("SELECT EPD FROM Book WHERE ID = ?", (i,)).fetchone()[0] for i in ids]
    rates = []
    for _ in range(table.runs):
        start = time.perf_counter()
        for epd in epds:
            db.execute("SELECT * FROM Book WHERE EPD = ?", (epd,)).fetchall()
        rates.append(len(epds) / (time.perf_counter() - start) / 1000)
    db.close()
    table.row("look-ups of an EPD in OOBS", "a second", "thousands", rates, "at least 20")


def memory(table, args):
    """Measures peak memory, compared with the size of the added-up counts and with the budget."""
    mebibyte = 1 << 20
    report = subprocess.run(make(args.polybook, args.pgn, *EVERY, "--json"), check=True, capture_output=True)
    records = 16 * json.loads(report.stdout)["entries"]
    peaks = [Run(make(args.polybook, args.pgn, *EVERY)).peak / records for _ in range(table.runs)]
    table.row("peak memory", "the counts", "memory", peaks, "at most 1.5")
    for budget in (64, 256) if args.synthetic else ():
        command = make(args.polybook, args.synthetic, *EVERY, "--memory", f"{budget}MiB")
        over = Run(command).peak / mebibyte - budget
        table.row(f"peak memory, --memory {budget}MiB", "the budget", "MiB over", [over], "at most 64")


main()
