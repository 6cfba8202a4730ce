"""Calculates the book of make-book --minimax=PERCENT --min-game N with python-chess, and compares it.

usage: minimax.py BOOK PERCENT N GAMES...
"""

import collections
import math
import sys

import chess
import chess.pgn
import chess.polyglot


def counted(paths):
    """Returns for each key the side to move, and for each move its wins, draws and losses and the key after it."""
    positions = {}
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as text:
            while game := chess.pgn.read_game(text):
                points = {"1-0": 1, "0-1": -1}.get(game.headers["Result"], 0)
                board = game.board()
                for move in game.mainline_moves():
                    turn, moves = positions.setdefault(chess.polyglot.zobrist_hash(board), (board.turn, {}))
                    after = board.copy(stack=False)
                    after.push(move)
                    results = moves.setdefault(move, ([0, 0, 0], chess.polyglot.zobrist_hash(after)))[0]
                    results[1 - (points if board.turn else -points)] += 1
                    board = after
    return positions


def score(results):
    """Returns the mean score of the side to move."""
    wins, draws, losses = results
    return (wins * 2 + draws) / sum(results) / 2


def lower(results):
    """Returns the lower bound of Wilson's confidence interval for the score."""
    games, mean = sum(results), score(results)
    square = 2.576 * 2.576 / games
    spread = 2.576 * math.sqrt(mean * (1 - mean) / games + square / games / 4)
    return (mean + square / 2 - spread) / (1 + square)


def values(positions):
    now = {}
    for _ in range(256):
        after = {
            key: max(min(lower(results), 1 - now.get(after, 0)) for results, after in moves.values())
            for key, moves in positions.items()
        }
        if after == now:
            break
        now = after
    return now


def main(book, percent, least, *paths):
    positions = {}
    for key, (_, moves) in counted(paths).items():
        moves = {move: counts for move, counts in moves.items() if sum(counts[0]) >= int(least)}
        if moves:
            positions[key] = moves
    value = values(positions)
    expected = {}
    lowered = 0
    for key, moves in positions.items():
        for move, (results, after) in moves.items():
            weight = 2 * results[0] + results[1]
            loss = value[key] - min(score(results), 1 - value.get(after, 0))
            share = 1.0 - loss * 100.0 / int(percent)
            if share < 1.0:
                lowered += 1
                weight = max(math.floor(weight * share + 0.5), min(weight, 1)) if share > 0.0 else 0
            if weight > 0:
                expected[key, move] = weight
    with chess.polyglot.open_reader(book) as reader:
        found = {
            (entry.key, entry.move): entry.weight for entry in reader if entry.key != 0
        }
    assert lowered > 3, lowered
    differences = {entry for entry in expected.keys() | found.keys() if expected.get(entry) != found.get(entry)}
    for entry in differences:
        print(f"{entry[0]:016x} {entry[1]}: {found.get(entry)}, not {expected.get(entry)}")
    assert not differences and found


main(*sys.argv[1:])
