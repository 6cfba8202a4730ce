"""Checks that a table of moves joins to counts by key and move: duckdb_join.py DIR

DIR contains data.counts and moves.parquet, as the document for data people makes them.
"""

import os
import sys

import duckdb

os.chdir(sys.argv[1])
counts = "read_parquet('data.counts/part-*.parquet') AS counts"
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
