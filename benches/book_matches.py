#!/usr/bin/env python3
"""Plays matches of an engine against itself, each side with another opening book, for docs/recommended-settings.md.

    cargo build --release
    python3 benches/book_matches.py games.pgn --out matches --pairs 1000 short wide-evals

Each row of the table is a match against the book of Debian's polyglot with its default options. A pair of games begins with
the same line of four half-moves, and exchanges the colors. Both sides play random moves of their books by weight, then the
engine plays with a fixed number of nodes. Games end early by the usual rules: both sides agree for four moves that one is six
pawns ahead, or for eight moves, from move 34 on, that the difference is at most a tenth of a pawn.

fastchess (https://github.com/Disservin/fastchess) runs the games. Each of `--jobs` processes plays an equal part of the pairs,
one game at a time, with its own seeds, so the same command plays the same games again on any machine. Books, evaluations and
games stay in `--out`, and a match that is there is not played again.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REFERENCE = "polyglot"

STRONG = "make-book {games} --min-elo 2400 --require-elo --duplicates once"
SHORT = STRONG + " --max-ply 24 --min-game 5"
WIDE = "make-book {games} --duplicates once --min-game 2"
PRUNE = "filter {all} --min-share 1 --reachable --out {book}"
EVALUATED = " --evals {evals} --max-loss 60"

# The commands that make each book. A command that makes {all} is followed by one that makes {book} from it.
BOOKS = {
    "short": [SHORT + " --bin {all}", PRUNE],
    "short-minimax": [SHORT + " --minimax --bin {all}", PRUNE],
    "short-minimax-max-loss": [SHORT + " --minimax --bin {all}", PRUNE + EVALUATED],
    "long-minimax": [STRONG + " --min-game 3 --minimax --bin {all}", PRUNE],
    "common": ["make-book {games} --duplicates once --min-game 3 --bin {book}"],
    "wide": [WIDE + " --bin {book}"],
    "wide-max-loss": [WIDE + " --bin {all}", "filter {all} --out {book}" + EVALUATED],
    "wide-both": [WIDE + " --bin {all}", "filter {all} --out {book} --weights both" + EVALUATED],
    "wide-evals": [WIDE + " --bin {all}", "filter {all} --out {book} --weights evals" + EVALUATED],
}
# The book whose positions are evaluated. Moves of other books that lead to other positions keep their weights.
EVALUATED_BOOK = "common"


def program(name):
    found = shutil.which(name, path=os.environ["PATH"] + ":/usr/games")
    return found or sys.exit(f"{name} is not installed")


def make(path, commands, **names):
    """Makes the file `path` with commands of polybook, unless it exists."""
    if os.path.exists(path):
        return path
    for command in commands:
        words = [word.format(**names) for word in command.split()]
        subprocess.run([names["polybook"], *words], check=True, stdout=subprocess.DEVNULL)
    return path


def book(name, args, files):
    path = os.path.join(args.out, f"{name}.bin")
    if name == REFERENCE:
        if not os.path.exists(path):
            command = [program("polyglot"), "make-book", "-pgn", args.games, "-bin", path]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=args.out)
        return path
    if any("{evals}" in command for command in BOOKS[name]):
        positions = book(EVALUATED_BOOK, args, files)
        evaluate = "evals --out {evals} --engine {engine} --nodes {eval_nodes} --jobs {jobs} --positions {positions}"
        make(files["evals"], [evaluate], positions=positions, **files)
    return make(path, BOOKS[name], book=path, all=os.path.join(args.out, f"{name}-all.bin"), **files)


def play(row, args, files):
    """Plays the match of a row and returns the path of its games."""
    path = os.path.join(args.out, f"{row}-{args.nodes}.pgn")
    if os.path.exists(path):
        return path
    books = {row: book(row, args, files), REFERENCE: book(REFERENCE, args, files)}
    first = args.pairs // args.jobs
    pairs = [first + (job < args.pairs % args.jobs) for job in range(args.jobs)]
    running = []
    for job, rounds in enumerate(pairs):
        command = [program("fastchess")]
        for side, (name, file) in enumerate(books.items()):
            seed = args.seed + 1000 * job + side
            engine = f"engine {file} --play {args.play} --seed {seed} -- {files['engine']}"
            command += ["-engine", f"cmd={args.polybook}", f"name={name}", f"args={engine}"]
        part = f"{path}.{job}"
        command += f"-each tc=inf nodes={args.nodes} option.Hash=16 option.Threads=1".split()
        command += f"-openings file={files['lines']} format=pgn order=random -srand {args.seed + 1000 * job}".split()
        command += f"-rounds {rounds} -games 2 -repeat -concurrency 1 -maxmoves 200".split()
        command += "-resign movecount=4 score=600 twosided=true -draw movenumber=34 movecount=8 score=10".split()
        command += f"-pgnout file={part} append=false -log file={part}.log".split()
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=args.out))
    if any([process.wait() for process in running]):
        sys.exit(f"fastchess failed: see {path}.*.log")
    with open(path + ".part", "w") as whole:
        for job in range(args.jobs):
            with open(f"{path}.{job}") as part:
                # Rounds of the parts must differ, because the games of a pair are found by their round.
                for line in part:
                    whole.write(line.replace('[Round "', f'[Round "{job + 1}000', 1) if line.startswith("[Round ") else line)
    os.replace(path + ".part", path)
    return path


def report(row, path, args, files):
    """Prints a row of the table: games, wins, draws, losses, pairs by points, Elo with its 95 % interval, and LOS."""
    command = [args.polybook, "suite-report", files["lines"], path, "--first", row, "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    match = found["encounters"][0]
    results = "+{wins} ={draws} -{losses}".format(**match)
    pairs = " ".join(map(str, match["pentanomial"]))
    # A few games, or pairs that all end alike, do not determine Elo.
    elo, los = "unknown", "unknown"
    if None not in (match["elo"], match["elo_error"], match["los"]):
        elo, los = "{elo:+.1f} ± {elo_error:.1f}".format(**match), "{los:.1f} %".format(**match)
    print(f"| {row} | {found['games']} | {results} | {pairs} | {elo} | {los} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", type=os.path.abspath, help="the games from which all books are made, in PGN")
    parser.add_argument("rows", nargs="+", choices=list(BOOKS), metavar="ROW", help="books: " + ", ".join(BOOKS))
    parser.add_argument("--out", type=os.path.abspath, required=True, metavar="DIR")
    parser.add_argument("--polybook", default=os.path.join(ROOT, "target/release/polybook"), type=os.path.abspath)
    parser.add_argument("--engine", default="stockfish", help="a UCI engine, which must be deterministic")
    parser.add_argument("--nodes", type=int, default=2000, help="the nodes of the engine for a move")
    parser.add_argument("--eval-nodes", type=int, default=20000, help="the nodes for an evaluation of a position")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--play", default="weighted", choices=["weighted", "best", "uniform"])
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    files = {
        "games": args.games,
        "polybook": args.polybook,
        "engine": program(args.engine),
        "evals": os.path.join(args.out, f"{args.eval_nodes}.evals"),
        "lines": os.path.join(args.out, "lines.pgn"),
        "eval_nodes": args.eval_nodes,
        "jobs": args.jobs,
    }
    make(files["lines"], ["make-book {games} --duplicates once --suite {lines} --plies 4 --min-game 20"], **files)
    for row in args.rows:
        report(row, play(row, args, files), args, files)


if __name__ == "__main__":
    main()
