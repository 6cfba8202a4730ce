"""Adds counts up with DuckDB, as docs/scale.md says.

usage: duckdb_counts.py DIR COUNTS...
"""

import os
import subprocess
import sys
from pathlib import Path

import duckdb

JOB = Path(__file__).parents[2] / "contrib/spark/polybook_spark.py"

directory, counts = sys.argv[1], sys.argv[2:]
os.mkdir(directory)
parts = [f"{one}/part-*.parquet" for one in counts]
starts = [f"{one}/starts.parquet" for one in counts if os.path.exists(f"{one}/starts.parquet")]
duckdb.sql(
    f"""
    COPY (
        SELECT key, move, black, sum(wins)::BIGINT AS wins, sum(draws)::BIGINT AS draws, sum(losses)::BIGINT AS losses
        FROM read_parquet({parts}) GROUP BY ALL ORDER BY key, move
    ) TO '{directory}/part-000.parquet' (COMPRESSION zstd)
    """
)
if starts:
    duckdb.sql(
        f"""
        COPY (SELECT epd, sum(games)::BIGINT AS games FROM read_parquet({starts}) GROUP BY ALL ORDER BY epd)
        TO '{directory}/starts.parquet'
        """
    )
subprocess.run([sys.executable, JOB, "sidecar", directory, *counts], check=True)
