#!/usr/bin/env python3
"""Counts games with polybook on a Spark cluster.

    spark-submit polybook_spark.py --counts DIR [OPTIONS] PGN...

writes the directory of counts that `polybook make-book --counts DIR [OPTIONS] PGN...` would write: the same
records and the same _counts.json but for its list of parts. `polybook make-book DIR --bin book.bin` then makes
the same book as of all games at once.

A task runs the polybook binary on one PGN, or on a range of a plain one, and its result is the rows that it
returns: the records, and one row with the _counts.json of the task. Nothing else leaves a task, so one that is
repeated or runs twice counts once.

    python3 polybook_spark.py sidecar DIR COUNTS...

writes DIR/_counts.json for parts that another engine made of the rows of COUNTS. With --min-game N, the engine kept the
positions of one COUNTS in which at least N moves were counted.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
import zlib
from urllib.parse import urlsplit

SIDECAR = "_counts.json"
STARTS = "_starts.pq"
NUMBERS = (
    "left_out",
    "null_moves",
    "unplayable_variations",
    "castling_dropped",
    "contradicted_results",
    "unreadable_results",
    "unfinished",
    "undated",
    "unrated",
)
DESCRIBED = 100
# Files up to this size are summed by the workers, which hold one in memory; larger ones by the driver.
HELD = 64 << 20

# The options of make-book that choose what is counted: those with a value, and those without. `rated` may have one.
VALUED = (
    "max-ply variant untagged-variant unfinished opening piece-letters min-elo max-elo min-plies since until result player "
    "color opponent opponent-rating white black event eco rating speed time-control tag not-tag rated position"
).split()
FLAGS = "keep-prefix variations require-elo require-date exact".split()

# The columns of counts by class.
CLASSES = {"speed": "speed", "rating": "rating_group", "month": "month"}
SUMS = ["wins", "draws", "losses"]
# The sums of the numbers that each game has, such as ratings.
MEASURES = ["rating_sum", "rated"]
# The half-moves of a row. One without a move has the games that end in the position.
PLIES = "CASE WHEN move = 0 THEN 0 ELSE wins + draws + losses END"
RECORD = ", ".join(
    [
        "key long, move int, black boolean, wins long, draws long, losses long, identity long",
        *(f"{name} int" for name in CLASSES.values()),
        "book_only boolean",
        *(f"{name} long" for name in MEASURES),
    ]
)
# The columns of a task's result: a record, a starting position, or the task's number and its _counts.json.
RESULT = f"{RECORD}, epd string, games long, task int, about string"


class Failure(Exception):
    """An error that ends the job, with a message of one line."""


# Inputs


def is_remote(path):
    return len(urlsplit(path).scheme) > 1 and urlsplit(path).scheme != "file"


def local(path):
    return urlsplit(path).path if path.startswith("file:") else path


def opened(path):
    """An input as a stream of bytes, from wherever it lies."""
    if not is_remote(path):
        return open(local(path), "rb")
    from pyarrow import fs

    system, inner = fs.FileSystem.from_uri(path)
    return system.open_input_file(inner)


def size_of(path):
    if not is_remote(path):
        return os.path.getsize(local(path))
    from pyarrow import fs

    system, inner = fs.FileSystem.from_uri(path)
    info = system.get_file_info(inner)
    if info.type != fs.FileType.File:
        raise Failure(f"{path}: not a file")
    return info.size


def name_of(path):
    """The name of an input in headers, as polybook has it: without directories and without its packing."""
    name = os.path.basename(local(path) if not is_remote(path) else urlsplit(path).path)
    for packing in (".gz", ".bz2", ".zst", ".zip"):
        if name.endswith(packing):
            stem = name[: -len(packing)]
            return stem if stem.lower().endswith(".pgn") else stem + ".pgn"
    return name


def is_plain(start):
    """Whether the first bytes of a file are of no packing that polybook reads."""
    return not start.startswith((b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"PK")) and not re.match(
        rb"[\x50-\x5f]\x2a\x4d\x18", start
    )


def next_game(stream, offset, size, window=1 << 20):
    """Where the first game begins at or behind an offset: at a line that begins with an Event tag behind a blank
    line, and in no comment: the last brace before it, if there is one nearby, closes one. Depends on nothing but
    the file and the offset, so that two ranges agree on where they meet."""
    if offset == 0:
        return 0
    low = max(0, offset - window)
    stream.seek(low)
    text = stream.read(offset - low)
    at = len(text)
    while True:
        more = stream.read(window)
        text += more
        for match in re.compile(rb"(?:\r\n|\r|\n)[ \t]*(?:\r\n|\r|\n)(?=\[Event )").finditer(text, max(0, at - 8)):
            begin = match.end()
            if low + begin < offset:
                continue
            opening, closing = text.rfind(b"{", 0, begin), text.rfind(b"}", 0, begin)
            if opening <= closing:
                return low + begin
        if not more:
            return size
        at = len(text) - 64


def tasks_of(inputs, split):
    """A task for each input, or for each range of a plain one: number, number of the input, path, start, end."""
    tasks = []
    for number, path in enumerate(inputs):
        size = size_of(path)
        with opened(path) as stream:
            plain = is_plain(stream.read(4))
        ranges = max(1, -(-size // split)) if plain else 1
        for i in range(ranges):
            end = -1 if i + 1 == ranges else (i + 1) * split
            tasks.append((len(tasks), number, path, i * split, end))
    return tasks


# Tasks


def feed(stream, begin, end, pipe):
    """Copies bytes of an input to a process, which may end before."""
    stream.seek(begin)
    left = end - begin
    try:
        while left > 0:
            block = stream.read(min(left, 1 << 20))
            if not block:
                break
            pipe.write(block)
            left -= len(block)
        pipe.close()
    except BrokenPipeError:
        pass


def count(binary, options, path, start, end, directory):
    """Runs polybook on an input or a range of it; answers the directory of counts and where the range begins."""
    counts = os.path.join(directory, "counts")
    command = [binary, "make-book", "-q", "--allow-empty", "--counts", counts, "--temp-dir", directory, *options]
    is_whole = start == 0 and end < 0
    begin = 0
    if is_whole and is_remote(path) and path.endswith(".zip"):
        # An archive is read from its end.
        copy = os.path.join(directory, name_of(path))
        with opened(path) as stream, open(copy, "wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)
        path = copy
    if is_whole and not is_remote(path):
        done = subprocess.run([*command, local(path)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        errors, status = done.stderr, done.returncode
    else:
        size = size_of(path)
        with opened(path) as stream:
            begin = next_game(stream, start, size)
            finish = size if end < 0 else next_game(stream, end, size)
            with tempfile.TemporaryFile(dir=directory) as log:
                child = subprocess.Popen([*command, "-"], stdin=subprocess.PIPE, stderr=log)
                try:
                    feed(stream, begin, finish, child.stdin)
                    status = child.wait()
                finally:
                    child.kill()
                    child.wait()
                log.seek(0)
                errors = log.read()
    if status != 0:
        raise Failure(f"{path}: {errors.decode(errors='replace').strip() or f'polybook ended with {status}'}")
    return counts, begin


def counted(tasks, binary, options):
    """Counts the games of tasks; yields the rows of RESULT as Arrow batches."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark import SparkFiles

    schema = pa.schema(
        [
            ("key", pa.int64()),
            ("move", pa.int32()),
            ("black", pa.bool_()),
            ("wins", pa.int64()),
            ("draws", pa.int64()),
            ("losses", pa.int64()),
            ("identity", pa.int64()),
            *((name, pa.int32()) for name in CLASSES.values()),
            ("book_only", pa.bool_()),
            *((name, pa.int64()) for name in MEASURES),
            ("epd", pa.string()),
            ("games", pa.int64()),
            ("task", pa.int32()),
            ("about", pa.string()),
        ]
    )

    def batch(columns, rows):
        return pa.RecordBatch.from_arrays(
            [columns[f.name].cast(f.type) if f.name in columns else pa.nulls(rows, f.type) for f in schema],
            schema=schema,
        )

    if binary.startswith("local:"):
        binary = binary[len("local:") :]
    else:
        binary = SparkFiles.get(os.path.basename(binary))
        os.chmod(binary, 0o755)
    for table in tasks:
        for task in table.to_pylist():
            with tempfile.TemporaryDirectory(prefix="polybook-") as directory:
                counts, begin = count(binary, options, task["path"], task["start"], task["end"], directory)
                with open(os.path.join(counts, SIDECAR), encoding="utf-8") as file:
                    about = json.load(file)
                files = [part["file"] for part in about["parts"]]
                if about.get("starts"):
                    files.append(about["starts"]["file"])
                for name in files:
                    for rows in pq.ParquetFile(os.path.join(counts, name)).iter_batches(1 << 15):
                        yield batch(dict(zip(rows.schema.names, rows.columns)), rows.num_rows)
                about["begin"] = begin
                yield batch({"task": pa.array([task["task"]]), "about": pa.array([json.dumps(about)])}, 1)


# The sidecar


def merged(abouts):
    """What there is to tell of counts that were added up, from the _counts.json of each in order."""
    options = []
    for about in abouts:
        if about["options"] not in options:
            options.append(about["options"])
    variants = {about["variant"] for about in abouts}
    if len(variants) > 1:
        raise Failure(f"counts of several variants: {', '.join(sorted(variants))}")
    classes = {",".join(about.get("by", [])) for about in abouts}
    if len(classes) > 1:
        raise Failure(f"counts of several classes: {'; '.join(sorted(name or 'none' for name in classes))}")
    if len(abouts) > 1 and any(about.get("pruned") for about in abouts):
        raise Failure("counts that lack positions, because of --min-game, cannot be added: add the counts as they were before")
    of_classes = {name: abouts[0][name] for name in ("by", "pruned") if abouts[0].get(name)}
    told = [about["games"] for about in abouts]
    games = {name: sum(one[name] for one in told) for name in ("read", "counted", "filtered", "rejected")} if all(told) else None
    sums = {name: sum(about.get(name, 0) for about in abouts) for name in ("plies", *NUMBERS)}
    by_name = {}
    for field in ("filtered_by", "variants"):
        by_name[field] = {}
        for about in abouts:
            for name, number in about.get(field, {}).items():
                by_name[field][name] = by_name[field].get(name, 0) + number
    return {
        "format": "polybook counts",
        "version": 2,
        "inputs": [name for about in abouts for name in about["inputs"]],
        "games": games,
        "options": options[0] if len(options) == 1 else " | ".join(text or "defaults" for text in options),
        "variant": variants.pop(),
        **sums,
        **of_classes,
        **by_name,
        "rejected": [game for about in abouts for game in about.get("rejected", [])][:DESCRIBED],
    }


def joined_ranges(tasks, abouts, inputs):
    """The _counts.json of each input from those of its ranges, whose games are numbered from their beginning."""
    by_input = {}
    for (_, number, path, _, _), about in zip(tasks, abouts):
        ranges = by_input.setdefault(number, [])
        games_before = sum(one["games"]["read"] for one in ranges)
        for game in about["rejected"]:
            game.update(file=os.path.basename(path), game=game["game"] + games_before, offset=game["offset"] + about["begin"])
        ranges.append(about)
    joined = []
    for number, ranges in sorted(by_input.items()):
        whole = merged(ranges)
        whole["inputs"] = [name_of(inputs[number])]
        joined.append(whole)
    return joined


def checksum(path):
    """The CRC-32 of a file."""
    crc = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            crc = zlib.crc32(block, crc)
    return crc


def positions_of(directory, parts, has_identity):
    """How many positions with moves sorted parts have."""
    import pyarrow.parquet as pq

    positions, key, known = 0, None, set()
    columns = ["move", "key", "identity"] if has_identity else ["move", "key"]
    for part in parts:
        for batch in pq.ParquetFile(os.path.join(directory, part["file"])).iter_batches(columns=columns):
            for move, *position in zip(*(batch.column(column).to_pylist() for column in columns)):
                if position[0] != key:
                    positions += len(known)
                    key, known = position[0], set()
                if move != 0:
                    known.add(tuple(position))
    return positions + len(known)


def prune(about, directory, counts, min_game):
    """Says what parts lack that were made of one directory of counts without some positions."""
    with open(os.path.join(counts, SIDECAR), encoding="utf-8") as file:
        whole = json.load(file)
    has_identity = about["variant"] != "normal"
    before, after = [
        (
            positions_of(path, parts, has_identity),
            sum(part["rows"] for part in parts),
            sum(part["plies"] for part in parts),
        )
        for path, parts in ((counts, whole["parts"]), (directory, about["parts"]))
    ]
    dropped = dict(zip(("positions", "rows", "plies"), (more - less for more, less in zip(before, after))))
    add_pruned(about, min_game, dropped)


def add_pruned(about, min_game, dropped):
    """Adds to what counts lack."""
    old = about.get("pruned") or {"min_game": 0, "positions": 0, "rows": 0, "plies": 0}
    about["pruned"] = {"min_game": max(old["min_game"], min_game)}
    about["pruned"].update({name: old[name] + number for name, number in dropped.items()})
    about["plies"] -= dropped["plies"]


def sidecar(directory, counts, min_game=0):
    """Writes _counts.json for parts that another engine made of the rows of some counts."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if min_game > 1 and len(counts) > 1:
        raise Failure("--min-game is for one COUNTS: add several up first")
    abouts = []
    for one in counts:
        with open(os.path.join(one, SIDECAR), encoding="utf-8") as file:
            abouts.append(json.load(file))
    about = merged(abouts)

    def listed(name, columns):
        path = os.path.join(directory, name)
        rows = plies = 0
        file = pq.ParquetFile(path)
        for batch in file.iter_batches(columns=columns):
            rows += batch.num_rows
            if "move" in columns:
                batch = batch.filter(pc.not_equal(batch.column("move"), 0))
            # Sums of 64-bit integers would wrap.
            wide = [batch.column(name).cast(pa.decimal128(38)) for name in columns if name != "move"]
            plies += sum(int(pc.sum(column).as_py() or 0) for column in wide)
        return {"file": name, "rows": rows, "bytes": os.path.getsize(path), "plies": plies, "crc32": checksum(path)}

    names = sorted(name for name in os.listdir(directory) if name.endswith(".parquet") and name[0] not in "._")
    about["parts"] = [listed(name, ["move", *SUMS]) for name in names]
    if os.path.exists(os.path.join(directory, STARTS)):
        about["starts"] = listed(STARTS, ["games"])
    found = {name for part in about["parts"] for name in pq.ParquetFile(os.path.join(directory, part["file"])).schema.names}
    about["by"] = [name for name in about.get("by", []) if {CLASSES[name], "book_only"} <= found]
    if min_game > 1:
        prune(about, directory, counts[0], min_game)
    check(about)
    path = os.path.join(directory, SIDECAR)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(about, file, indent=2)
        file.write("\n")
    os.replace(f"{path}.part", path)


def check(about):
    """Every half-move that was counted is in one part."""
    found = sum(part["plies"] for part in about["parts"])
    if found >= 1 << 63:
        raise Failure(f"the parts have {found} half-moves, and 2^63 - 1 are the most: a part counts twice")
    if found != about["plies"]:
        raise Failure(f"the parts have {found} half-moves and the games {about['plies']}: a part is lost or counts twice")


# Putting a directory in place


def said(failure):
    """What an exception says, in one line; Java's are carried by one with a trace."""
    java = getattr(failure, "java_exception", None)
    return str(java.toString() if java else failure).strip().partition("\n")[0]


def target_of(path):
    """The path of a directory without slashes at its end. A bucket or a root is none that can be replaced."""
    target = path.rstrip("/")
    if not os.path.basename(urlsplit(target).path):
        raise Failure(f"{path}: cannot be replaced: give a directory in it")
    return target


def beside(target, kind):
    """A name next to a target that no other job chooses."""
    return f"{target}.{uuid.uuid4().hex[:12]}.{kind}"


def files_of_counts(store, directory):
    """The names of the files in a directory of counts, if it has nothing else: _counts.json and what it lists."""
    found = store.entries(directory)
    if not found:
        return []
    sizes = {}
    if SIDECAR in found:
        try:
            about = json.loads(store.read(f"{directory}/{SIDECAR}"))
            if about["format"] == "polybook counts":
                parts = [*about["parts"], *([about["starts"]] if about.get("starts") else []), *about.get("names", [])]
                sizes = {SIDECAR: found[SIDECAR], **{part["file"]: part["bytes"] for part in parts}}
        except (ValueError, KeyError, TypeError):
            pass
    if not sizes:
        raise Failure(f"{directory}: this is not a directory of counts made by polybook: choose another directory")
    for name, size in sorted(found.items()):
        if sizes.get(name, -1) != size:
            raise Failure(f"{directory}/{name}: {SIDECAR} does not list it with this size, so --force would delete what others wrote: move it")
    return list(found)


def check_target(store, target, force):
    """Refuses a target that must not be replaced."""
    if not store.exists(target):
        return
    if not force:
        raise Failure(f"{target} exists: remove it, or replace it with --force")
    files_of_counts(store, target)


def put_in_place(store, staging, target, force):
    """Renames whole counts to their target. Old counts are moved aside before that and removed after it. After a
    failure the new counts are where they were, and the old ones too, or the message says where."""
    try:
        check_target(store, target, force)
        old = beside(target, "old") if store.exists(target) else None
        if old:
            store.rename(target, old)
        try:
            # Files that other programs wrote into the old directory so far were moved with it.
            files = files_of_counts(store, old) if old else []
            store.rename(staging, target)
            nested = f"{target}/{os.path.basename(staging)}"
            if store.exists(nested):
                # Another job made the target after the look at it, and Hadoop moves into a directory that exists.
                store.rename(nested, staging)
                raise Failure(f"{target}: another job made it meanwhile")
        except BaseException:
            if old:
                restore(store, old, target)
            raise
    except Exception as failure:
        raise Failure(f"{said(failure)}; the new counts are in {staging}") from failure
    if old:
        remove_old(store, old, files, target)


def restore(store, old, target):
    try:
        store.rename(old, target)
    except Exception as failure:
        raise Failure(f"{target}: cannot be replaced ({said(failure)}); the old counts are in {old}") from failure


def remove_old(store, old, files, target):
    """Removes the files of old counts, and their directory if nothing else came into it."""
    try:
        for name in files:
            store.remove(f"{old}/{name}")
        store.remove(old)
    except Exception as failure:
        raise Failure(f"{target}: replaced, but the old counts cannot be removed from {old}: {said(failure)}") from failure


# The job


class Store:
    """A file system of Hadoop's as the driver sees it: local, HDFS, or an object store."""

    def __init__(self, spark, path):
        self.jvm = spark.sparkContext._jvm
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self.root = self.jvm.org.apache.hadoop.fs.Path(path)
        self.system = self.root.getFileSystem(configuration)
        # Hadoop would leave a file with a checksum next to each part.
        self.system.setWriteChecksum(False)

    def path(self, text):
        return self.jvm.org.apache.hadoop.fs.Path(text)

    def exists(self, text):
        return self.system.exists(self.path(text))

    def entries(self, text):
        """The sizes of the files in a directory, by name; directories have none."""
        found = self.system.listStatus(self.path(text))
        return {one.getPath().getName(): one.getLen() if one.isFile() else None for one in found}

    def remove(self, text):
        """Removes a file or an empty directory."""
        if not self.system.delete(self.path(text), False) and self.exists(text):
            raise Failure(f"{text}: cannot be removed")

    def remove_all(self, text):
        """Removes a directory that this job made, with all that it has."""
        self.system.delete(self.path(text), True)

    def rename(self, old, new):
        """Renames to a name that is free."""
        if self.exists(new):
            raise Failure(f"{new} exists: {old} cannot be renamed to it")
        if not self.system.rename(self.path(old), self.path(new)):
            raise Failure(f"{old}: cannot be renamed to {new}")

    def read(self, text):
        stream = self.system.open(self.path(text))
        try:
            return bytes(self.jvm.org.apache.hadoop.io.IOUtils.readFullyToByteArray(stream))
        finally:
            stream.close()

    def checksum(self, text):
        """The CRC-32 of a file."""
        crc = self.jvm.java.util.zip.CRC32()
        stream = self.jvm.java.util.zip.CheckedInputStream(self.system.open(self.path(text)), crc)
        nowhere = self.jvm.java.io.OutputStream.nullOutputStream()
        self.jvm.org.apache.hadoop.io.IOUtils.copyBytes(stream, nowhere, 1 << 20, True)
        return crc.getValue()

    def write(self, text, content):
        out = self.system.create(self.path(text), True)
        out.write(bytearray(content))
        out.close()


def write_parts(frame, columns, directory):
    """Writes a frame as Parquet as small as polybook's own."""
    writer = frame.select(*columns).write.option("compression", "zstd").option("parquet.writer.version", "v2")
    writer = writer.option("parquet.compression.codec.zstd.level", "1")
    for column in ("key", "identity"):
        writer = writer.option(f"parquet.enable.dictionary#{column}", "false")
    writer.parquet(directory)


def last_of(path):
    """The name of a file, of a column with its path."""
    from pyspark.sql import functions as F

    return F.element_at(F.split(path, "/"), -1).alias("file")


def checksums(spark, store, directory, sizes):
    """The CRC-32 of each file of a directory, by name."""
    from pyspark.sql import functions as F

    found = {name: store.checksum(f"{directory}/{name}") for name, size in sizes if size > HELD}
    small = [f"{directory}/{name}" for name, size in sizes if size <= HELD]
    if small:
        files = spark.read.format("binaryFile").load(small).select(last_of(F.col("path")), F.crc32("content").alias("crc32"))
        found.update({row["file"]: row["crc32"] for row in files.collect()})
    return found


def listed(spark, store, directory, sizes, plies):
    """What _counts.json lists of the files of a directory, read back from where they lie."""
    from pyspark.sql import functions as F

    total = F.sum(F.expr(plies))
    frame = spark.read.parquet(directory).withColumn("file", last_of(F.input_file_name()))
    found = {row["file"]: row for row in frame.groupBy("file").agg(F.count("*").alias("rows"), total.alias("plies")).collect()}
    crcs = checksums(spark, store, directory, sizes)
    empty = {"rows": 0, "plies": 0}
    entries = []
    for name, size in sizes:
        of_file = found.get(name, empty)
        entries.append({"file": name, "rows": of_file["rows"], "bytes": size, "plies": int(of_file["plies"]), "crc32": crcs[name]})
    return entries


def place(spark, store, directory, target, names, plies):
    """Moves the files that Spark wrote to a directory into another, under the names of polybook; lists them."""
    files = sorted((name, size) for name, size in store.entries(directory).items() if name.endswith(".parquet"))
    entries = listed(spark, store, directory, files, plies)
    for entry, name in zip(entries, names(len(entries))):
        store.rename(f"{directory}/{entry['file']}", f"{target}/{name}")
        entry["file"] = name
    return entries


def pruned(records, about, position, min_game):
    """The records of positions in which enough moves were counted; says of the others how many they are."""
    from pyspark import StorageLevel
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    plies = F.expr(PLIES)
    records = records.withColumn("plies", F.sum(plies).over(Window.partitionBy(*position))).persist(StorageLevel.DISK_ONLY)
    dropped = records.where(F.col("plies") < min_game)
    has_moves = F.when(F.col("move") != 0, F.struct(*position))
    counted = dropped.agg(F.countDistinct(has_moves).alias("positions"), F.count("*").alias("rows"), F.sum(plies).alias("plies"))
    add_pruned(about, min_game, {name: number or 0 for name, number in counted.collect()[0].asDict().items()})
    return records.where(F.col("plies") >= min_game).drop("plies")


def run(spark, arguments, options):
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    target = target_of(arguments.counts)
    store = Store(spark, target)
    check_target(store, target, arguments.force)
    tasks = tasks_of(arguments.pgn, arguments.split)
    binary = arguments.polybook
    if not binary.startswith("local:"):
        found = shutil.which(binary)
        if found is None:
            raise Failure(f"{binary}: no such program: name it with --polybook")
        binary = os.path.abspath(found)
        spark.sparkContext.addFile(binary)
    # A wrong sum is an error, not another number.
    spark.conf.set("spark.sql.ansi.enabled", "true")
    inputs = spark.sparkContext.parallelize(tasks, len(tasks))
    inputs = spark.createDataFrame(inputs, "task int, input int, path string, start long, end long")
    # Kept, because the sidecars are asked for first. A part of it that is lost is counted again, to the same rows.
    results = inputs.mapInArrow(lambda batches: counted(batches, binary, options), RESULT).persist(StorageLevel.DISK_ONLY)
    rows = results.where("about is not null").select("task", "about").collect()
    abouts = [json.loads(row["about"]) for row in sorted(rows, key=lambda row: row["task"])]
    if len(abouts) != len(tasks):
        raise Failure(f"{len(tasks)} tasks gave {len(abouts)} results")
    about = merged(joined_ranges(tasks, abouts, arguments.pgn))
    if arguments.strict and about["rejected"]:
        first = about["rejected"][0]
        raise Failure(f"{first['file']}: game {first['game']}, byte {first['offset']}: {first['reason']}; without --strict, polybook drops the game and continues")
    if about["plies"] == 0 and not arguments.allow_empty:
        raise Failure(f"nothing was written, because none of {about['games']['read']} games can be counted; --allow-empty writes empty counts")

    has_identity = about["variant"] != "normal"
    classes = [CLASSES[name] for name in about.get("by", [])]
    classes += ["book_only"] * bool(classes)
    sums = SUMS + MEASURES * bool(classes)
    columns = ["key", "move", "black", *SUMS] + ["identity"] * has_identity + classes + MEASURES * bool(classes)
    order = ["key", "move"] + ["identity"] * has_identity + classes
    records = results.where("move is not null").groupBy(*order, "black")
    records = records.agg(*(F.sum(column).alias(column) for column in sums))
    parts = arguments.parts or max(1, -(-about["plies"] // (1 << 22)))
    if arguments.min_game > 1:
        records = pruned(records, about, ["key"] + ["identity"] * has_identity, arguments.min_game)
    records = records.repartitionByRange(parts, "key").sortWithinPartitions(*order)

    staging = beside(target, "part")
    try:
        write_parts(records, columns, f"{staging}/records")
        name_part = lambda count: [f"part-{number:03}.parquet" for number in range(count)]
        about["parts"] = place(spark, store, f"{staging}/records", staging, name_part, PLIES)
        if any(one.get("starts") for one in abouts):
            starts = results.where("epd is not null").groupBy("epd").agg(F.sum("games").alias("games"))
            write_parts(starts.coalesce(1).sortWithinPartitions("epd"), ["epd", "games"], f"{staging}/starts")
            about["starts"] = place(spark, store, f"{staging}/starts", staging, lambda count: [STARTS] * count, "games")[0]
            store.remove_all(f"{staging}/starts")
        store.remove_all(f"{staging}/records")
        check(about)
        store.write(f"{staging}/{SIDECAR}", (json.dumps(about, indent=2) + "\n").encode())
    except BaseException:
        # If this fails too, what ended the job is still what there is to say.
        with contextlib.suppress(Exception):
            store.remove_all(staging)
        raise
    put_in_place(store, staging, target, arguments.force)
    print(f"{target}: {sum(part['rows'] for part in about['parts'])} rows in {len(about['parts'])} parts", file=sys.stderr)


def size(text):
    match = re.fullmatch(r"(\d+)\s*([KMG]?)i?B?", text, re.IGNORECASE)
    if not match or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 64MiB")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2].upper()]


def parsed(line):
    """The arguments of a command line, and those of them that are for the binary."""
    parser = argparse.ArgumentParser(
        prog="polybook_spark.py",
        description="Counts games with polybook on a Spark cluster. Options that filter games are those of polybook make-book.",
        allow_abbrev=False,
    )
    parser.add_argument("pgn", nargs="+", help="PGN files: paths that every worker sees, or addresses in an object store")
    parser.add_argument("--counts", required=True, metavar="DIR", help="write the counts to this directory, on any file system of Spark")
    parser.add_argument("--by", metavar="speed,rating,month", help="count these classes apart")
    parser.add_argument("--min-game", type=int, default=0, metavar="N", help="keep the positions in which at least N moves were counted")
    parser.add_argument("--force", action="store_true", help="replace existing counts")
    parser.add_argument("--allow-empty", action="store_true", help="write counts even if no game counts")
    parser.add_argument("--strict", action="store_true", help="write nothing if a game is rejected")
    parser.add_argument("--polybook", default="polybook", metavar="FILE", help="the program, which is sent to the workers; local:FILE is installed there already")
    parser.add_argument("--split", type=size, default=size("256MiB"), metavar="SIZE", help="how much of a plain PGN a task reads [default: 256MiB]")
    parser.add_argument("--parts", type=int, metavar="N", help="how many parts to write [default: one for 4,194,304 half-moves]")
    parser.add_argument("--memory", default="512MiB", metavar="SIZE", help="memory for the counts of a task [default: 512MiB]")
    parser.add_argument("--threads", default="1", metavar="N", help="threads of a task, as in spark.task.cpus [default: 1]")
    chosen = parser.add_argument_group("which games count (see polybook make-book --help)")
    for name in VALUED:
        chosen.add_argument(f"--{name}", action="append", metavar="VALUE", help=argparse.SUPPRESS)
    for name in FLAGS:
        chosen.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--duplicates", choices=["once", "all"], help=argparse.SUPPRESS)
    # As in make-book, a value of this option follows an equals sign.
    arguments = parser.parse_args(["--rated=rated" if word == "--rated" else word for word in line])
    if arguments.duplicates == "once":
        parser.error("--duplicates once compares all games, and a task sees only its own: drop them on one machine")
    options = ["--memory", arguments.memory, "--threads", arguments.threads]
    if arguments.by:
        options.append(f"--by={arguments.by}")
    for name in VALUED:
        for value in getattr(arguments, name.replace("-", "_")) or []:
            options.append(f"--{name}={value}")
    options += [f"--{name}" for name in FLAGS if getattr(arguments, name.replace("-", "_"))]
    return arguments, options


def main(line):
    try:
        if line[:1] == ["sidecar"]:
            command = argparse.ArgumentParser(prog="polybook_spark.py sidecar", allow_abbrev=False)
            command.add_argument("directory", metavar="DIR")
            command.add_argument("counts", nargs="+", metavar="COUNTS")
            command.add_argument("--min-game", type=int, default=0, metavar="N")
            given = command.parse_args(line[1:])
            sidecar(given.directory, given.counts, given.min_game)
            return 0
        arguments, options = parsed(line)
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.appName("polybook").getOrCreate()
        try:
            run(spark, arguments, options)
        except (PySparkException, Py4JJavaError) as problem:
            # The trace of a task has what it said.
            told = re.search(r"Failure: (.+)", str(problem))
            raise Failure(told[1] if told else said(problem)) from problem
        finally:
            spark.stop()
    except (Failure, OSError) as failure:
        print(f"polybook_spark: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
