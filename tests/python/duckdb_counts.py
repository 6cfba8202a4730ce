"""Adds up counts with DuckDB as docs/scale.md describes. With --min-game, filters the positions of one directory instead.

With --keys, writes only the rows of a range of keys, and no _counts.json.

usage: duckdb_counts.py [--min-game=N] [--keys=CONDITION] DIR COUNTS...
"""

import os
import subprocess
import sys
from pathlib import Path

import duckdb

JOB = Path(__file__).parents[2] / "contrib/spark/polybook_spark.py"

options = [argument for argument in sys.argv[1:] if argument.startswith("--min-game=")]
keys = [argument.partition("=")[2] for argument in sys.argv[1:] if argument.startswith("--keys=")]
directory, *counts = [argument for argument in sys.argv[1:] if argument not in options and not argument.startswith("--keys=")]
os.mkdir(directory)
parts = [f"{one}/part-*.parquet" for one in counts]
starts = [f"{one}/_starts.pq" for one in counts if os.path.exists(f"{one}/_starts.pq")]
columns = duckdb.sql(f"SELECT * FROM read_parquet({parts}) LIMIT 0").columns
order = [name for name in ("key", "move", "identity", "speed", "rating_group", "month", "book_only") if name in columns]
wanted = [name if name in (*order, "black") else f"sum({name})::BIGINT AS {name}" for name in columns]
rows = f"SELECT {', '.join(wanted)} FROM read_parquet({parts}) WHERE {keys[0] if keys else True} GROUP BY ALL"
if options:
    position = "key, identity" if "identity" in columns else "key"
    least = options[0].partition("=")[2]
    plies = "sum(wins + draws + losses) FILTER (WHERE move <> 0)"
    rows = f"FROM ({rows}) QUALIFY {plies} OVER (PARTITION BY {position}) >= {least}"
duckdb.sql(f"COPY ({rows} ORDER BY {', '.join(order)}) TO '{directory}/part-000.parquet' (COMPRESSION zstd)")
if keys:
    sys.exit()
if starts:
    duckdb.sql(
        f"""
        COPY (SELECT epd, sum(games)::BIGINT AS games FROM read_parquet({starts}) GROUP BY ALL ORDER BY epd)
        TO '{directory}/_starts.pq' (FORMAT parquet)
        """
    )
subprocess.run([sys.executable, JOB, "sidecar", directory, *counts, *options], check=True)
