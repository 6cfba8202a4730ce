"""Adds counts up with DuckDB, as docs/scale.md says; with --min-game, keeps the positions of one directory.

usage: duckdb_counts.py [--min-game=N] DIR COUNTS...
"""

import os
import subprocess
import sys
from pathlib import Path

import duckdb

JOB = Path(__file__).parents[2] / "contrib/spark/polybook_spark.py"

options = [argument for argument in sys.argv[1:] if argument.startswith("--min-game=")]
directory, *counts = [argument for argument in sys.argv[1:] if argument not in options]
os.mkdir(directory)
parts = [f"{one}/part-*.parquet" for one in counts]
starts = [f"{one}/starts.parquet" for one in counts if os.path.exists(f"{one}/starts.parquet")]
columns = duckdb.sql(f"SELECT * FROM read_parquet({parts}) LIMIT 0").columns
summed = [name for name in columns if name in ("wins", "draws", "losses", "rating_sum", "rated")]
wanted = [f"sum({name})::BIGINT AS {name}" if name in summed else name for name in columns]
order = ["key", "move"] + [name for name in columns if name in ("identity", "speed", "rating_group", "month", "book_only")]
rows = f"SELECT {', '.join(wanted)} FROM read_parquet({parts}) GROUP BY ALL"
if options:
    position = "key, identity" if "identity" in columns else "key"
    least = options[0].partition("=")[2]
    rows = f"FROM ({rows}) QUALIFY sum(wins + draws + losses) OVER (PARTITION BY {position}) >= {least}"
duckdb.sql(f"COPY ({rows} ORDER BY {', '.join(order)}) TO '{directory}/part-000.parquet' (COMPRESSION zstd)")
if starts:
    duckdb.sql(
        f"""
        COPY (SELECT epd, sum(games)::BIGINT AS games FROM read_parquet({starts}) GROUP BY ALL ORDER BY epd)
        TO '{directory}/starts.parquet'
        """
    )
subprocess.run([sys.executable, JOB, "sidecar", directory, *counts, *options], check=True)
