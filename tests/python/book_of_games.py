"""Checks a book against python-chess: book_of_games.py GAMES.pgn BOOK.bin [LIMIT]

The book must have been made with --min-game 1 and all factors 1, so that every position and move of
the games is in it with the number of games as its weight.
"""

import collections
import sys

import chess
import chess.pgn
import chess.polyglot


def main(pgn, book, limit=None):
    counts = collections.Counter()
    boards = []
    with open(pgn, encoding="latin-1") as file:
        games = 0
        while game := chess.pgn.read_game(file):
            board = game.board()
            for move in game.mainline_moves():
                key = chess.polyglot.zobrist_hash(board)
                raw = move
                if board.is_castling(move):
                    rank = chess.square_rank(move.from_square)
                    file_ = 7 if board.is_kingside_castling(move) else 0
                    raw = chess.Move(move.from_square, chess.square(file_, rank))
                counts[key, raw.from_square << 6 | raw.to_square | (raw.promotion or 1) - 1 << 12] += 1
                if len(boards) < 2000 and board.ply() % 7 == 0:
                    boards.append((board.copy(stack=False), move))
                board.push(move)
            games += 1
            if limit and games == int(limit):
                break
    with chess.polyglot.open_reader(book) as reader:
        found = {(entry.key, entry.raw_move): entry.weight for entry in reader if entry.key}
        assert all(entry.learn == 0 for entry in reader if entry.key)
        for board, move in boards:
            entries = list(reader.find_all(board))
            assert move in [entry.move for entry in entries], (board.fen(), move)
            weights = [entry.weight for entry in entries]
            assert weights == sorted(weights, reverse=True), board.fen()
    if limit is None:
        assert len(found) == len(counts), (len(found), len(counts))
        assert found == dict(counts)
    else:
        for pair, games in counts.items():
            assert found[pair] >= games, pair
    print(f"{len(counts)} pairs of position and move agree")


main(*sys.argv[1:])
