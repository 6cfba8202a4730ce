"""Runs the Spark job.

usage: spark_cluster.py DIR BINARY KILL ARGUMENT...

With KILL "kill", the job runs on a standalone cluster: a master and two workers, as separate processes on the loopback
interface. One worker and all that it runs are killed when the first task counts. Otherwise, the job runs in one process,
which needs less time. ARGUMENTs are the job's.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark

JOB = Path(__file__).parents[2] / "contrib/spark/polybook_spark.py"
HOME = Path(pyspark.__file__).parent
PATIENCE = 1200


def start(work, name, *arguments):
    log = open(work / f"{name}.log", "wb")
    environment = dict(os.environ, SPARK_HOME=str(HOME), SPARK_LOCAL_IP="127.0.0.1", SPARK_WORKER_DIR=str(work / name))
    environment["PYSPARK_PYTHON"] = sys.executable
    return subprocess.Popen(
        [HOME / "bin/spark-class", *arguments],
        stdout=log,
        stderr=log,
        env=environment,
        start_new_session=True,
    )


def until(what, found):
    begin = time.monotonic()
    while not (answer := found()):
        if time.monotonic() - begin > PATIENCE:
            raise SystemExit(f"not in time: {what}")
        time.sleep(0.1)
    return answer


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def start_cluster(work, running):
    """Starts a master and two workers, adds them to the running processes, and returns the address of the master."""
    package = "org.apache.spark.deploy"
    options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    running.append(start(work, "master", f"{package}.master.Master", *options))
    log = work / "master.log"
    address = until("a master", lambda: re.search(r"spark://127\.0\.0\.1:\d+", log.read_text(errors="replace")))[0]
    for name in ("worker-1", "worker-2"):
        options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        running.append(start(work, name, f"{package}.worker.Worker", *options, address))
    until("two workers", lambda: log.read_text(errors="replace").count("Registering worker") == 2)
    return address


def main(directory, binary, kill, *arguments):
    work = Path(directory).absolute()
    marks = work / "marks"
    slow = work / "slow-polybook"
    # Each task reports its start, and takes long enough for a worker to be killed meanwhile.
    slow.write_text(f'#!/bin/sh\necho task >> "{marks}"\nsleep 1\nexec "{binary}" "$@"\n')
    slow.chmod(0o755)
    running = []
    try:
        address = start_cluster(work, running) if kill == "kill" else "local[2]"
        settings = {
            "spark.executor.memory": "512m",
            "spark.driver.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.speculation": "true",
        }
        job = start(
            work,
            "job",
            "org.apache.spark.deploy.SparkSubmit",
            *["--master", address],
            *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
            str(JOB),
            *["--polybook", str(slow) if kill == "kill" else binary],
            *arguments,
        )
        running.append(job)
        if kill == "kill":
            until("a task", lambda: marks.exists() or job.poll() is not None)
            # The first worker.
            end(running[1])
        status = until("the job", lambda: [job.poll()] if job.poll() is not None else None)[0]
        if status != 0:
            lines = (work / "job.log").read_text(errors="replace").splitlines()
            told = [line for line in lines if line.startswith("polybook_spark: ")]
            print("\n".join(told or lines[-40:]))
        return status
    finally:
        for process in reversed(running):
            end(process)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
