"""Reads suites like programs that play matches: read_suite.py PGN EPD, both with lines of six half-moves."""

import sys

import chess
import chess.pgn

pgn, epd = sys.argv[1:]
reached = set()
with open(pgn) as file:
    while (game := chess.pgn.read_game(file)) is not None:
        assert not game.errors, game.errors
        board = game.end().board()
        assert board.ply() == 6, game
        reached.add(board.epd())
listed = set()
with open(epd) as file:
    for line in file:
        board, operations = chess.Board.from_epd(line)
        assert board.is_valid(), line
        assert operations["fmvn"] == 4 and operations["hmvc"] <= 6, line
        assert board.fullmove_number == 4, line
        listed.add(board.epd())
assert reached == listed, (len(reached), len(listed))
