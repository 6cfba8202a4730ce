"""Plays a match of two engines from a suite, each opening with both colors, and checks polybook's report about it.

suite_match.py play SUITE MATCH.pgn ENGINE ENGINE
suite_match.py check SUITE MATCH.pgn REPORT.json
"""

import collections
import io
import json
import sys

import chess
import chess.engine
import chess.pgn

MOST_PLIES = 60


def exits(suite):
    """Yields the board at the end of each entry, with the moves that lead to it."""
    text = open(suite).read()
    if suite.endswith(".epd"):
        for line in text.splitlines():
            board, _ = chess.Board.from_epd(line)
            yield board
    else:
        games = io.StringIO(text)
        while game := chess.pgn.read_game(games):
            yield game.end().board()


def adjudicated(board):
    """Returns the result according to the material if the game is not over."""
    values = {chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9}
    count = lambda color: sum(len(board.pieces(piece, color)) * value for piece, value in values.items())
    difference = count(chess.WHITE) - count(chess.BLACK)
    return "1/2-1/2" if abs(difference) < 2 else "1-0" if difference > 0 else "0-1"


def play(suite, match, *commands):
    engines = [chess.engine.SimpleEngine.popen_uci(command) for command in commands]
    names = ["first engine", "second engine"]
    with open(match, "w") as out:
        for number, start in enumerate(exits(suite), 1):
            for white in (0, 1):
                board = start.copy()
                while not board.is_game_over() and board.ply() < start.ply() + MOST_PLIES:
                    engine = engines[white if board.turn else 1 - white]
                    board.push(engine.play(board, chess.engine.Limit(depth=2), game=(number, white)).move)
                result = board.result()
                game = chess.pgn.Game.from_board(board)
                game.headers["Round"] = str(number)
                game.headers["White"], game.headers["Black"] = names[white], names[1 - white]
                game.headers["Result"] = adjudicated(board) if result == "*" else result
                print(game, file=out, end="\n\n")
    for engine in engines:
        engine.quit()


def check(suite, match, report):
    report = json.load(open(report))
    positions = [board.epd() for board in exits(suite)]
    games = collections.defaultdict(list)
    with open(match) as text:
        while game := chess.pgn.read_game(text):
            board = game.board()
            reached = [board.epd()] + [(board.push(move), board.epd())[1] for move in game.mainline_moves()]
            epd = next(epd for epd in reached if epd in positions)
            games[epd].append((game.headers["White"], game.headers["Result"]))
    points = {"1-0": 2, "1/2-1/2": 1, "0-1": 0}
    total = [0] * 5
    for exit, epd in zip(report["exits"], positions, strict=True):
        pair = dict(games[epd])
        assert len(games[epd]) == 2 and exit["epd"] == epd
        first = points[pair["first engine"]] + 2 - points[pair["second engine"]]
        expected = [int(first == place) for place in range(5)]
        results = sorted(pair.values())
        assert exit["pentanomial"] == expected, (exit, pair)
        assert exit["one_sided"] == (results in (["1-0"] * 2, ["0-1"] * 2)), (exit, pair)
        assert exit["draws"] == results.count("1/2-1/2") and exit["wins"] == results.count("1-0")
        total[first] += 1
    (encounter,) = report["encounters"]
    assert encounter["pentanomial"] == total and encounter["unpaired"] == 0
    assert encounter["first"] == "first engine" and report["unmatched"] == 0


{"play": play, "check": check}[sys.argv[1]](*sys.argv[2:])
