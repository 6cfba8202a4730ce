#!/usr/bin/env python3
"""Makes selfplay.pgn: games of Stockfish against itself from varied openings.

    pip install chess
    apt-get install stockfish
    python3 data/make_selfplay.py > data/selfplay.pgn

The first plies of each game are drawn at random from the engine's best few moves, so that openings
differ but make sense; then the engine plays a fixed number of nodes a move. One thread, a fixed seed
and a fixed number of nodes make the games the same on every run of the same engine.
"""

import random
import sys

import chess
import chess.engine
import chess.pgn

GAMES = 500
SEED = 20
OPENING_PLIES = 10
OPENING_CHOICES = 4
NODES = 1500
LONGEST = 160


def play(engine, rng, number):
    board = chess.Board()
    while not board.is_game_over(claim_draw=True) and board.ply() < LONGEST:
        if board.ply() < OPENING_PLIES:
            lines = engine.analyse(
                board, chess.engine.Limit(nodes=NODES), multipv=OPENING_CHOICES, game=number
            )
            board.push(rng.choice(lines)["pv"][0])
        else:
            board.push(engine.play(board, chess.engine.Limit(nodes=NODES), game=number).move)
    return board


def main():
    engine = chess.engine.SimpleEngine.popen_uci("/usr/games/stockfish")
    name = engine.id["name"]
    engine.configure({"Threads": 1, "Hash": 16})
    rng = random.Random(SEED)
    for number in range(1, GAMES + 1):
        board = play(engine, rng, number)
        game = chess.pgn.Game.from_board(board)
        game.headers["Event"] = "polybook self-play"
        game.headers["Site"] = "?"
        game.headers["Date"] = "2026.11.20"
        game.headers["Round"] = str(number)
        game.headers["White"] = name
        game.headers["Black"] = name
        outcome = board.outcome(claim_draw=True)
        # A game that reaches the longest length is a draw.
        game.headers["Result"] = outcome.result() if outcome else "1/2-1/2"
        print(game, file=sys.stdout, end="\n\n")
    engine.quit()


main()
