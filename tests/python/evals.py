"""Compares evaluations of games and EPDs, and their join with counts, with python-chess and DuckDB: evals.py DIR POLYBOOK"""

import collections
import random
import subprocess
import sys

import chess
import chess.engine
import chess.pgn
import chess.polyglot
import duckdb

directory, polybook = sys.argv[1:]


def run(*args):
    subprocess.run([polybook, *args], cwd=directory, check=True, stderr=subprocess.DEVNULL)


def key_of(board):
    """Returns the key. The en passant square is left out if the capture is illegal."""
    board = board.copy(stack=False)
    if not board.has_legal_en_passant():
        board.ep_square = None
    return chess.polyglot.zobrist_hash(board)


def chosen(key, said):
    """Returns the most frequent of the deepest evaluations; if several are equally frequent, the middle one."""
    deepest = max(depth for depth, _ in said)
    scores = sorted(score for depth, score in said if depth == deepest)
    most = max(map(scores.count, scores))
    # Scores cannot be elements of a set.
    scores = [score for at, score in enumerate(scores) if scores.count(score) == most and score not in scores[:at]]
    return -deepest, scores[(len(scores) - 1 + key % 2) // 2]


chance = random.Random(31)
said = collections.defaultdict(list)
with open(f"{directory}/games.pgn", "w") as out:
    for _ in range(100):
        node = game = chess.pgn.Game()
        while not node.board().is_game_over() and node.ply() < 80:
            if chance.random() < 0.7:
                value = chance.choice([chess.engine.Cp(chance.randrange(-900, 900)), chess.engine.Mate(chance.choice([-7, -1, 1, 30]))])
                depth = chance.choice([None, chance.randrange(1, 40)])
                node.set_eval(chess.engine.PovScore(value, chess.WHITE), depth)
                node.set_clock(chance.randrange(9000))
                # The score as python-chess reads it again.
                board, score = node.board(), node.eval().white()
                said[key_of(board)].append((depth or 0, score))
            moves = list(node.board().legal_moves)
            # Use few first moves, so that positions repeat.
            node = node.add_variation(chance.choice(moves[:2] if node.ply() < 6 else moves))
        print(game, file=out, end="\n\n")

expected = {key: chosen(key, evaluations) for key, evaluations in said.items()}

run("evals", "--out", "games.evals", "games.pgn")
run("evals", "--out", "games.epd", "games.evals")
found = {}
for line in open(f"{directory}/games.epd"):
    board, operations = chess.Board.from_epd(line)
    ce = operations["ce"]
    if abs(ce) > 32000:
        score = chess.engine.Mate((32768 - ce) // 2 if ce > 0 else -(32767 + ce) // 2)
        assert operations.get("dm", score.mate()) == score.mate(), line
    else:
        score = chess.engine.Cp(ce)
    score = chess.engine.PovScore(score, board.turn).white()
    found[key_of(board)] = (-operations["acd"], score)
differ = [(key, found.get(key), best) for key, best in expected.items() if found.get(key) != best]
assert not differ and len(found) == len(expected), differ[:5]

run("evals", "--out", "games.parquet", "games.evals")
run("make-book", "games.pgn", "--counts", "counts")
rows = duckdb.sql(
    f"""select distinct key, cp, mate, depth, origin from '{directory}/counts/part-*.parquet'
    join '{directory}/games.parquet' using (key)"""
).fetchall()
assert len(rows) > 1000
for key, cp, mate, depth, origin in rows:
    score = chess.engine.Cp(cp) if mate is None else chess.engine.Mate(mate)
    assert expected[key % 2**64] == (-depth, score) and origin == "PGN"
