"""Reads a directory of counts as a whole, its tables of names, and a table of games with one library."""

import json, os, sys

library, directory = sys.argv[1:]
counts = os.path.join(directory, "a.counts")
games = os.path.join(directory, "games.parquet")
names = [os.path.join(counts, name) for name in ["_positions.pq", "_moves.pq"]]
about = json.load(open(os.path.join(counts, "_counts.json")))
rows = sum(part["rows"] for part in about["parts"])

if library == "duckdb":
    import duckdb

    read = lambda path: duckdb.sql(f"SELECT count(*) FROM read_parquet('{path}')").fetchall()[0][0]
    total = duckdb.sql(f"SELECT sum(wins + draws + losses) FROM read_parquet('{counts}')").fetchall()[0][0]
    lengths = [read(path) for path in [counts, *names, games]]
elif library == "pandas":
    import pandas

    frame = pandas.read_parquet(counts)
    total = (frame.wins + frame.draws + frame.losses).sum()
    named = [pandas.read_parquet(path) for path in names]
    assert len(frame.merge(named[0], on="key").merge(named[1], on=["key", "move"])) == rows
    lengths = [len(frame), *map(len, named), len(pandas.read_parquet(games))]
else:
    import polars

    frame = polars.read_parquet(counts + "/*.parquet")
    total = (frame["wins"] + frame["draws"] + frame["losses"]).sum()
    named = [polars.read_parquet(path) for path in names]
    assert len(frame.join(named[0], on="key").join(named[1], on=["key", "move"])) == rows
    lengths = [len(frame), *map(len, named), len(polars.read_parquet(games))]

assert lengths[0] == lengths[2] == rows, lengths
assert 0 < lengths[1] <= rows, lengths
assert total == about["plies"], (total, about["plies"])
assert lengths[3] == about["games"]["read"], lengths
