"""Checks the names beside counts with python-chess, and that a table of moves joins to counts: duckdb_join.py DIR

DIR contains data.counts with all names, and moves.parquet, which convert made from a database of the same games.
"""

import os
import sys

import chess
import chess.polyglot
import duckdb

os.chdir(sys.argv[1])
# Without a pattern, DuckDB reads all files of counts, and no others.
counts = "read_parquet('data.counts') AS counts"
sums = "sum(counts.wins + counts.draws + counts.losses), count(*)"
alone = duckdb.sql(f"SELECT {sums} FROM {counts}").fetchall()
joined = duckdb.sql(f"SELECT {sums} FROM {counts} JOIN 'moves.parquet' AS moves USING (key, move)").fetchall()
assert alone == joined, (alone, joined)
different = duckdb.sql(
    f"""SELECT count(*) FROM {counts} JOIN 'moves.parquet' AS moves USING (key, move)
    WHERE (counts.wins, counts.draws, counts.losses) <> (moves.wins, moves.draws, moves.losses)"""
).fetchall()
assert different == [(0,)], different
castling = duckdb.sql(
    f"SELECT count(DISTINCT uci) FROM {counts} JOIN 'moves.parquet' USING (key, move) WHERE san LIKE 'O-O%'"
).fetchall()
assert castling == [(4,)], castling

# Each position and move has one name, and the names are right.
positions, moves = (f"read_parquet('data.counts/_{name}.pq') AS {name}" for name in ["positions", "moves"])
named = duckdb.sql(
    f"SELECT key, fen, eco, opening, list(san ORDER BY move), list(uci ORDER BY move), list(move ORDER BY move) "
    f"FROM {positions} JOIN {moves} USING (key) GROUP BY ALL ORDER BY key"
).fetchall()
counted = duckdb.sql(f"SELECT key, list(move ORDER BY move) FROM {counts} GROUP BY key ORDER BY key").fetchall()
assert [(key, numbers) for key, *_, numbers in named] == counted
for key, fen, eco, opening, sans, ucis, _ in named:
    board = chess.Board(fen)
    assert chess.polyglot.zobrist_hash(board) == key % 2**64, fen
    for san, uci in zip(sans, ucis):
        move = board.parse_san(san)
        assert board.san(move) == san and board.uci(move) == uci, (fen, san, uci)
    assert (eco is None) == (opening is None), fen
openings = dict(duckdb.sql(f"SELECT opening, eco FROM {positions} WHERE opening IS NOT NULL").fetchall())
assert openings["Sicilian Defense"] == "B20" and len(openings) > 50, len(openings)
assert duckdb.sql(f"SELECT printf('%016x', key) FROM {positions} WHERE fen LIKE 'rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w%'").fetchall() == [("463b96181691fc9c",)]
