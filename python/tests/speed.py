"""How much faster polybook reads a PGN than python-chess: python speed.py GAMES.pgn

Both replay every game to keys and moves. Processor time of both is told, in one run.
"""

import sys
import time

import chess.pgn
import chess.polyglot
import polybook


def with_python_chess(path):
    plies = 0
    with open(path, encoding="utf-8", errors="replace") as pgn:
        while game := chess.pgn.read_game(pgn):
            board = game.board()
            for move in game.mainline_moves():
                chess.polyglot.zobrist_hash(board)
                board.push(move)
                plies += 1
    return plies


def with_polybook(path):
    return sum(len(batch) for batch in polybook.positions(path, unfinished="draw"))


def main():
    seconds = []
    for read in (with_polybook, with_python_chess):
        begin = time.process_time()
        plies = read(sys.argv[1])
        seconds.append(time.process_time() - begin)
        print(f"{read.__name__}: {plies} half-moves, {seconds[-1]:.3f} s of processor time")
    print(f"{seconds[1] / seconds[0]:.0f} times")


main()
