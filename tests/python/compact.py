"""Lets LevelDB's own C++ code check, modify and compact an index: compact.py INDEX_DIR

Every seventh entry is written again and some others are added and deleted, so that the compaction merges tables
of several levels. Some entries are written behind it, so that they are in the log.
"""

import sys

import plyvel


def contents(db):
    with db.iterator(verify_checksums=True, fill_cache=False) as entries:
        return list(entries)


directory = sys.argv[1]
db = plyvel.DB(directory, create_if_missing=False, paranoid_checks=True, write_buffer_size=1 << 16)
before = contents(db)
assert before == sorted(before)
for number, (key, value) in enumerate(before):
    if number % 7 == 0:
        db.put(key, b"an older value")
        db.put(key, value)
    if number % 11 == 0:
        db.put(key + b"~", value)
for key, _ in before[::11]:
    db.delete(key + b"~")
# plyvel needs bounds to compact anything.
db.compact_range(start=b"\0", stop=b"\xff")
assert contents(db) == before
for key, value in before[::100]:
    db.put(key, b"an older value")
    db.put(key, value)
assert contents(db) == before
db.close()
print(f"{len(before)} entries checked, changed and compacted")
