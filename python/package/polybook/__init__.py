"""Opening books and game indexes from PGN, and games as NumPy arrays.

A book of the games in a file, and its moves in the first position:

>>> import polybook
>>> report = polybook.make_book(["data/famous.pgn"], bin="book.bin", min_game=1, max_ply=10)
>>> report["games"]["counted"]
45
>>> book = polybook.Book("book.bin")
>>> [move["san"] for move in book.moves()][:2]
['e4', 'd4']

The half-moves of games, in batches of NumPy arrays:

>>> sum(len(batch.moves) for batch in polybook.positions("data/famous.pgn", max_ply=10))
450

``python -m polybook`` is the command ``polybook``.
"""

from ._polybook import *
from ._polybook import __version__
