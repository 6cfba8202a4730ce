"""Calculates Polyglot keys from FENs. Written from the document of the format alone.

random64.txt holds the document's 781 numbers. Run with a variant and a FEN to see a key.
"""

import pathlib
import sys

RANDOM = [int(number, 16) for number in (pathlib.Path(__file__).parent / "random64.txt").read_text().split()]
NUMBERS = {"crazyhouse": 6, "suicide": 8, "giveaway": 8, "atomic": 12, "3check": 13}
KINDS = "pPnNbBrRqQkK"
MASK = (1 << 64) - 1


def squares(board):
    """Returns the pieces in a FEN's first field by (file, row), both counted from 0."""
    pieces = {}
    for row, text in zip(range(7, -1, -1), board.split("/")):
        file = 0
        for letter in text.replace("~", ""):
            if letter.isdigit():
                file += int(letter)
            else:
                pieces[file, row] = letter
                file += 1
    return pieces


def castling_rooks(pieces, field):
    """Returns the squares of the rooks that may castle, or None if one of them is not the outermost of its side."""
    rooks = []
    for letter in field.replace("-", ""):
        row, rook, king = (0, "R", "K") if letter.isupper() else (7, "r", "k")
        king = next(file for (file, r), piece in pieces.items() if piece == king and r == row)
        own = [file for (file, r), piece in pieces.items() if piece == rook and r == row]
        if letter.lower() in "kq":
            file = max(own) if letter.lower() == "k" else min(own)
        else:
            file = ord(letter.lower()) - ord("a")
        if file != (max(own) if file > king else min(own)):
            return None
        rooks.append(2 * (row == 7) + (file < king))
    return rooks


def key(variant, fen):
    """Returns the key, or None for a position that books cannot contain."""
    board, turn, castling, en_passant = fen.split()[:4]
    board, _, holdings = board.partition("[")
    pieces = squares(board)
    result = NUMBERS.get(variant, 0)
    for (file, row), piece in pieces.items():
        result ^= RANDOM[64 * KINDS.index(piece) + 8 * row + file]
    rooks = castling_rooks(pieces, castling)
    if rooks is None:
        return None
    for offset in rooks:
        result ^= RANDOM[768 + offset]
    if en_passant != "-":
        file = ord(en_passant[0]) - ord("a")
        row, pawn = (4, "P") if turn == "w" else (3, "p")
        if pawn in (pieces.get((file - 1, row)), pieces.get((file + 1, row))):
            result ^= RANDOM[772 + file]
    if turn == "w":
        result ^= RANDOM[780]
    # Pieces in hand are on square 64: the keys of square 0, rotated left by 8, are added.
    for piece in holdings.rstrip("]"):
        on_board = RANDOM[64 * KINDS.index(piece)]
        result += on_board << 8 & MASK | on_board >> 56
    return result & MASK


if __name__ == "__main__":
    print(f"{key(sys.argv[1], sys.argv[2]):016x}")
