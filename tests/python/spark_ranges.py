"""Checks that the Spark job splits uncompressed PGN between games, wherever its ranges begin."""

import importlib.util
import io
import sys
from pathlib import Path

sys.dont_write_bytecode = True
path = Path(__file__).parents[2] / "contrib/spark/polybook_spark.py"
spec = importlib.util.spec_from_file_location("polybook_spark", path)
job = importlib.util.module_from_spec(spec)
spec.loader.exec_module(job)

games = [
    b'[Event "a"]\n[Site "x"]\n\n1. e4 e5 1-0\n\n',
    b'[Event "b"]\r\n\r\n1. e4 {a comment with\r\n\r\n[Event "no game"]\r\n\r\nin it} e5 1-0\r\n\r\n',
    b'[Event "c"]\n\n1. d4 {short} d5\n\n*\n\n',
    b'[Event "d"]\n\n1. c4 1/2-1/2\n',
]
text = b"".join(games)
starts = {sum(len(game) for game in games[:number]) for number in range(len(games) + 1)}
for window in (1, 7, 64, 1 << 20):
    for offset in range(len(text) + 1):
        found = job.next_game(io.BytesIO(text), offset, len(text), window)
        assert found >= offset, (offset, found)
        assert found in starts or window < 64, (offset, found)
        # If the rest of the file is visible, the split is at the next game, not at a later one.
        assert window < 64 or found == min(start for start in starts if start >= offset), (offset, found)
assert job.next_game(io.BytesIO(b"1. e4 e5 1-0\n" * 9), 20, 117) == 117

assert job.name_of("hdfs://host/games/may.pgn.zst") == "may.pgn"
assert job.name_of("/games/may.gz") == "may.pgn"
assert job.name_of("file:/games/may") == "may"

# The job has every option of make-book that selects games, or refuses it.
known = {*job.VALUED, *job.FLAGS, "duplicates"}
listed = set(sys.argv[1:])
assert listed <= known, f"the job does not know {sorted(listed - known)}"
