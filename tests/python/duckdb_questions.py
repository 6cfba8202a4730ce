"""Runs the examples of a document in order: console commands in a shell, and SQL in DuckDB.

usage: duckdb_questions.py DIR DOCUMENT POLYBOOK
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb

directory, document, polybook = sys.argv[1:]
blocks = re.findall(r"^```(console|sql)\n(.*?)^```", Path(document).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
assert sum(language == "sql" for language, _ in blocks) >= 3, len(blocks)
os.chdir(directory)
os.symlink(Path(document).parents[1] / "data", "data")
os.environ["PATH"] = os.pathsep.join([os.path.dirname(polybook), os.environ["PATH"]])
for language, text in blocks:
    if language == "console":
        # Another test runs the commands of sqlite3, which may be missing. No later command needs their output.
        commands = [line[2:] for line in text.splitlines() if line.startswith("$ ") and not line.startswith("$ sqlite3 ")]
        subprocess.run("\n".join(["set -e", *commands]), shell=True, check=True)
    else:
        answer = duckdb.sql(text)
        # COPY has no result.
        assert answer is None or answer.fetchall(), text
