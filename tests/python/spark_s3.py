"""Runs the Spark job on games in an S3-compatible server, and writes the counts to this server as well.

usage: spark_s3.py DIR BINARY COUNTS PGN... -- OPTION...

The PGN files of DIR are put into a bucket, from where the job reads them. Spark itself writes to S3 only with Hadoop's
own libraries, so the counts are copied to the bucket and back, to the directory COUNTS.
"""

import os
import subprocess
import sys
from pathlib import Path

from moto.server import ThreadedMotoServer

JOB = Path(__file__).parents[2] / "contrib/spark/polybook_spark.py"

separator = sys.argv.index("--")
directory, binary, counts, *pgns = sys.argv[1:separator]
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
os.environ.update(
    AWS_ENDPOINT_URL=f"http://{host}:{port}",
    AWS_ACCESS_KEY_ID="key",
    AWS_SECRET_ACCESS_KEY="secret",
    AWS_REGION="us-east-1",
    AWS_EC2_METADATA_DISABLED="true",
    PYSPARK_PYTHON=sys.executable,
    SPARK_LOCAL_IP="127.0.0.1",
)

from pyarrow import fs  # noqa: E402

store = fs.S3FileSystem(endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True)
for bucket in ("games", "counts"):
    store.create_dir(bucket)
for pgn in pgns:
    fs.copy_files(os.path.join(directory, pgn), f"games/{pgn}", fs.LocalFileSystem(), store)
local = os.path.join(directory, "written")
job = [sys.executable, JOB, "--counts", local, "--polybook", binary, *sys.argv[separator + 1 :]]
done = subprocess.run([*job, *(f"s3://games/{pgn}" for pgn in pgns)], stderr=subprocess.PIPE, text=True, check=False)
assert done.returncode == 0, done.stderr
fs.copy_files(local, "counts/all", fs.LocalFileSystem(), store)
os.mkdir(os.path.join(directory, counts))
fs.copy_files("counts/all", os.path.join(directory, counts), store, fs.LocalFileSystem())
missing = subprocess.run([*job, "--force", "s3://games/missing.pgn"], stderr=subprocess.PIPE, text=True, check=False)
assert missing.returncode == 1 and "polybook_spark: s3://games/missing.pgn: not a file" in missing.stderr, missing.stderr
server.stop()
