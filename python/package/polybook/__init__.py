"""Opening books and game indexes from PGN, and games as NumPy arrays.

Make a book from the games of a file, and list its moves in the starting position:

>>> import polybook
>>> report = polybook.make_book(["data/famous.pgn"], bin="book.bin", min_game=1, max_ply=10)
>>> report["games"]["counted"]
45
>>> book = polybook.Book("book.bin")
>>> [move["san"] for move in book.moves()][:2]
['e4', 'd4']

Read the half-moves of games, in batches of NumPy arrays:

>>> sum(len(batch.moves) for batch in polybook.positions("data/famous.pgn", max_ply=10))
450

Batches also contain the clocks and evaluations that are in comments of the games. The evaluation 32766 means that White
mates in two moves:

>>> with open("rated.pgn", "w") as pgn:
...     print("1. e4 {[%eval 0.33] [%clk 0:03:00]} f6 2. d4 g5 {[%eval #2] [%clk 0:02:58.5]} 1-0", file=pgn)
>>> batch = next(polybook.positions("rated.pgn"))
>>> batch.clock, batch.eval
(array([180. ,   nan,   nan, 178.5]), array([   33.,    nan,    nan, 32766.]))

``python -m polybook`` runs the command ``polybook``.
"""

from ._polybook import *
from ._polybook import __version__
