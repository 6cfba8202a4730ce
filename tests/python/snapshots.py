"""Lets LevelDB's own C++ code keep old values of a key for snapshots: snapshots.py INDEX_DIR

There are so many that tables of one level have to share the key.
"""

import os
import sys

import plyvel

KEY = b"game_0_data"

db = plyvel.DB(sys.argv[1], create_if_missing=False, paranoid_checks=True, compression=None)
value = db.get(KEY)
snapshots = []
for _ in range(80):
    db.put(KEY, os.urandom(100_000))
    snapshots.append(db.snapshot())
db.put(KEY, value)
# plyvel needs bounds to compact anything.
db.compact_range(start=b"\0", stop=b"\xff")
tables = db.get_property(b"leveldb.sstables").decode()
shared = [line for line in tables.splitlines() if line.count(repr(KEY.decode())) == 2]
assert len(shared) >= 2, tables
assert db.get(KEY) == value
for snapshot in snapshots:
    snapshot.close()
db.close()
print(f"{len(shared)} tables have nothing but versions of one key")
