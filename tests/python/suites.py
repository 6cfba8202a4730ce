"""Counts games independently, and compares suites with the result: suites.py games|database PGN EPD PLIES MIN_GAME GAMES...

PGN and EPD are the suites of these games, or of the database of all their moves.
"""

import collections
import itertools
import sys

import chess
import chess.pgn

kind, pgn, epd, plies, min_game, *files = sys.argv[1:]
plies, min_game = int(plies), int(min_game)


class Moves(chess.pgn.BaseVisitor):
    """Returns the moves of a game. For a suite of games, at most `plies` are read."""

    def begin_game(self):
        self.moves, self.tag, self.marker = [], "", "*"

    def begin_headers(self):
        return None

    def visit_header(self, name, value):
        self.tag = value if name == "Result" else self.tag
        assert name not in ("FEN", "Variant"), "games of standard chess from the start"

    def begin_variation(self):
        return chess.pgn.SKIP

    def begin_parse_san(self, board, san):
        if kind == "games" and len(self.moves) == plies:
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

    def __init__(self):
        self.games = self.points = self.open = 0

    def add(self, result):
        self.games += 1
        if kind == "games" and result == "*":
            self.open += 1
        else:
            self.points += SCORES[result]

    def __str__(self):
        text = f"{self.games} {'game' if kind == 'games' else 'time'}{'' if self.games == 1 else 's'}"
        if self.open:
            text += f", {self.open} without result"
        if self.open < self.games:
            text += f", White scored {self.points / (self.games - self.open) / 2 * 100:.1f}%"
        return text


def place(board):
    return board.epd(en_passant="legal")


lines = collections.defaultdict(Results)
ends = collections.defaultdict(Results)
moves_of = collections.Counter()
for name in files:
    with open(name, encoding="utf-8", errors="replace") as file:
        while (read := chess.pgn.read_game(file, Visitor=Moves)) is not None:
            moves, result = read
            board = chess.Board()
            if kind == "database":
                for move in moves:
                    moves_of[place(board), move] += 1
                    board.push(move)
                    ends[place(board)].add(result)
            elif len(moves) >= plies:
                for move in moves[:plies]:
                    board.push(move)
                lines[tuple(moves[:plies])].add(result)
                ends[place(board)].add(result)


def descending(numbers):
    assert all(a >= b for a, b in itertools.pairwise(numbers)), numbers


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
