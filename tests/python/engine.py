"""Controls `polybook engine` with python-chess, and compares its answers with the explorer's counts.

engine.py DIR POLYBOOK
"""

import asyncio
import collections
import json
import math
import os
import shutil
import subprocess
import sys

import chess
import chess.engine
import chess.polyglot
import chess.variant

directory, polybook = sys.argv[1:]
os.chdir(directory)


def popen(*arguments):
    return chess.engine.SimpleEngine.popen_uci([polybook, "engine", *arguments])


def cautious_shares(move):
    """Returns the shares of White's wins, draws and losses with a move of `moves --json`, one standard error below its score."""
    games = move["games"] + 20
    wins, draws = (move["white"] + 10) / games, move["draws"] / games
    mean = wins + draws / 2
    error = math.sqrt((wins + draws / 4 - mean**2) / games)
    assert error <= wins
    return wins - error, draws, 1 - wins + error - draws


def counts_of_the_explorer():
    """Checks that an analysis gives the same results as `moves`."""
    document = json.loads(subprocess.check_output([polybook, "show", "a.idx", "--json"]))
    expected = {move["uci"]: move for move in document["moves"]}
    with popen("a.idx") as engine:
        engine.ping()
        lines = engine.analyse(chess.Board(), chess.engine.Limit(depth=1), multipv=5)
        assert len(lines) == min(5, len(expected)), lines
        for line in lines:
            move = expected[line["pv"][0].uci()]
            assert line["nodes"] == move["games"], (line, move)
            wdl = line["wdl"].relative
            assert sum(wdl) == 1000
            shares = cautious_shares(move)
            assert all(abs(part - 1000 * share) <= 1 for part, share in zip(wdl, shares)), (line, move)
            score = shares[0] + shares[1] / 2
            centipawns = math.log(score / (1 - score)) / 0.00368208
            assert abs(line["score"].relative.score() - centipawns) <= 1, (line, move)
        # Moves are sorted by their cautious scores, so few games come late.
        scores = [line["score"].relative.score() for line in lines]
        assert scores == sorted(scores, reverse=True), scores
        with engine.analysis(chess.Board()) as analysis:
            while not analysis.info.get("pv"):
                analysis.get()
            analysis.stop()
            assert analysis.wait().move in chess.Board().legal_moves


def choices_follow_the_weights():
    """Tests the distribution of 2000 first moves from a book with chi-squared."""
    with chess.polyglot.open_reader("a.bin") as book:
        weights = {entry.move: entry.weight for entry in book.find_all(chess.Board()) if entry.weight}
    chosen = collections.Counter()
    with popen("a.bin", "--seed", "3") as engine:
        for _ in range(2000):
            chosen[engine.play(chess.Board(), chess.engine.Limit(time=1)).move] += 1
    assert set(chosen) <= set(weights)
    expected = {move: 2000 * weight / sum(weights.values()) for move, weight in weights.items()}
    chi = sum((chosen[move] - number) ** 2 / number for move, number in expected.items())
    # Chi-squared with d degrees of freedom has the mean d and the variance 2d. Five standard deviations are a safe limit.
    degrees = len(expected) - 1
    assert chi < degrees + 5 * (2 * degrees) ** 0.5, (chi, chosen, expected)
    moves = []
    for seed in (7, 7, 8):
        with popen("a.bin", "--seed", str(seed)) as engine:
            moves.append([engine.play(chess.Board(), chess.engine.Limit(time=1)).move for _ in range(20)])
    assert moves[0] == moves[1] != moves[2]


def games_against(stockfish):
    """Plays games that begin in the book and are continued by the second engine. After leaving the book, no move comes from it."""
    limit = chess.engine.Limit(nodes=200)
    with popen("a.bin", "--", stockfish) as first, chess.engine.SimpleEngine.popen_uci(stockfish) as second:
        assert "Stockfish" in first.id["name"], first.id
        first.configure({"Hash": 16, "Play": "uniform"})
        for number in range(20):
            board = chess.Board()
            while not board.is_game_over() and board.ply() < 40:
                engine = first if (board.turn == chess.WHITE) == (number % 2 == 0) else second
                board.push(engine.play(board, limit, game=number).move)
            assert board.ply() >= 7


def options_are_declared():
    """The options have the values of the command line as defaults, and can be set."""
    with popen("a.idx", "--min-score", "45", "--player", "Fischer") as engine:
        engine.ping()
        assert engine.options["MinScore"].default == 45
        assert engine.options["Player"].default == "Fischer"
        assert engine.options["Play"].var == ["weighted", "best", "uniform"]
        every = {option.name: option.default for option in engine.options.values() if not option.is_managed()}
        engine.configure(every)
        engine.configure({"Player": "", "Play": "best"})
        assert engine.play(chess.Board(), chess.engine.Limit(time=1)).move == chess.Move.from_uci("e2e4")


def chess960_and_variants():
    """python-chess sets UCI_Chess960 and UCI_Variant by the board."""
    for board, games in [
        (chess.Board(chess960=True), "1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. O-O"),
        (chess.variant.CrazyhouseBoard(), "1. e4 d5 2. exd5 Qxd5 3. Nc3 Qa5 4. P@d6"),
    ]:
        is_crazyhouse = board.uci_variant == "crazyhouse"
        with open("variant.pgn", "w") as file:
            file.write('[Variant "Crazyhouse"]\n\n' * is_crazyhouse + games + " 1/2-1/2\n")
        make = [polybook, "make-book", "-q", "variant.pgn", "--min-game", "1", "--bin", "variant.bin"]
        subprocess.check_call(make + ["--variant", "crazyhouse"] * is_crazyhouse)
        with popen("variant.bin", "--fallback", "random") as engine:
            while board.ply() < 20 and not board.is_game_over():
                board.push(engine.play(board, chess.engine.Limit(time=1)).move)
        played = board.root().variation_san(board.move_stack)
        assert played.startswith(games.replace("P@", "@")), played


def pondering(*behind):
    """Plays with pondering. The opponent plays the expected reply in two of three positions."""
    limit = chess.engine.Limit(nodes=200)
    with chess.polyglot.open_reader("a.bin") as book, popen("a.bin", "--seed", "9", *behind) as engine:
        expected = 0
        for number in range(12):
            board = chess.Board()
            while board.ply() < 16 and (behind or book.get(board)):
                played = engine.play(board, limit, game=number, ponder=True)
                is_known = book.get(board) is not None
                board.push(played.move)
                replies = [entry for entry in book.find_all(board) if entry.weight]
                if is_known and replies:
                    most = max(entry.weight for entry in replies)
                    assert played.ponder in [entry.move for entry in replies if entry.weight == most], (board, played)
                    expected += 1
                if board.is_game_over():
                    break
                moves = [entry.move for entry in replies] or list(board.legal_moves)
                is_hit = played.ponder and (number + board.ply()) % 3
                board.push(played.ponder if is_hit else moves[number % len(moves)])
        assert expected > 12, expected


counts_of_the_explorer()
choices_follow_the_weights()
options_are_declared()
pondering()
chess960_and_variants()
if stockfish := shutil.which("stockfish") or shutil.which("stockfish", path="/usr/games"):
    games_against(stockfish)
    pondering("--", stockfish)
