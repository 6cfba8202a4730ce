"""Compares an OOBS database with an independent count of its games by python-chess.

obs_counts.py DB PGN [POSITIONS SEED]: all positions, or so many random ones.
"""

import io
import random
import sqlite3
import sys
from collections import defaultdict

import chess.pgn

database, pgn = sys.argv[1:3]
db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
wanted = None
if len(sys.argv) > 3:
    rows = db.execute("SELECT max(ID) FROM Book").fetchone()[0]
    generator = random.Random(int(sys.argv[4]))
    wanted = set()
    while len(wanted) < int(sys.argv[3]):
        row = generator.randint(1, rows)
        wanted.add(db.execute("SELECT EPD FROM Book WHERE ID = ?", (row,)).fetchone()[0])


def games(path):
    """Yields the games of a PGN whose first tag is Event, with the blank lines that python-chess expects."""
    text = []
    with open(path, encoding="latin-1") as lines:
        for line in lines:
            if line.startswith("[Event ") and text:
                yield chess.pgn.read_game(io.StringIO("".join(text)))
                text = []
            if line.strip():
                text.append(line if line.startswith("[") or not text[-1].startswith("[") else "\n" + line)
    yield chess.pgn.read_game(io.StringIO("".join(text)))


# The wins, draws and losses of the side to move.
POINTS = {"1-0": (0, 2), "0-1": (2, 0)}
expected = defaultdict(lambda: [0, 0, 0])
plies = 0
for game in games(pgn):
    assert not game.errors, game.errors
    board = game.board()
    result = game.headers["Result"]
    for move in game.mainline_moves():
        plies += 1
        epd = board.epd(en_passant="legal")
        if wanted is None or epd in wanted:
            column = POINTS[result][board.turn] if result in POINTS else 1
            expected[epd, move.uci()][2 - column] += 1
        board.push(move)

total = db.execute("SELECT sum(Win + Draw + Loss) FROM Book").fetchone()[0]
assert total == plies, (total, plies)
found = {}
for epd in sorted({epd for epd, _ in expected}):
    for move, *numbers in db.execute("SELECT Move, Win, Draw, Loss FROM Book WHERE EPD = ?", (epd,)):
        assert (epd, move) not in found
        found[epd, move] = numbers
assert len(found) > 100
assert found == dict(expected), [key for key in expected if found.get(key) != expected[key]][:5]
if wanted is None:
    assert db.execute("SELECT count(*) FROM Book").fetchone()[0] == len(found)
print(len({epd for epd, _ in found}), "positions,", len(found), "rows,", plies, "half-moves")
