"""Makes variants.pgn: a few games of each variant, their moves chosen at random (pip install chess)."""

import random

import chess.pgn
import chess.variant

NAMES = [
    "Chess960",
    "Crazyhouse",
    "Antichess",
    "Atomic",
    "Three-check",
    "Horde",
    "King of the Hill",
    "Racing Kings",
]
GAMES, PLIES = 4, 20

generator = random.Random(1)
with open("variants.pgn", "w") as out:
    for name in NAMES:
        for number in range(1, GAMES + 1):
            if name == "Chess960":
                board = chess.Board.from_chess960_pos(generator.randrange(960))
            else:
                board = chess.variant.find_variant(name)()
            game = chess.pgn.Game()
            game.setup(board)
            game.headers.update(
                Event="Random moves",
                Round=str(number),
                Variant=name,
                Result=generator.choice(["1-0", "0-1", "1/2-1/2"]),
            )
            node = game
            for _ in range(PLIES):
                moves = sorted(board.legal_moves, key=str)
                if not moves or board.is_variant_end():
                    break
                castling = [move for move in moves if board.is_castling(move)]
                move = generator.choice(castling or moves)
                node = node.add_variation(move)
                board.push(move)
            print(game, end="\n\n", file=out)
