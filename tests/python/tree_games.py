"""Reads a tree as PGN, and checks that its moves are those of the book: tree_games.py BOOK PGN"""

import sys

import chess.pgn
import chess.polyglot

book, pgn = sys.argv[1:]
found = set()
with open(pgn) as file:
    while (game := chess.pgn.read_game(file)) is not None:
        assert not game.errors, game.errors
        nodes = [game]
        while nodes:
            node = nodes.pop()
            board = node.board()
            key = chess.polyglot.zobrist_hash(board)
            for child in node.variations:
                found.add((key, child.move))
                nodes.append(child)

expected = set()
with chess.polyglot.open_reader(book) as reader:
    for entry in reader:
        if entry.key:
            expected.add((entry.key, entry.move))
# python-chess writes castling as a move of the king, and the file as the king capturing its rook. Only the board tells.
castling = {"e1h1": "e1g1", "e1a1": "e1c1", "e8h8": "e8g8", "e8a8": "e8c8"}
plain = {(key, castling.get(str(move), str(move))) for key, move in expected}
assert {(key, str(move)) for key, move in found} == plain, (len(found), len(plain))
