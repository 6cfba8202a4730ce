"""polybook's answers against those of python-chess."""

import ast
import doctest
import inspect
import io
import json
import os
import random
import struct
import subprocess
import sys
import threading
from pathlib import Path

import chess
import chess.pgn
import chess.polyglot
import chess.variant
import numpy as np
import polybook
import pytest

DATA = Path(__file__).resolve().parents[2] / "data"
FAMOUS = DATA / "famous.pgn"
SELFPLAY = DATA / "selfplay.pgn"


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "book.bin"
    polybook.make_book([SELFPLAY, FAMOUS], bin=path, min_game=1, max_ply=30)
    return path


def played(path):
    """The boards of the main lines in a PGN, each with its move, the result and the number of the game."""
    with open(path) as pgn:
        number = 0
        while game := chess.pgn.read_game(pgn):
            board = game.board()
            for move in game.mainline_moves():
                yield board, move, game.headers["Result"], number
                board.push(move)
            number += 1


def test_keys_are_those_of_python_chess():
    assert polybook.key() == chess.polyglot.zobrist_hash(chess.Board())
    for board, *_ in played(FAMOUS):
        assert polybook.key(board) == polybook.key(board.fen()) == chess.polyglot.zobrist_hash(board)


def test_book_moves_are_those_of_python_chess(book):
    ours = polybook.Book(book)
    with chess.polyglot.open_reader(book) as theirs:
        for board, *_ in played(FAMOUS):
            expected = {(entry.move.uci(), entry.weight) for entry in theirs.find_all(board)}
            assert {(move["uci"], move["weight"]) for move in ours.moves(board)} == expected
    moves = ours.moves()
    assert [move["weight"] for move in moves] == sorted((move["weight"] for move in moves), reverse=True)
    assert sum(move["probability"] for move in moves) == pytest.approx(100)
    assert chess.Board().parse_san(moves[0]["san"]).uci() == moves[0]["uci"]
    assert ours.header()["variants"] == ["normal"]


def test_moves_are_chosen_by_weight(book):
    ours = polybook.Book(book)
    chosen = [ours.weighted_choice()["uci"] for _ in range(3000)]
    for move in ours.moves():
        share = chosen.count(move["uci"]) / len(chosen)
        assert share == pytest.approx(move["probability"] / 100, abs=0.06)
    with pytest.raises(IndexError):
        ours.weighted_choice("8/8/8/4k3/8/8/4K3/8 w - - 0 1")


def test_illegal_moves_have_no_share(tmp_path):
    path = tmp_path / "odd.bin"
    records = [(8, 70), (0o1434, 30), (0o1333, 10)]
    path.write_bytes(b"".join(struct.pack(">QHHI", polybook.key(), move, weight, 0) for move, weight in records))
    ours = polybook.Book(path)
    assert [(move["san"], move["probability"]) for move in ours.moves()] == [(None, None), ("e4", 75.0), ("d4", 25.0)]
    assert {ours.weighted_choice()["san"] for _ in range(100)} == {"e4", "d4"}


def test_every_half_move_becomes_a_row():
    batches = list(polybook.positions(SELFPLAY, unfinished="draw"))
    keys, moves, results, games = (
        np.concatenate([getattr(batch, name) for batch in batches]) for name in ("keys", "moves", "results", "games")
    )
    assert (keys.dtype, moves.dtype, results.dtype, games.dtype) == (np.uint64, np.uint16, np.int8, np.uint64)
    score = {"1-0": 1, "0-1": -1}
    row = 0
    for board, move, result, number in played(SELFPLAY):
        if board.ply() < 4:
            assert keys[row] == chess.polyglot.zobrist_hash(board)
        if not board.is_castling(move) and move.promotion is None:
            assert moves[row] == move.to_square | move.from_square << 6
        assert (results[row], games[row]) == (score.get(result, 0), number)
        row += 1
    assert row == len(keys)


def test_clocks_and_evaluations_are_those_of_python_chess(tmp_path):
    annotated = Path(__file__).resolve().parents[2] / "tests/page/annotated.pgn"
    pgn = tmp_path / "games.pgn"
    more = "1. e4 {[%eval #-3] [%clk 12:00:00]} e5 {[%eval 35] [%clk 3:00]} 2. d4 {[%eval -0.3,20]} d5 {[%clk 0:00:00.5]} 1-0\n"
    pgn.write_text(annotated.read_text() + "\n" + more)
    without = polybook.positions(pgn, comments=False)
    assert all(batch.clock is None and batch.eval is None for batch in without)
    batches = list(polybook.positions(pgn))
    clock, evals = (np.concatenate([getattr(batch, name) for batch in batches]) for name in ("clock", "eval"))
    assert (clock.dtype, evals.dtype) == (np.float64, np.float64)
    expected = []
    with open(pgn) as games:
        while game := chess.pgn.read_game(games):
            for node in game.mainline():
                score = node.eval()
                expected.append((node.clock(), score and score.white().score(mate_score=32768)))
    # Other programs may mean minutes and seconds, or centipawns: such values are ignored.
    expected[-3] = (None, None)
    assert len(expected) > 60 and expected[-4:] == [(43200, -32765), (None, None), (None, -30), (0.5, None)]
    nan = lambda value: np.nan if value is None else value
    np.testing.assert_array_equal(clock, [nan(clock) for clock, _ in expected])
    np.testing.assert_array_equal(evals, [nan(score) for _, score in expected])


def test_options_choose_games_and_refuse_what_is_none(tmp_path):
    pgn = tmp_path / "games.pgn"
    pgn.write_text('[White "A"]\n[WhiteElo "2500"]\n[BlackElo "2500"]\n\n1. e4 1-0\n\n1. d4 Ke4 0-1\n\n1. c4 *\n')
    games = lambda **options: np.concatenate([b.games for b in polybook.positions(pgn, **options)]).tolist()
    assert games() == [0]
    assert games(unfinished="draw") == [0, 2]
    assert games(require_elo=True, player="A", result=["1-0", "0-1"]) == [0]
    iterator = polybook.positions(pgn)
    list(iterator)
    assert (iterator.games, iterator.rejected) == (3, 1)
    with pytest.raises(TypeError, match="min_elephants"):
        polybook.positions(pgn, min_elephants=3)
    with pytest.raises(ValueError):
        polybook.make_book([pgn], since="yesterday")


def test_sources_are_a_text_a_path_or_a_list_of_them(tmp_path):
    keys = lambda pgn: np.concatenate([batch.keys for batch in polybook.positions(pgn)])
    alone = keys(FAMOUS)
    for source in (str(FAMOUS), [FAMOUS], (str(FAMOUS),)):
        np.testing.assert_array_equal(keys(source), alone)
        report = polybook.make_book(source, explorer=tmp_path / "famous.idx", force=True)
        assert report["games"]["counted"] == 45
    both = polybook.positions([FAMOUS, SELFPLAY])
    games = np.concatenate([batch.games for batch in both])
    of_famous = polybook.positions(FAMOUS)
    count = sum(len(batch) for batch in of_famous)
    assert (games[count - 1], games[count]) == (44, 45)
    list(of_famous)
    assert both.games == of_famous.games + 500
    index = tmp_path / "famous.idx"
    for sources in (index, str(index), [index], [("famous", index)], {"famous": index}.items()):
        assert len(polybook.Explorer(sources)) == 45
    # An index without a name is named after its directory.
    assert polybook.Explorer([index]).answer(source="famous")["white"] > 0
    for call, problem in [
        (lambda: polybook.make_book(3, bin="x.bin"), "inputs must be a path or a list of paths, not int"),
        (lambda: polybook.make_book([3], bin="x.bin"), "inputs must be a path or a list of paths, not list"),
        (lambda: polybook.positions(None), "pgn must be a path or a list of paths, not NoneType"),
        (lambda: polybook.Explorer(3), "sources must be a path, or a list of paths or of pairs of a name and a path, not int"),
        (lambda: polybook.positions(FAMOUS, min_elo="high"), "min_elo must be a number, not str"),
        (lambda: polybook.positions(FAMOUS, min_elo=True), "min_elo must be a number, not bool"),
        (lambda: polybook.positions(FAMOUS, exact="yes"), "exact must be True or False, not str"),
        (lambda: polybook.positions(FAMOUS, rating=2.5), "rating must be a text, a number or a list of them, not float"),
        (lambda: polybook.positions(FAMOUS, player=3), "player must be a text or a list of texts, not int"),
        (lambda: polybook.positions(FAMOUS, player=["A", 3]), "player must be a text or a list of texts, not list"),
    ]:
        with pytest.raises(TypeError) as error:
            call()
        assert str(error.value) == problem
    with pytest.raises(ValueError, match="^since: "):
        polybook.positions(FAMOUS, since="yesterday")
    with pytest.raises(ValueError, match="^the list of PGN files is empty: name at least one file"):
        polybook.positions([])
    assert list(polybook.positions([FAMOUS]))
    # An iterator that failed does not continue with the file after the missing one.
    batches = polybook.positions([FAMOUS, tmp_path / "none.pgn", SELFPLAY])
    with pytest.raises(OSError, match="none.pgn"):
        list(batches)
    with pytest.raises(RuntimeError, match="failed before"):
        next(batches)
    for role in ("player", "opponent"):
        with pytest.raises(ValueError, match="^21 names are too many"):
            polybook.Explorer(index).answer(**{role: ["x"] * 21})


def test_a_player_has_several_names(tmp_path):
    names = ["Fischer, Robert James", "Spassky, Boris V"]
    polybook.make_book(FAMOUS, explorer=tmp_path / "idx")
    explorer = polybook.Explorer(tmp_path / "idx")
    count = lambda **options: sum(explorer.answer(**options)[name] for name in ("white", "draws", "black"))
    games = [game for game in headers(FAMOUS) if {game["White"], game["Black"]} & set(names)]
    assert count(player=names) == len(games) > count(player=names[0]) > 0


def headers(path):
    with open(path) as pgn:
        while found := chess.pgn.read_headers(pgn):
            yield found


def test_half_moves_become_a_data_frame(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = polybook.positions([FAMOUS, SELFPLAY], max_ply=4).to_frame()
    assert isinstance(frame, pandas.DataFrame)
    arrays = {"key": "keys", "move": "moves", "result": "results", "game": "games", "clock": "clock", "eval": "eval"}
    assert list(frame.columns) == list(arrays)
    batches = list(polybook.positions([FAMOUS, SELFPLAY], max_ply=4))
    for name in frame.columns:
        expected = np.concatenate([getattr(batch, arrays[name]) for batch in batches])
        # Keys and moves have the types of counts. A signed key has the bits of the unsigned one.
        if name == "key":
            expected = expected.view(np.int64)
        elif name == "move":
            expected = expected.astype(np.int32)
        assert frame[name].dtype == expected.dtype
        np.testing.assert_array_equal(frame[name], expected)
    assert len(batches[0].to_frame()) == len(batches[0])
    without = polybook.positions(FAMOUS, comments=False).to_frame()
    assert list(without.columns) == ["key", "move", "result", "game"]
    assert (frame["key"] < 0).any()
    polybook.make_book([FAMOUS, SELFPLAY], explorer=tmp_path / "both.idx")
    assert set(frame["game"]) == set(polybook.Index(tmp_path / "both.idx").games())
    empty = polybook.positions(FAMOUS, player="nobody").to_frame()
    assert len(empty) == 0 and list(empty.columns) == list(frame.columns)
    # The frame is a table of pyarrow if neither pandas nor polars is installed. pyarrow looks for pandas when it makes its first table.
    pyarrow = pytest.importorskip("pyarrow")
    pyarrow.table({"a": np.zeros(1)})
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    table = polybook.positions(FAMOUS).to_frame()
    assert isinstance(table, pyarrow.Table) and table.num_columns == 6
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="install one of them, for example with pip install pandas"):
        polybook.positions(FAMOUS).to_frame()
    monkeypatch.undo()
    assert list(polybook.positions(FAMOUS).to_frame().columns) == list(frame.columns)


def test_games_are_filtered_by_opening(tmp_path):
    report = polybook.make_book(FAMOUS, bin=tmp_path / "sicilian.bin", min_game=1, opening="Sicilian Defense")
    assert 0 < report["games"]["counted"] < report["games"]["read"]
    board = chess.Board()
    board.push_san("e4")
    assert {move["uci"] for move in polybook.Book(tmp_path / "sicilian.bin").moves(board)} == {"c7c5"}
    with pytest.raises(ValueError, match="opening: "):
        polybook.make_book(FAMOUS, bin=tmp_path / "none.bin", opening="xx")


class Annotations:
    """The typed dictionaries of the stub."""

    def __init__(self, path):
        stub = ast.parse(path.read_text())
        classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
        self.fields = {name: self._fields(node, classes) for name, node in classes.items()}

    def _fields(self, node, classes):
        inherited = [self._fields(classes[base.id], classes) for base in node.bases if getattr(base, "id", "") in classes]
        own = {field.target.id: field.annotation for field in node.body if isinstance(field, ast.AnnAssign)}
        return {name: field for fields in [*inherited, own] for name, field in fields.items()}

    def check(self, value, annotation, where=""):
        """Checks that a value has the annotated type, and that a dictionary has the annotated fields."""
        if isinstance(annotation, ast.Constant):
            annotation = ast.Name(annotation.value)
        if isinstance(annotation, ast.Subscript):
            kind, inner = annotation.value.id, annotation.slice
            if kind == "Optional":
                return value is None or self.check(value, inner, where)
            if kind == "NotRequired":
                return self.check(value, inner, where)
            if kind == "Literal":
                assert value in ast.literal_eval(inner), where
            elif kind == "List":
                assert isinstance(value, list), where
                for item in value:
                    self.check(item, inner, where)
            else:
                assert kind == "Mapping" and isinstance(value, dict), where
        elif annotation.id in self.fields:
            fields = self.fields[annotation.id]
            required = {name for name, field in fields.items() if getattr(getattr(field, "value", None), "id", "") != "NotRequired"}
            assert required <= set(value) <= set(fields), (where, set(value) ^ required)
            for name, item in value.items():
                self.check(item, fields[name], f"{where}.{name}")
        else:
            types = {"str": str, "int": int, "float": (int, float), "bool": bool}
            assert isinstance(value, types[annotation.id]), (where, value)


def test_results_have_the_types_of_the_annotations(tmp_path):
    annotations = Annotations(Path(polybook.__file__).with_name("__init__.pyi"))
    online = DATA / "online.pgn"
    outputs = {name: tmp_path / name for name in ["bin", "leveldb", "explorer", "obs", "counts"]}
    report = polybook.make_book([FAMOUS, online, SELFPLAY], min_game=1, minimax=2, **outputs)
    annotations.check(report, ast.Name("Report"))
    explorer = polybook.Explorer(tmp_path / "explorer")
    for position in [None, chess.Board("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1")]:
        for options in [{}, {"history": True, "resulting": True}, {"view": "player", "player": "anna_plays"}]:
            annotations.check(explorer.answer(position, **options), ast.Name("Answer"))
        for options in [{}, {"player": "anna_plays"}]:
            annotations.check(explorer.openings(position, **options), ast.Name("OpeningTable"))
        prepared = explorer.prepare(position, player="anna_plays", opponent="zeitnot", color="black", min_game=1)
        annotations.check(prepared, ast.Name("Preparation"))


def test_signatures_are_those_of_the_annotations(tmp_path):
    stub = ast.parse(Path(polybook.__file__).with_name("__init__.pyi").read_text())
    functions = {node.name: node for node in ast.walk(stub) if isinstance(node, ast.FunctionDef)}
    typed = {node.name: node.body for node in stub.body if isinstance(node, ast.ClassDef)}
    shown = {}
    for function in (
        polybook.make_book,
        polybook.positions,
        polybook.Explorer.answer,
        polybook.Explorer.openings,
        polybook.Explorer.prepare,
    ):
        parameters = inspect.signature(function).parameters.values()
        defaults = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
        shown[function.__name__] = defaults
        arguments = functions[function.__name__].args
        annotated = [argument.arg for argument in arguments.kwonlyargs]
        # A parameter without a default is required.
        values = [eval(ast.unparse(value)) if value else inspect.Parameter.empty for value in arguments.kw_defaults]
        assert list(defaults) == annotated
        assert list(defaults.values()) == values
    # The functions know each condition: they refuse the value, not the name.
    polybook.make_book(FAMOUS, explorer=tmp_path / "idx")
    explorer = polybook.Explorer(tmp_path / "idx")
    players = {"player": "Morphy, Paul", "opponent": "Anderssen, Adolf", "color": "black"}
    for kind, calls in {
        "_PreparationConditions": [lambda **given: explorer.prepare(**players, **given)],
        "_Conditions": [
            lambda **given: polybook.make_book(FAMOUS, **given),
            lambda **given: polybook.positions(FAMOUS, **given),
            explorer.answer,
            explorer.openings,
        ],
    }.items():
        for field in typed[kind]:
            for call in calls if isinstance(field, ast.AnnAssign) else []:
                with pytest.raises(TypeError, match=f"^{field.target.id} must be "):
                    call(**{field.target.id: object()})
    # Passing all defaults changes nothing, so each option is known and its default is right.
    outputs = ("progress", "bin", "leveldb", "explorer", "obs", "counts")
    options = {name: value for name, value in shown["make_book"].items() if name not in outputs}
    polybook.make_book(FAMOUS, bin=tmp_path / "short.bin")
    polybook.make_book(FAMOUS, bin=tmp_path / "long.bin", **options)
    assert (tmp_path / "short.bin").read_bytes() == (tmp_path / "long.bin").read_bytes()
    for short, long in zip(polybook.positions(SELFPLAY), polybook.positions(SELFPLAY, **shown["positions"])):
        np.testing.assert_array_equal(short.keys, long.keys)
    assert explorer.answer() == explorer.answer(**shown["answer"])
    assert explorer.openings() == explorer.openings(**shown["openings"])
    assert explorer.prepare(**players) == explorer.prepare(**{**shown["prepare"], **players})
    # `help` shows the signature and a description of everything.
    classes = (polybook.Book, polybook.Index, polybook.Obs, polybook.Explorer)
    for thing in (polybook.key, *(function for kind in classes for function in functions_of(kind))):
        assert thing.__doc__ and inspect.signature(thing)


def functions_of(kind):
    return [value for name, value in vars(kind).items() if not name.startswith("_") and callable(value)]


def test_errors_name_the_game_and_the_move(tmp_path):
    pgn = tmp_path / "games.pgn"
    pgn.write_text("1. e4 1-0\n\n1. d4 Ke4 0-1\n")
    for strict in (
        lambda: polybook.make_book([pgn], bin=tmp_path / "book.bin", strict=True),
        lambda: list(polybook.positions(pgn, strict=True)),
    ):
        with pytest.raises(polybook.GameError) as raised:
            strict()
        err = raised.value
        assert (err.game, err.ply, err.move, err.file) == (1, 1, "Ke4", str(pgn))
        assert pgn.read_bytes()[err.offset :].startswith(b"Ke4")
    assert not (tmp_path / "book.bin").exists()
    with pytest.raises(FileNotFoundError) as missing:
        polybook.Book(tmp_path / "missing.bin")
    assert missing.value.filename == str(tmp_path / "missing.bin")
    with pytest.raises(polybook.Error, match="multiple of 16"):
        (tmp_path / "short.bin").write_bytes(b"\1" * 17)
        polybook.Book(tmp_path / "short.bin")


def test_progress_is_told_and_can_stop_a_run(tmp_path):
    told = []
    report = polybook.make_book([SELFPLAY], bin=tmp_path / "a.bin", progress=lambda *state: told.append(state))
    assert told[-1][1:] == (1.0, report["games"]["read"])

    def stop(phase, fraction, games):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        polybook.make_book([SELFPLAY], bin=tmp_path / "b.bin", progress=stop)


def test_python_runs_meanwhile(tmp_path):
    pgn = tmp_path / "games.pgn"
    pgn.write_bytes(SELFPLAY.read_bytes() * 20)
    done = threading.Event()
    counted = []

    def make():
        polybook.make_book([pgn], bin=tmp_path / "book.bin", threads=1)
        done.set()

    thread = threading.Thread(target=make)
    thread.start()
    while not done.is_set():
        counted.append(1)
    thread.join()
    assert len(counted) > 1000


def printed(*arguments):
    """The document that a command prints."""
    return json.loads(subprocess.check_output([sys.executable, "-m", "polybook", *map(str, arguments), "--json"]))


def rounded(value):
    """A value as in the JSON of commands, which has six decimals."""
    return round(value, 6) if isinstance(value, float) else value


def rows(openings):
    """The values of openings that tables have in common, by their names."""
    names = ("white", "draws", "black", "score", "line", "points", "last_played")
    return {
        row["name"]: [rounded(value) for value in [*(row.get(name) for name in names), *(row["score_range"] or ())]]
        for row in openings
    }


def test_openings_are_those_of_the_command(tmp_path):
    polybook.make_book(FAMOUS, explorer=tmp_path / "idx")
    explorer = polybook.Explorer(tmp_path / "idx")
    after_e4 = chess.Board()
    after_e4.push_san("e4")
    for position, options in (
        (None, {}),
        (after_e4, {"player": "Kasparov, Gary"}),
        (None, {"player": ["Kasparov, Gary", "Morphy, Paul"], "color": "white", "result": "win"}),
        (None, {"player": "Kasparov, Gary", "result": "loss"}),
        (None, {"player": "Kasparov, Gary", "result": ["win", "1/2-1/2"]}),
        (None, {"opening": "Sicilian Defense", "since": "1900", "result": ["1-0", "1/2-1/2"]}),
    ):
        table = explorer.openings(position, **options)
        flags = ["--exact"] if "player" in options else []
        for name, values in options.items():
            for value in [values] if isinstance(values, str) else values:
                flags += [f"--{name}", value]
        moves = ["--moves", "e4"] if position else []
        expected = printed("openings", tmp_path / "idx", *flags, *moves)
        for name in ("games", "white", "draws", "black", "unnamed", "average_score"):
            assert rounded(table[name]) == expected[name], (options, name)
        found = rows(row for family in table["families"] for row in family["variations"])
        shown = rows(row for family in expected["families"] for row in family.get("variations", []))
        assert found == shown and (shown or options.get("result")), options
    with pytest.raises(ValueError, match="^result: use 1-0"):
        explorer.openings(player="Kasparov, Gary", result=["win", "nonsense"])
    with pytest.raises(ValueError, match="also give the name of a player"):
        explorer.openings(result="win")
    assert explorer.openings(player="Kasparov, Gary", result="win")
    with pytest.raises(TypeError, match="unexpected keyword argument 'view'"):
        explorer.openings(view="masters")


def test_a_preparation_is_that_of_the_command(tmp_path):
    polybook.make_book(FAMOUS, explorer=tmp_path / "idx")
    explorer = polybook.Explorer(tmp_path / "idx")
    (tmp_path / "mine.pgn").write_text("1. e4 c5 2. Nf3 d6 *\n")
    players = ["--player", "Kasparov, Gary", "--opponent", "Fischer, Robert James", "--color", "black", "--exact"]
    names = {"player": "Kasparov, Gary", "opponent": ["Fischer, Robert James"], "color": "black"}

    def prepared(*options):
        preparation = printed("prepare", tmp_path / "idx", *players, *options)
        # Only the command reports which names of the games it matched.
        assert preparation.pop("matched_players") == ["Kasparov, Gary"]
        assert preparation.pop("matched_opponents") == ["Fischer, Robert James"]
        return preparation

    assert explorer.prepare(**names) == prepared()
    # A board has moves, whose openings name the lines that continue from it.
    moves = "c4 e6 Nf3 d5 d4 Nf6 Nc3 Be7 Bg5 O-O e3 h6 Bh4 b6 cxd5 Nxd5 Bxe7 Qxe7 Nxd5 exd5"
    board = chess.Board()
    for move in moves.split():
        board.push_san(move)
    continued = explorer.prepare(board, **names, min_game=1)
    assert continued == prepared("--moves", moves, "--min-game", "1")
    assert continued["lines"][0]["opening"]["eco"] == "D59"
    # Both indexes contain the same games.
    polybook.make_book(FAMOUS, explorer=tmp_path / "copy")
    twice = polybook.Explorer([tmp_path / "idx", tmp_path / "copy"])
    assert twice.prepare(**names)["theirs"] == explorer.prepare(**names)["theirs"]
    games = explorer.prepare(**names)["theirs"]["games"]
    assert twice.prepare(**names, duplicates="all")["theirs"]["games"] == 2 * games
    assert twice.answer(duplicates="once")["white"] == explorer.answer()["white"] == twice.answer()["white"] / 2
    assert explorer.prepare(**names, lines=1, since="1960") == prepared("--lines", "1", "--since", "1960")
    assert explorer.prepare(**names, half_life=2) == prepared("--half-life", "2")
    assert explorer.prepare(**names, half_life=2)["half_life"] == 2
    known = explorer.prepare(**names, repertoire=tmp_path / "mine.pgn")
    assert known == prepared("--repertoire", tmp_path / "mine.pgn")
    answers = {move["san"]: move["answer"] for move in known["moves"]}
    assert answers["e4"]["san"] == "c5" and answers["e4"]["source"] == "repertoire"
    (tmp_path / "bad.pgn").write_text("1. e4 c5 2. Nf3 d6 *\n\n1. e4 e5 2. Ke3 *\n")
    with pytest.warns(UserWarning, match="Ke3"):
        assert explorer.prepare(**names, repertoire=tmp_path / "bad.pgn", min_game=1)["lines"]
    (tmp_path / "other.pgn").write_text('[Variant "Atomic"]\n\n1. e4 c5 2. Nf3 d6 *\n')
    with pytest.raises(polybook.Error, match="give a variant of the repertoire with the argument variant"):
        explorer.prepare(**names, repertoire=tmp_path / "other.pgn")
    assert explorer.prepare(**names, repertoire=tmp_path / "other.pgn", variant="atomic")["lines"] == []
    with pytest.raises(polybook.Error, match="pipe or a device"):
        explorer.prepare(**names, repertoire=os.devnull)
    for wrong, problem in (
        ({"player": "A", "opponent": "B"}, TypeError),
        ({"player": "A", "opponent": "B", "color": "red"}, ValueError),
        ({"player": "A", "opponent": "B", "color": None}, ValueError),
        ({"player": [], "opponent": "B", "color": "white"}, ValueError),
        ({"player": "A", "opponent": "B", "color": "white", "result": "loss"}, ValueError),
        ({"player": 7, "opponent": "B", "color": "white"}, TypeError),
        ({**names, "history": True}, TypeError),
        ({**names, "half_life": 0}, ValueError),
        ({**names, "half_life": "2"}, TypeError),
        ({**names, "duplicates": "none"}, ValueError),
    ):
        with pytest.raises(problem):
            explorer.prepare(**wrong)
    for result in ("win", "1-0"):
        with pytest.raises(ValueError, match="result does not apply to a preparation: leave result out"):
            explorer.prepare(**names, result=result)
    assert explorer.prepare(**names) == prepared()


def test_index_database_and_explorer(tmp_path):
    polybook.make_book(
        [FAMOUS],
        leveldb=tmp_path / "idx",
        explorer=tmp_path / "explorer.idx",
        obs=tmp_path / "games.obs.db3",
        min_game=1,
    )
    board = chess.Board()
    for move in ("e4", "e5", "Nf3", "d6"):
        board.push_san(move)
    headers = []
    for name in ("idx", "explorer.idx"):
        index = polybook.Index(tmp_path / name)
        assert len(index) == 45
        (id,) = index.games(board)
        headers.append([index.header(id) for id in range(45)])
        header = index.header(id)
        assert header["white"].startswith("Morphy")
        assert (header["white_rating"], header["file"]) == (None, str(FAMOUS))
        game = chess.pgn.read_game(io.StringIO(index.text(id).decode()))
        assert list(game.mainline_moves())[:4] == board.move_stack
    # Only the explorer's index has the round.
    assert "round" in headers[1][0] and "round" not in headers[0][0]
    assert [{**header, "round": None} for header in headers[0]] == [{**header, "round": None} for header in headers[1]]

    rows = polybook.Obs(tmp_path / "games.obs.db3").moves()
    answer = polybook.Explorer([("famous", tmp_path / "explorer.idx")]).answer(chess.Board())
    by_move = {move["uci"]: (move["white"], move["draws"], move["black"]) for move in answer["moves"]}
    shown = {row["uci"]: (row["wins"], row["draws"], row["losses"]) for row in rows}
    assert by_move.items() <= shown.items() and len(by_move) > 3
    assert answer["white"] + answer["draws"] + answer["black"] == 45
    explorer = polybook.Explorer(tmp_path / "explorer.idx")
    numbers = ("white", "draws", "black")
    for move in explorer.answer(resulting=True, until=1950)["moves"]:
        after = chess.Board()
        after.push_uci(move["uci"])
        there, resulting = explorer.answer(after, until=1950), move["resulting"]
        assert [resulting[name] for name in numbers] == [there[name] for name in numbers]
        assert resulting["games"] == sum(there[name] for name in numbers) and resulting["ended"] == 0
    report = polybook.make_book([FAMOUS], counts=tmp_path / "pruned", by=["month", "speed"], min_game=3)
    assert report["counts"]["pruned"]["min_game"] == 3
    with pytest.raises(ValueError, match="speed, rating and month"):
        polybook.make_book([FAMOUS], counts=tmp_path / "none", by="elo")
    polybook.make_book([FAMOUS], counts=tmp_path / "counts")
    polybook.make_book([tmp_path / "counts"], bin=tmp_path / "of_counts.bin")
    polybook.make_book([FAMOUS], bin=tmp_path / "of_games.bin")
    assert (tmp_path / "of_counts.bin").read_bytes() == (tmp_path / "of_games.bin").read_bytes()
    with pytest.raises(FileExistsError, match="exists: remove it, or pass force=True to replace it"):
        polybook.make_book([FAMOUS], leveldb=tmp_path / "idx")
    polybook.make_book([FAMOUS], leveldb=tmp_path / "idx", force=True)
    with pytest.raises(ValueError, match="together leave no move: give only one of them"):
        polybook.make_book([FAMOUS], bin=tmp_path / "one.bin", only_white=True, only_black=True)
    polybook.make_book([FAMOUS], bin=tmp_path / "one.bin", only_white=True)


def test_games_reach_a_position_with_and_without_the_en_passant_square_of_a_pinned_pawn(tmp_path):
    (tmp_path / "games.pgn").write_text(
        "1. e4 e5 2. f4 exf4 3. e5 d5 4. Nf3 Qe7 *\n\n1. e4 e5 2. f4 exf4 3. e5 Qe7 4. Nf3 d5 *\n"
    )
    polybook.make_book([tmp_path / "games.pgn"], leveldb=tmp_path / "idx")
    index = polybook.Index(tmp_path / "idx")
    for square in ("-", "d6"):
        fen = f"rnb1kbnr/ppp1qppp/8/3pP3/5p2/5N2/PPPP2PP/RNBQKB1R w KQkq {square} 0 5"
        assert index.games(fen) == [0, 1], fen


def test_variants_are_told_by_their_boards(tmp_path):
    polybook.make_book([DATA / "variants.pgn"], bin=tmp_path / "atomic.bin", variant="atomic", min_game=1)
    board = chess.variant.AtomicBoard()
    moves = polybook.Book(tmp_path / "atomic.bin").moves(board)
    assert moves and all(chess.Move.from_uci(move["uci"]) in board.legal_moves for move in moves)
    assert polybook.key(board) != polybook.key(chess.Board())
    random.seed(1)
    start = chess.Board.from_chess960_pos(random.randrange(960))
    assert polybook.key(start) == polybook.key(start.fen(), variant="fischerandom")


def test_the_examples_of_the_documentation(tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(DATA)
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(polybook)
    assert (results.failed, results.attempted) == (0, 9)


def test_the_example_of_the_package_page_runs_by_itself(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).resolve().parents[1] / "README.md").read_text()
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    assert capsys.readouterr().out.startswith("1 game\ne4 ")
    pytest.importorskip("pandas")
    exec(page.split("```python\n")[2].split("```")[0], names)
    assert "Bb5" in capsys.readouterr().out
    # Castling and promotions are pushed too.
    frame = polybook.positions([FAMOUS, SELFPLAY]).to_frame()
    last = frame.groupby("game").tail(1).index
    for row in last[::40]:
        assert polybook.key(names["board_before"](frame, row)) == int(frame["key"][row]) % 2**64
    polars = pytest.importorskip("polars")
    same = polars.DataFrame({name: frame[name].to_numpy() for name in ("game", "move")})
    assert names["board_before"](same, last[0]) == names["board_before"](frame, last[0])


def test_the_recipe_by_opening_rating_and_year_counts_each_game(tmp_path, monkeypatch, capsys):
    def game(date, rating, result, moves):
        ratings = f'[WhiteElo "{rating}"]\n[BlackElo "{rating}"]\n' if rating else ""
        return f'[Date "{date}"]\n{ratings}[Result "{result}"]\n\n{moves} {result}\n\n'

    games = (
        game("2016.01.02", 2050, "1-0", "1. e4 c5"),
        game("2016.??.??", 2199, "*", "1. e4 c5"),
        game("2024.12.31", None, "1/2-1/2", "1. d4 d5 2. c4"),
        game("????.??.??", 2050, "0-1", "1. e4 c5"),
    )
    (tmp_path / "games.pgn").write_text("".join(games))
    monkeypatch.chdir(tmp_path)
    polybook.make_book("games.pgn", explorer="games.idx")
    page = (DATA.parent / "docs" / "data-person.md").read_text()
    recipe = page.split("## By opening, rating and year")[1]
    exec(recipe.split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out.split() == [
        "year,rating,opening,games,white,draws,black",
        "2016,2000,Sicilian",
        "Defense,2,1,0,0",
        "2024,unknown,Queen's",
        "Gambit,1,0,1,0",
    ]


def test_the_recipe_for_half_moves_groups_them_by_position(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas")
    (tmp_path / "games.pgn").write_text("1. e4 e5 1-0\n\n1. d4 d5 1-0\n")
    monkeypatch.chdir(tmp_path)
    page = (DATA.parent / "docs" / "data-person.md").read_text()
    recipe = page.split("## Half-moves for machine learning")[1]
    exec(recipe.split("```python\n")[1].split("```")[0], {})
    rows = capsys.readouterr().out.split("\n")
    assert len(rows) == 6
    assert any(row.split() == ["5060803636482931868", "2", "1.0"] for row in rows)


def test_ratings_are_the_lowest_of_their_groups(tmp_path):
    polybook.make_book(FAMOUS, explorer=tmp_path / "famous.idx")
    explorer = polybook.Explorer(tmp_path / "famous.idx")
    assert explorer.openings(rating=[0, 2500, "unknown"])["families"]
    with pytest.raises(ValueError, match="2600 is in the rating group 2500: use 2500"):
        explorer.openings(rating=[2600])


def test_games_are_searched_for_what_stands_on_the_board(tmp_path):
    castled = "move[O-O-O] and turn = white"
    report = polybook.make_book(SELFPLAY, bin=tmp_path / "castled.bin", position=castled)
    found = report["games"]["counted"]
    assert 0 < found < report["games"]["read"] / 2
    assert list(polybook.positions(SELFPLAY, position="Q = 9")) == []
    polybook.make_book(SELFPLAY, explorer=tmp_path / "games.idx")
    explorer = polybook.Explorer(tmp_path / "games.idx")
    for _ in range(2):
        answer = explorer.answer(position=castled)
        assert sum(answer[side] for side in ("white", "draws", "black")) == found
    after = explorer.answer("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1", position=castled)
    assert 0 < after["white"] + after["draws"] + after["black"] < found
    table = explorer.openings(position=castled, duplicates="once")
    assert sum(table[side] for side in ("white", "draws", "black")) <= found
    with pytest.raises(ValueError, match="position: column 4: expected a square"):
        explorer.answer(position="P[d9]")
    with pytest.raises(ValueError, match="position: column 4: expected a square"):
        polybook.make_book(SELFPLAY, bin=tmp_path / "none.bin", position="P[d9]")


def test_a_name_that_no_game_contains_is_an_error(tmp_path):
    polybook.make_book(FAMOUS, explorer=tmp_path / "famous.idx")
    explorer = polybook.Explorer(tmp_path / "famous.idx")
    prepare = {"player": "Morphy, Paul", "opponent": "Nobody", "color": "white"}
    for query in (
        lambda: explorer.answer(player="Nobody"),
        lambda: explorer.answer(opponent=["Nobody", "Nemo"]),
        lambda: explorer.openings(event="Nobody"),
        lambda: explorer.prepare(**prepare),
    ):
        with pytest.raises(ValueError, match='has exactly the name "Nobody"|event\'s name contains "Nobody"'):
            query()
    known = explorer.answer(player=["Nobody", "Morphy, Paul"])
    assert known["white"] + known["draws"] + known["black"] > 0


def test_the_command_is_in_the_package(tmp_path):
    def run(*arguments):
        command = [sys.executable, "-m", "polybook", *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert run("--version").stdout == f"polybook {polybook.__version__}\n"
    made = run("make-book", FAMOUS, "--min-game", "1", "--bin", "book.bin")
    assert (made.returncode, made.stdout) == (0, "")
    polybook.make_book([FAMOUS], bin=tmp_path / "same.bin", min_game=1)
    assert (tmp_path / "book.bin").read_bytes() == (tmp_path / "same.bin").read_bytes()
    missing = run("show", "missing.bin")
    assert missing.returncode == 1
    assert missing.stderr.startswith("polybook: cannot open missing.bin: ")
