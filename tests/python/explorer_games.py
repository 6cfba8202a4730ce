"""Writes random games of a variant, made by python-chess, with all the tags that the explorer asks about.

explorer_games.py VARIANT GAMES

The games are the same each time. They begin alike, so that positions have many games, and go back and forth, so that
positions repeat within a game.
"""

import random
import sys

import chess
import chess.pgn
import chess.variant

variant, count = sys.argv[1], int(sys.argv[2])
rng = random.Random(variant)
NAMES = ["Tal, Mikhail", "Müller, Änne", "Mu\u0308ller,  A\u0308nne", "O'Kelly", "bot_17", "?", "Ng"]
SITES = ["https://lichess.org/analysis", "https://lichess.org/abcdEFgh", "https://lichess.org/12345678", "Paris"]
STARTS = [518, 0, 959, 692]


def start():
    if variant == "Chess960":
        return chess.Board.from_chess960_pos(rng.choice(STARTS))
    return chess.variant.find_variant(variant)()


def tags(number):
    year, month, day = rng.choice([0, 1999, 2019, 2020, 2021]), rng.randrange(13), rng.randrange(29)
    parts = [f"{part:0{width}}" if part else "?" * width for part, width in [(year, 4), (month, 2), (day, 2)]]
    found = {
        "Event": rng.choice(["Rated blitz game", "Casual Blitz Game", "FICS unrated game", "Casualty Open of Ōsaka"]),
        "Site": f"https://lichess.org/game{number:04}" if rng.random() < 0.5 else rng.choice(SITES),
        "Date": rng.choice([".".join(parts), ".".join(reversed(parts))]),
        "White": rng.choice(NAMES),
        "Black": rng.choice(NAMES),
        "Result": rng.choice(["1-0", "0-1", "1/2-1/2", "*"]),
        "TimeControl": rng.choice(["15+0", "60+0", "180+2", "600+5", "40/1800+30:900", "G/60", "1:30:00", "-", "?"]),
        "Variant": variant,
    }
    for name, value in [("WhiteElo", rng.randrange(700, 2900) * rng.choice([1, 1, 1, 10])), ("BlackElo", rng.randrange(700, 2900)), ("ECO", "B20")]:
        if rng.random() < 0.8:
            found[name] = str(value) if name != "ECO" else rng.choice(["A00", " B20 ", "C45", "E99", "E9x"])
    return found


def back(board):
    """The last move of the side to move undone, if it can be."""
    if len(board.move_stack) < 2:
        return None
    last = board.move_stack[-2]
    move = chess.Move(last.to_square, last.from_square)
    return move if not last.drop and board.is_legal(move) else None


def choose(board):
    moves = sorted(board.legal_moves, key=str)
    if not moves or board.is_variant_end():
        return None
    undone = back(board)
    if undone and rng.random() < 0.2:
        return undone
    castling = [move for move in moves if board.is_castling(move)]
    if castling and rng.random() < 0.5:
        return rng.choice(castling)
    return rng.choice(moves[:4] if board.ply() < 8 else moves)


for number in range(count):
    board = start()
    game = chess.pgn.Game()
    game.setup(board)
    for name, value in tags(number).items():
        game.headers[name] = value
    node = game
    for _ in range(rng.choice([0, 6, 20, 40])):
        move = choose(board)
        if move is None:
            break
        node = node.add_variation(move)
        board.push(move)
    print(game, end="\n\n")
