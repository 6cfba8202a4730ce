"""Compares counts of random games of a variant by python-chess with polybook's outputs.

variant_games.py POLYBOOK VARIANT DIRECTORY
"""

import random
import sqlite3
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import chess.pgn
import chess.variant

from polyglot_key import NUMBERS, key

GAMES, PLIES = 500, 26
NAMES = {
    "normal": "Standard",
    "fischerandom": "Chess960",
    "crazyhouse": "Crazyhouse",
    "suicide": "Suicide",
    "giveaway": "Antichess",
    "atomic": "Atomic",
    "3check": "Three-check",
    "horde": "Horde",
    "kingofthehill": "King of the Hill",
    "racingkings": "Racing Kings",
}
polybook, variant, directory = sys.argv[1], sys.argv[2], Path(sys.argv[3])
generator = random.Random(variant)


def start():
    if variant == "fischerandom":
        return chess.Board.from_chess960_pos(generator.randrange(960))
    if variant == "suicide":
        # No castling: giveaway never allows it, and suicide only on some servers.
        return chess.variant.SuicideBoard(chess.variant.AntichessBoard.starting_fen)
    return chess.Board() if variant == "normal" else chess.variant.find_variant(NAMES[variant])()


def book_move(board, move):
    """Returns the 16-bit encoding of a move."""
    if move.drop:
        return 9 << 12 | (ord(chess.piece_symbol(move.drop).upper()) - ord("@")) << 6 | move.to_square
    to = move.to_square
    if board.is_castling(move) and not board.chess960:
        to += 1 if to > move.from_square else -2
    return (move.promotion or 1) - 1 << 12 | move.from_square << 6 | to


def castling_first(board, moves):
    """Returns only the castling moves, half of the time if there are any, because castling is rare in random games."""
    castling = [move for move in moves if board.is_castling(move)]
    return castling if castling and generator.random() < 0.5 else moves


positions = {}  # EPD to board and its legal moves
counts = defaultdict(lambda: [0, 0, 0])  # (EPD, move as text) to wins, draws, losses
with open(directory / "games.pgn", "w") as out:
    for _ in range(GAMES):
        board = start()
        result = generator.choice(["1-0", "0-1", "1/2-1/2"])
        game = chess.pgn.Game()
        game.setup(board)
        game.headers["Variant"] = NAMES[variant]
        game.headers["Result"] = result
        node = game
        for _ in range(PLIES):
            moves = sorted(board.legal_moves, key=str)
            if not moves or board.is_variant_end():
                break
            move = generator.choice(castling_first(board, moves))
            epd = board.epd(en_passant="legal")
            if epd not in positions:
                positions[epd] = board.copy(stack=False), moves
            column = 1 if result == "1/2-1/2" else 0 if (result == "1-0") == board.turn else 2
            counts[epd, board.uci(move)][column] += 1
            node = node.add_variation(move)
            board.push(move)
        print(game, end="\n\n", file=out)


def run(*arguments):
    subprocess.run([polybook, *arguments], cwd=directory, check=True)


run("make-book", "-q", "--strict", "games.pgn", "--variant", variant, "--min-game", "1", "--obs", "a.obs.db3", "--force")
db = sqlite3.connect(directory / "a.obs.db3")
found = {(epd, move): list(numbers) for epd, move, *numbers in db.execute("SELECT EPD, Move, Win, Draw, Loss FROM Book")}
assert found == dict(counts), [(k, found.get(k), counts.get(k)) for k in set(found) ^ set(counts)][:6]

if variant in NUMBERS or variant in ("normal", "fischerandom"):
    # Every game has weight 1, so a weight is a number of games.
    factors = [f"--{result}-factor=1" for result in ("win", "draw", "loss")]
    run("make-book", "-q", "games.pgn", "--variant", variant, "--min-game", "1", "--bin", "a.bin", *factors)
    book = defaultdict(dict)
    data = (directory / "a.bin").read_bytes()
    for at in range(0, len(data), 16):
        number = int.from_bytes(data[at : at + 8], "big")
        if number:
            book[number][int.from_bytes(data[at + 8 : at + 10], "big")] = int.from_bytes(data[at + 10 : at + 12], "big")
    expected = defaultdict(lambda: defaultdict(int))
    for (epd, move), numbers in counts.items():
        board, moves = positions[epd]
        number = key(variant, epd)
        if number is None:
            continue
        moves = {book_move(board, move) for move in moves}
        assert set(book[number]) <= moves, (epd, set(book[number]) - moves)
        expected[number][book_move(board, board.parse_uci(move))] += sum(numbers)
    assert book == expected
    # The database contains the same moves as the book.
    run("convert", "-q", "a.obs.db3", "b.bin", "--min-game", "1", *factors)
    assert (directory / "b.bin").read_bytes() == data
else:
    made = subprocess.run([polybook, "make-book", "games.pgn", "--variant", variant], cwd=directory, capture_output=True)
    assert made.returncode == 1 and b"has no number" in made.stderr, made.stderr
print(variant, len(positions), "positions,", len(counts), "moves")
