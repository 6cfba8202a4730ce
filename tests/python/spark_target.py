"""Checks that the Spark job replaces only counts, and loses nothing when an operation of the file system fails."""

import importlib.util
import itertools
import json
import os
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
path = Path(__file__).parents[2] / "contrib/spark/polybook_spark.py"
spec = importlib.util.spec_from_file_location("polybook_spark", path)
job = importlib.util.module_from_spec(spec)
spec.loader.exec_module(job)


class Disk:
    """A directory that behaves as Hadoop's file systems do. Changes with the numbers in `failing` fail; what is in
    `before` by its number happens just before that change."""

    def __init__(self, failing=(), before=None):
        self.failing, self.before, self.changes = failing, before or {}, 0

    def change(self):
        self.before.get(self.changes, lambda: None)()
        self.changes += 1
        if self.changes - 1 in self.failing:
            raise OSError(f"injected into change {self.changes - 1}\nwith a trace")

    def exists(self, text):
        return os.path.exists(text)

    def entries(self, text):
        if os.path.isfile(text):
            return {os.path.basename(text): os.path.getsize(text)}
        return {one.name: one.stat().st_size if one.is_file() else None for one in os.scandir(text)}

    def read(self, text):
        return Path(text).read_bytes()

    def remove(self, text):
        self.change()
        os.rmdir(text) if os.path.isdir(text) else os.remove(text)

    def rename(self, old, new):
        if self.exists(new):
            raise job.Failure(f"{new} exists")
        self.change()
        os.rename(old, os.path.join(new, os.path.basename(old)) if os.path.isdir(new) else new)


def write_counts(directory, text):
    """Creates a directory with the files of counts that matter for replacing it. Returns its contents."""
    directory.mkdir()
    (directory / "part-000.parquet").write_text(text)
    (directory / "_starts.pq").write_text(text * 2)
    about = {
        "format": "polybook counts",
        "parts": [{"file": "part-000.parquet", "bytes": len(text)}],
        "starts": {"file": "_starts.pq", "bytes": 2 * len(text)},
    }
    (directory / "_counts.json").write_text(json.dumps(about))
    return content(directory)


def content(directory):
    return {str(one.relative_to(directory)): one.read_bytes() for one in directory.rglob("*") if one.is_file()}


def fresh(with_old=True):
    """Creates a target and new counts. Returns both and their contents."""
    room = Path(tempfile.mkdtemp(dir=root.name))
    target, staging = room / "games", room / "games.1.part"
    old = write_counts(target, "old") if with_old else None
    return target, staging, old, write_counts(staging, "newer")


def replace(disk, target, staging, force=True):
    """Renames counts to their target. Returns the message if that fails."""
    try:
        job.put_in_place(disk, str(staging), str(target), force)
    except job.Failure as failure:
        assert "\n" not in str(failure), failure
        return str(failure)
    return None


def refused(target, force=True):
    before = content(target.parent)
    try:
        job.check_target(Disk(), str(target), force)
    except job.Failure as failure:
        assert content(target.parent) == before
        return str(failure)
    return None


root = tempfile.TemporaryDirectory()

# Two jobs never use the same staging name, and no job uses a name that others may use.
names = {job.beside("s3a://games/counts", "part") for _ in range(1000)}
assert len(names) == 1000 and all(name.startswith("s3a://games/counts.") for name in names)
assert "s3a://games/counts.part" not in names

# In object stores, the staging directory is in the same bucket as the target.
assert job.target_of("s3a://games/counts//") == "s3a://games/counts"
assert job.target_of("hdfs:///counts/2024/") == "hdfs:///counts/2024"
for path in ("s3a://games", "s3a://games/", "hdfs:///", "/", ""):
    try:
        raise AssertionError(f"{path!r} is {job.target_of(path)!r}")
    except job.Failure:
        pass

# An existing target is refused without --force, and also with --force if it contains other files than old counts.
target, *_ = fresh()
assert "--force" in refused(target, force=False)
assert refused(target) is None
(target / "part-000.parquet").unlink()
assert refused(target) is None
for starts in ({}, {"starts": None}):
    target, *_ = fresh()
    (target / "_starts.pq").unlink()
    (target / "_counts.json").write_text(json.dumps({"format": "polybook counts", "parts": [{"file": "part-000.parquet", "bytes": 3}], **starts}))
    assert refused(target) is None, starts
for name, text in [("thesis.txt", "mine"), ("part-001.parquet", "old"), ("part-000.parquet", "edited"), ("photos/a.jpg", "")]:
    target, *_ = fresh()
    (target / name).parent.mkdir(exist_ok=True)
    (target / name).write_text(text)
    assert name.split("/")[0] in refused(target), name
for about in ["{", "[]", "null", '{"format": "another"}', '{"format": "polybook counts", "parts": 3}', "\udcff"]:
    target, *_ = fresh()
    (target / "_counts.json").write_text(about, errors="surrogateescape")
    assert "not a directory of counts made by polybook" in refused(target), about
home = Path(tempfile.mkdtemp(dir=root.name)) / "home"
(home / "photos").mkdir(parents=True)
(home / "photos/a.jpg").write_text("mine")
assert refused(home)
(home.parent / "file").write_text("mine")
assert refused(home.parent / "file")
(home.parent / "empty").mkdir()
assert refused(home.parent / "empty") is None

# The success case, with and without old counts.
for with_old in (False, True):
    target, staging, _, new = fresh(with_old)
    disk = Disk()
    assert replace(disk, target, staging, force=with_old) is None
    assert content(target) == new and os.listdir(target.parent) == ["games"]
changes = disk.changes
assert changes == 6

# Whichever operation fails, alone or with all later ones, old and new counts are in place or where the message says.
for first, alone in itertools.product(range(changes), (True, False)):
    target, staging, old, new = fresh()
    failing = [first] if alone else range(first, 99)
    told = replace(Disk(failing), target, staging)
    left = {name: content(target.parent / name) for name in os.listdir(target.parent)}
    if first < 2:
        assert staging.name in told and left.pop(staging.name) == new, (first, told)
        ((name, files),) = left.items()
        assert files == old and (name == "games" or name in told), (first, told)
        assert name == "games" or not alone, first
    else:
        assert left.pop("games") == new and "replaced" in told, (first, told)
        ((name, files),) = left.items()
        assert files.items() <= old.items() and name in told, (first, told)

# Files that another program adds to the old counts are kept, before and after these are moved.
target, staging, old, new = fresh()
told = replace(Disk(before={0: lambda: (target / "thesis.txt").write_text("mine")}), target, staging)
assert "thesis.txt" in told and content(target) == {**old, "thesis.txt": b"mine"} and content(staging) == new
target, staging, old, new = fresh()
written = lambda: next(target.parent.glob("games.*.old")).joinpath("thesis.txt").write_text("mine")
told = replace(Disk(before={2: written}), target, staging)
(kept,) = target.parent.glob("games.*.old")
assert kept.name in told and content(kept) == {"thesis.txt": b"mine"} and content(target) == new

# If another job finishes first, its counts stay, and the new ones are not moved into them.
for with_old in (False, True):
    target, staging, old, new = fresh(with_old)
    first = lambda: write_counts(target, "first")
    told = replace(Disk(before={int(with_old): first}), target, staging, force=with_old)
    assert content(staging) == new and staging.name in told, told
    assert b"first" == content(target)["part-000.parquet"] and len(content(target)) == 3
    assert not with_old or content(next(target.parent.glob("games.*.old"))) == old
target, staging, old, new = fresh()
assert "--force" in replace(Disk(), target, staging, force=False)
assert content(target) == old and content(staging) == new

root.cleanup()
