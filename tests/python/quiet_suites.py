"""Finds the quiet positions of games independently, and compares suites with them: quiet_suites.py DIR LEAST MOST GAMES...

The suites are DIR/quiet.pgn and DIR/quiet.epd, of lines of LEAST to MOST half-moves, DIR/white.epd with the positions among
them in which White moves, and DIR/database.epd, which is made of a database of the same games.
"""

import collections
import pathlib
import re
import sys

import chess
import chess.pgn

directory, least, most, *files = sys.argv[1:]
directory, least, most = pathlib.Path(directory), int(least), int(most)

VALUES = {chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9}


def material(board):
    """Returns the material of the side to move minus that of the other side."""
    return sum(
        value * (len(board.pieces(piece, board.turn)) - len(board.pieces(piece, not board.turn)))
        for piece, value in VALUES.items()
    )


def captures(board, square):
    return [move for move in board.legal_moves if board.is_capture(move) and move.to_square == square]


def gain(board, square):
    """Returns what the side to move wins by captures on a square, which both sides may end at any time."""
    best, before = 0, material(board)
    for move in captures(board, square):
        board.push(move)
        best = max(best, -material(board) - before - gain(board, square))
        board.pop()
    return best


KNOWN = {}


def is_quiet(board):
    place = board.epd(en_passant="legal")
    if place not in KNOWN:
        KNOWN[place] = not board.is_check() and all(gain(board, square) == 0 for square in chess.SQUARES)
    return KNOWN[place]


games_at, quiet_places, lines = collections.Counter(), set(), collections.Counter()
for name in files:
    with open(name, encoding="utf-8", errors="replace") as file:
        while (game := chess.pgn.read_game(file)) is not None:
            assert not game.errors, game.errors
            board, moves, met, is_over = chess.Board(), [], set(), False
            for move in list(game.mainline_moves())[:most]:
                is_loud = board.is_capture(move) or board.gives_check(move) or move.promotion is not None
                board.push(move)
                moves.append(move)
                is_over = is_over or board.is_repetition(3)
                place = board.epd(en_passant="legal")
                if len(moves) < least or place in met:
                    continue
                met.add(place)
                games_at[place] += 1
                if not is_over and not board.is_game_over() and not is_loud and is_quiet(board):
                    quiet_places.add(place)
                    lines[tuple(moves)] += 1

assert len(quiet_places) > 100 and len(quiet_places) < len(games_at) * 0.9, (len(quiet_places), len(games_at))


def entries(name):
    """Returns the number of games of each position of a suite."""
    found = {}
    for line in (directory / name).read_text().splitlines():
        place = " ".join(line.split()[:4])
        assert place not in found, place
        found[place] = int(re.search(r'c0 "(\d+)', line)[1])
    return found


assert entries("quiet.epd") == {place: games_at[place] for place in quiet_places}
assert entries("white.epd") == {place: games_at[place] for place in quiet_places if " w " in place}
# The lines of a database are combined of moves of several games.
of_database = entries("database.epd")
assert quiet_places <= of_database.keys()
assert all(is_quiet(chess.Board(f"{place} 0 1")) for place in of_database)

found = set()
with open(directory / "quiet.pgn") as file:
    while (game := chess.pgn.read_game(file)) is not None:
        line = tuple(game.mainline_moves())
        assert line not in found, line
        found.add(line)
assert found == lines.keys(), (len(found), len(lines))
