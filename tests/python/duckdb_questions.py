"""Runs the SQL of a document in a directory with counts.

usage: duckdb_questions.py DIR DOCUMENT
"""

import os
import re
import sys

import duckdb

with open(sys.argv[2], encoding="utf-8") as document:
    queries = re.findall(r"```sql\n(.*?)```", document.read(), re.DOTALL)
assert len(queries) >= 5, len(queries)
os.chdir(sys.argv[1])
for query in queries:
    answer = duckdb.sql(query)
    # COPY answers nothing, and no move of one year is new in the same.
    assert answer is None or answer.fetchall() or "NOT EXISTS" in query, query
