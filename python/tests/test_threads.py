"""Calls among other threads, processes and signals."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import polybook
import pytest

FAMOUS = Path(__file__).resolve().parents[2] / "data/famous.pgn"

# Enough that the explorer asks them on several threads.
GAMES = 150_000


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A PGN of many short games, and an index of them."""
    room = tmp_path_factory.mktemp("many")
    game = '[White "White {0}"]\n[Black "Black {0}"]\n[Result "1-0"]\n\n1. e4 e5 1-0\n\n'
    (room / "games.pgn").write_text("".join(game.format(number % 7) for number in range(GAMES)))
    polybook.make_book([room / "games.pgn"], explorer=room / "games.idx")
    return room


def start(code, *arguments):
    """A program of its own."""
    code = "import os, signal, sys\nimport polybook\n" + textwrap.dedent(code)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# The limit ends a program that hangs. It is far above the time that a loaded machine needs.
HANGS = 1200


def end(process):
    try:
        out, err = process.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"it goes on: {process.communicate()}")
    return process.returncode, out, err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_children_of_a_fork_do_what_their_parent_did(many, tmp_path):
    process = start(
        """
        many, famous, room = sys.argv[1:]
        opened = polybook.Explorer([("games", f"{many}/games.idx")])

        def work(name):
            # The alarm ends a child that hangs.
            signal.alarm(600)
            explorer = polybook.Explorer([("games", f"{many}/games.idx")])
            asked = [one.answer(opponent="Black 3", color="white", player="White 3") for one in (explorer, opened)]
            assert asked[0] == asked[1], asked
            polybook.make_book([famous], bin=f"{room}/{name}.bin", explorer=f"{room}/{name}.idx")
            rows = sum(len(batch) for batch in polybook.positions(f"{many}/games.pgn"))
            return rows, asked[0]["white"], len(polybook.Index(f"{room}/{name}.idx").games())

        def fork(function):
            child = os.fork()
            if child == 0:
                try:
                    function()
                    os._exit(0)
                except BaseException as problem:
                    print(repr(problem), flush=True)
                    os._exit(1)
            return os.WEXITSTATUS(status) if os.WIFEXITED(status := os.waitpid(child, 0)[1]) else -status

        def same(name):
            assert work(name) == expected, name

        def grandchild():
            same("child with a child")
            assert fork(lambda: same("grandchild")) == 0

        def inherited():
            try:
                next(iterator)
            except RuntimeError as problem:
                assert "fork" in str(problem)
            else:
                raise AssertionError("the iterator is the parent's")

        expected = work("parent")
        iterator = polybook.positions(f"{many}/games.pgn")
        next(iterator)
        print([fork(lambda: same("child")), fork(grandchild), fork(inherited)], expected)
        """,
        many,
        FAMOUS,
        tmp_path,
    )
    wins = len(range(3, GAMES, 7))
    assert end(process) == (0, f"[0, 0, 0] ({2 * GAMES}, {wins}, 45)\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("opened", ["explorer", "index", "obs"])
def test_children_of_a_fork_do_not_wait_for_locks_of_other_threads(many, tmp_path, opened):
    polybook.make_book([FAMOUS], obs=tmp_path / "famous.db3", min_game=1)
    process = start(
        """
        import threading

        index, database, opened = sys.argv[1:]
        explorer = polybook.Explorer([("games", index)])
        games = polybook.Index(index)
        ask = {
            "explorer": lambda: explorer.answer(player="White 3", color="white"),
            # Other games each time, so that blocks and names are read again and again.
            "index": lambda: [games.header(id) for id in range(0, len(games), 997)],
            "obs": lambda: polybook.Obs(database).moves(),
        }[opened]
        inherited = polybook.Obs(database)
        expected = inherited.moves() if opened == "obs" else ask()
        ending = threading.Event()

        def busy():
            while not ending.is_set():
                ask()

        # SQLite's own locks are not polybook's: other threads use a database only where it is not asked for.
        threads = [threading.Thread(target=busy) for _ in range(0 if opened == "obs" else 4)]
        for thread in threads:
            thread.start()
        statuses = set()
        for _ in range(60):
            child = os.fork()
            if child == 0:
                # It ends a child that waits for a lock.
                signal.alarm(600)
                answer = inherited.moves() if opened == "obs" else ask()
                os._exit(0 if answer == expected else 1)
            statuses.add(os.waitpid(child, 0)[1])
        ending.set()
        for thread in threads:
            thread.join()
        print(statuses)
        """,
        many / "games.idx",
        tmp_path / "famous.db3",
        opened,
    )
    status, out, err = end(process)
    assert (status, out) == (0, "{0}\n"), err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_of_a_fork_cannot_ask_an_inherited_iterator_for_its_games(many):
    process = start(
        """
        iterator = polybook.positions(sys.argv[1])
        next(iterator)
        child = os.fork()
        if child == 0:
            signal.alarm(600)
            problems = 0
            for name in ("games", "rejected"):
                try:
                    getattr(iterator, name)
                except RuntimeError as problem:
                    problems += "fork" in str(problem)
            os._exit(0 if problems == 2 else 1)
        print(os.waitpid(child, 0)[1], iterator.games > 0)
        """,
        many / "games.pgn",
    )
    assert end(process) == (0, "0 True\n", "")


@pytest.mark.parametrize("threads", [-1, 0, 513, 10**9, 10**40])
def test_a_number_of_threads_has_the_bounds_of_the_command_line(tmp_path, threads):
    with pytest.raises(ValueError, match="1 to 512"):
        polybook.make_book([FAMOUS], bin=tmp_path / "a.bin", threads=threads)
    with pytest.raises(TypeError):
        polybook.make_book([FAMOUS], bin=tmp_path / "a.bin", threads="2")
    polybook.make_book([FAMOUS], bin=tmp_path / "a.bin", threads=512)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
@pytest.mark.parametrize("what", ["no game", "an empty pipe"])
def test_control_c_ends_positions_that_find_nothing(tmp_path, what):
    fifo = tmp_path / "games.pgn"
    os.mkfifo(fifo)
    process = start(
        """
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("ready", flush=True)
        iterator = None
        try:
            iterator = polybook.positions(sys.argv[1], player="Nobody")
            print("opened", flush=True)
            print(list(iterator))
        except KeyboardInterrupt:
            print("interrupted")
        if iterator is not None:
            try:
                next(iterator)
            except RuntimeError as problem:
                print(problem)
        """,
        fifo,
    )
    assert process.stdout.readline() == "ready\n"
    stop, reading = threading.Event(), threading.Event()
    game = b'[White "Somebody"]\n[Result "1-0"]\n\n1. e4 e5 1-0\n\n' * 1000

    def write():
        try:
            with open(fifo, "wb", buffering=0) as pipe:
                # More than is read ahead, so that the program is in the loop over the games.
                for _ in range(2000 if what == "no game" else 0):
                    pipe.write(game)
                reading.set()
                while what == "no game" and not stop.is_set():
                    pipe.write(game)
                stop.wait()
        except BrokenPipeError:
            pass
        finally:
            reading.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert reading.wait(HANGS) and process.poll() is None
        process.send_signal(signal.SIGINT)
        status, out, err = end(process)
    finally:
        process.kill()
        stop.set()
        # If the process never opened the pipe, its writer still waits for that.
        os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))
        writer.join()
    lines = [line for line in out.splitlines() if line != "opened"]
    assert (status, lines[0], err) == (0, "interrupted", "")
    assert what == "an empty pipe" or "interrupted" in lines[1]


class Ticking:
    """A thread that counts whenever Python's lock is free. Nobody takes the lock away meanwhile."""

    def __enter__(self):
        self.ticks, self.done = 0, False
        self.interval = sys.getswitchinterval()
        self.thread = threading.Thread(target=self.count)
        self.thread.start()
        while not self.ticks:
            time.sleep(0)
        sys.setswitchinterval(10_000)
        return self

    def count(self):
        while not self.done:
            self.ticks += 1
            time.sleep(0)

    def __exit__(self, *_):
        self.done = True
        sys.setswitchinterval(self.interval)
        self.thread.join()

    def during(self, call, calls=20_000):
        """Whether it counted during one of some calls: on a loaded machine, it wakes up too late for many of them."""
        for _ in range(calls):
            before = self.ticks
            call()
            if self.ticks != before:
                return True
        return False


def test_other_threads_run_during_each_call(many, tmp_path):
    # A header of a megabyte, a position with many records, and a game with a long name.
    text = b"@PG@\n1.0\n2\n1\nnormal\n" + b"x" * 1_000_000 + b"\n"
    text += bytes(-len(text) % 8)
    (tmp_path / "head.bin").write_bytes(b"".join(bytes(8) + text[at : at + 8] for at in range(0, len(text), 8)))
    record = polybook.key().to_bytes(8, "big") + (0o1434).to_bytes(2, "big") + b"\0\1" + bytes(4)
    (tmp_path / "wide.bin").write_bytes(record * 20_000)
    (tmp_path / "long.pgn").write_text(f'[Event "{"x" * 5_000_000}"]\n\n1. e4 1-0\n')
    polybook.make_book([tmp_path / "long.pgn"], leveldb=tmp_path / "long.idx")
    head, wide = polybook.Book(tmp_path / "head.bin"), polybook.Book(tmp_path / "wide.bin")
    index, long = polybook.Index(many / "games.idx"), polybook.Index(tmp_path / "long.idx")
    # Records of one move are added up.
    assert len(head.header()["comment"]) >= 1_000_000 and [move["weight"] for move in wide.moves()] == [20_000]
    assert len(long.header(0)["event"]) == 5_000_000
    assert index.games() == list(range(GAMES))
    with Ticking() as ticking:
        assert not ticking.during(lambda: polybook.key(), 200)
        assert ticking.during(head.header)
        assert ticking.during(wide.moves)
        assert ticking.during(wide.weighted_choice)
        assert ticking.during(index.games)
        assert ticking.during(lambda: long.header(0))
