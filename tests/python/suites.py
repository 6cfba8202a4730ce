"""Counts games independently, and compares suites with the result: suites.py DIR GAMES...

The suites are the files DIR/games-PLIES-MIN_GAME.pgn and DIR/database-PLIES-MIN_GAME.pgn, and the same with .epd. They are
made of these games, or of the database of all their moves.
"""

import collections
import itertools
import pathlib
import sys

import chess
import chess.pgn

directory, *files = sys.argv[1:]


class Moves(chess.pgn.BaseVisitor):
    """Returns the moves of a game, and its result."""

    def begin_game(self):
        self.moves, self.tag, self.marker = [], "", "*"

    def begin_headers(self):
        return None

    def visit_header(self, name, value):
        self.tag = value if name == "Result" else self.tag
        assert name not in ("FEN", "Variant"), "games of standard chess from the start"

    def begin_variation(self):
        return chess.pgn.SKIP

    def visit_move(self, board, move):
        self.moves.append(move)

    def visit_result(self, result):
        self.marker = result

    def handle_error(self, error):
        raise error

    def result(self):
        return self.moves, self.tag if self.tag in SCORES else self.marker


SCORES = {"1-0": 2, "0-1": 0, "1/2-1/2": 1, "*": 1}


class Results:
    """The number of games, and twice White's points."""

    def __init__(self, kind):
        self.kind = kind
        self.games = self.points = self.open = 0

    def add(self, result):
        self.games += 1
        if self.kind == "games" and result == "*":
            self.open += 1
        else:
            self.points += SCORES[result]

    def __str__(self):
        text = f"{self.games} {'game' if self.kind == 'games' else 'time'}{'' if self.games == 1 else 's'}"
        if self.open:
            text += f", {self.open} without result"
        if self.open < self.games:
            text += f", White scored {self.points / (self.games - self.open) / 2 * 100:.1f}%"
        return text


def place(board):
    return board.epd(en_passant="legal")


games, moves_of = [], collections.Counter()
ends_of_database = collections.defaultdict(lambda: Results("database"))
for name in files:
    with open(name, encoding="utf-8", errors="replace") as file:
        while (read := chess.pgn.read_game(file, Visitor=Moves)) is not None:
            moves, result = read
            board = chess.Board()
            places = [place(board)]
            for move in moves:
                moves_of[places[-1], move] += 1
                board.push(move)
                places.append(place(board))
                ends_of_database[places[-1]].add(result)
            games.append((moves, places, result))


def descending(numbers):
    assert all(a >= b for a, b in itertools.pairwise(numbers)), numbers


def check(kind, pgn, epd, plies, min_game):
    lines = collections.defaultdict(lambda: Results("games"))
    ends = ends_of_database if kind == "database" else collections.defaultdict(lambda: Results("games"))
    if kind == "games":
        for moves, places, result in games:
            if len(moves) >= plies:
                lines[tuple(moves[:plies])].add(result)
                ends[places[plies]].add(result)
    found, order, reached = set(), [], set()
    with open(pgn) as file:
        while (game := chess.pgn.read_game(file)) is not None:
            assert not game.errors, game.errors
            end = game.end()
            line = tuple(game.mainline_moves())
            board = end.board()
            assert len(line) == plies and line not in found, line
            found.add(line)
            reached.add(place(board))
            here = ends[place(board)]
            if kind == "games":
                own = lines[line]
                order.append(own.games)
                same = vars(own) == vars(here)
                expected = f"{own}" if same else f"{own}; by any move order {here}"
            else:
                expected = f"{here}"
                board = chess.Board()
                met = {place(board)}
                played = []
                for move in line:
                    played.append(moves_of[place(board), move])
                    board.push(move)
                    assert place(board) not in met, f"a repeated position in {game}"
                    met.add(place(board))
                assert min(played) >= min_game, game
                order.append(min(played))
            comment = " ".join(end.comment.split())
            assert comment == expected, (comment, expected)
    descending(order)
    if kind == "games":
        wanted = {line for line, results in lines.items() if results.games >= min_game}
        assert found == wanted, (len(found), len(wanted))
        reached = {end for end, results in ends.items() if results.games >= min_game}

    listed, order = set(), []
    with open(epd) as file:
        for text in file:
            board, operations = chess.Board.from_epd(text)
            here = ends[place(board)]
            assert operations["c0"] == str(here), (operations, str(here))
            assert place(board) not in listed, text
            listed.add(place(board))
            order.append(here.games)
    descending(order)
    assert listed == reached, (len(listed), len(reached))
    assert found and listed
    print(f"{len(found)} lines, {len(listed)} positions")


suites = sorted(pathlib.Path(directory).glob("*-*.pgn"))
assert len(suites) == 6, suites
for pgn in suites:
    kind, plies, min_game = pgn.stem.split("-")
    check(kind, pgn, pgn.with_suffix(".epd"), int(plies), int(min_game))
