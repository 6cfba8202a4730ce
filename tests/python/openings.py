"""Calculates the tables of polybook openings from PGN files, using only python-chess.

openings.py NAMES CASES GAMES.pgn...

NAMES is the table of names. CASES is a JSON document: a list of objects with `table`, a document of
`polybook openings --json`, and the filters that it was asked with: `player` (a whole name), `color`, `result`, `moves` and
`opening` (a whole name or the name of a family).
"""

import json
import math
import sys
from collections import defaultdict

import chess
import chess.pgn

from explorer import Game, folded, games_of

# FIDE's table of rating differences for scores from 50 to 100 percent.
ABOVE = [0, 7, 14, 21, 29, 36, 43, 50, 57, 65, 72, 80, 87, 95, 102, 110, 117, 125, 133, 141, 149, 158, 166, 175, 184, 193, 202, 211,
         220, 230, 240, 251, 262, 273, 284, 296, 309, 322, 336, 351, 366, 383, 401, 422, 444, 470, 501, 538, 589, 677, 800]  # fmt: skip


def named_positions(path):
    """Returns the codes and names of the table by position."""
    names, line = {}, [chess.Board()]
    with open(path, encoding="utf-8") as file:
        for row in file:
            depth, san, *named = row.rstrip("\n").split(" ", 3)
            del line[int(depth) + 1 :]
            board = line[-1].copy(stack=False)
            board.push_san(san)
            line.append(board)
            if named:
                names[board.epd()] = tuple(named)
    return names


def rounded_mean(ratings):
    return (2 * sum(ratings) + len(ratings)) // (2 * len(ratings)) if ratings else None


def is_close(a, b):
    return a is b is None or (a is not None and b is not None and math.isclose(a, b, abs_tol=0.0051))


class Played:
    """A game from the side of a player, or of White."""

    def __init__(self, game, epds, names):
        self.game, self.epds = game, epds
        self.named = next((names[epd] for epd in reversed(epds) if epd in names), None)

    def points(self, color):
        if self.game.result not in ("1-0", "0-1", "1/2-1/2"):
            return None
        white = {"1-0": 1, "0-1": 0, "1/2-1/2": 0.5}[self.game.result]
        return white if color == "white" else 1 - white


def color_of(played, case):
    """Returns the color of the player in a game, or None if the game does not pass the filters other than `opening`."""
    game = played.game
    if "result" in case and game.result != case["result"]:
        return None
    if "player" not in case:
        return "white"
    for color, name in zip(("white", "black"), game.names):
        if folded(name) == folded(case["player"]) and case.get("color", color) == color:
            return color
    return None


def is_wanted(played, case):
    """Returns whether a game passes the filter `opening`."""
    wanted = case.get("opening")
    return wanted is None or played.named is not None and wanted in (played.named[1], played.named[1].split(":")[0])


def check_opponents(shown, finished, case):
    """Compares the mean rating of the opponents and the performance with those of games with a result.

    Games that were chosen by their result have no performance.
    """
    rated = [(played, color) for played, color in finished if played.game.elo[color == "white"]]
    opponents = [played.game.elo[color == "white"] for played, color in rated]
    assert shown.get("opponent_rating") == rounded_mean(opponents), shown
    performance = None
    if len(rated) >= 10 and "result" not in case:
        score = sum(played.points(color) for played, color in rated)
        percent = int((100 * 2 * score + len(rated)) // (2 * len(rated)))
        above = ABOVE[percent - 50] if percent >= 50 else -ABOVE[50 - percent]
        performance = max(rounded_mean(opponents) + above, 0)
    assert shown.get("performance") == performance, (shown, performance)


def expected_score(strength, rating):
    return 1 / (1 + 10 ** ((rating - strength) / 400))


def variance(expected, draws):
    return max(expected * (1 - expected) - min(draws, 2 * expected, 2 - 2 * expected) / 4, 0.02)


def expectation(games, others, of_player):
    """Returns the expected points in games with one color, the variance of the difference, and whether they are compared.

    Games are pairs of the points and of the rating of the opponent, which is 0 if it is unknown.
    """
    if not others or not games:
        return sum(points for points, _ in games), 0, False
    average = sum(points for points, _ in others) / len(others)
    draws = sum(points == 0.5 for points, _ in others) / len(others)
    rated = [(points, rating) for points, rating in others if rating and of_player]
    strength = None
    if rated:
        low, high = min(rating for _, rating in rated) - 800, max(rating for _, rating in rated) + 800
        for _ in range(100):
            strength = (low + high) / 2
            if sum(expected_score(strength, rating) for _, rating in rated) > sum(points for points, _ in rated):
                high = strength
            else:
                low = strength
    slope = lambda score: math.log(10) / 400 * score * (1 - score)
    of_others = [expected_score(strength, rating) for _, rating in rated]
    expected = spread = influence = 0
    for _, rating in games:
        by_rating = bool(rating and of_player and rated)
        score = expected_score(strength, rating) if by_rating else average
        expected += score
        spread += variance(score, draws)
        if by_rating:
            all_others = sum(variance(other, draws) for other in of_others)
            influence += slope(score) / sum(map(slope, of_others)) * math.sqrt(all_others)
        else:
            influence += math.sqrt(variance(average, draws) / len(others))
    return expected, spread + influence**2, True


def check_row(row, games, case, averages, passing):
    """Compares a row with its games, which are pairs of a game and the player's color.

    `passing` are all games of the player, whatever their openings.
    """
    assert row["games"] == len(games), (row, len(games))
    results = [played.game.result for played, _ in games]
    counts = [results.count(result) for result in ("1-0", "1/2-1/2", "0-1")]
    assert [row["white"], row["draws"], row["black"]] == counts, row
    assert row.get("unfinished", 0) == len(games) - sum(counts), row
    finished = [(played, color) for played, color in games if played.points(color) is not None]
    points = [played.points(color) for played, color in finished]
    average = sum(averages[color] for _, color in finished)
    expected = spread = 0
    is_compared = False
    own = {id(played) for played, _ in games}
    for color in ("white", "black"):
        def of(played):
            return [(one.points(side), one.game.elo[side == "white"]) for one, side in played if side == color]

        others = [(one, side) for one, side in passing if id(one) not in own and one.points(side) is not None]
        more, its_spread, compared = expectation(of(finished), of(others), "player" in case)
        expected, spread, is_compared = expected + more, spread + its_spread, is_compared or compared
    if finished and "result" not in case:
        n = len(finished)
        mean = sum(points) / n
        added = (sum(points) + 1) / (n + 2)
        by_results = n * ((sum(point * point for point in points) + 1) / (n + 2) - added**2)
        if not is_compared:
            spread = by_results
        elif n < 10:
            spread = max(spread, by_results)
        half = 1.2816 * math.sqrt(spread) / n
        ends = [100 * min(max(end, 0), 1) for end in (mean - half, mean + half)]
        assert is_close(row["score"], 100 * sum(points) / len(points)), row
        assert all(map(is_close, row["score_range"], ends)), (row, ends)
    else:
        assert row["score"] is row["score_range"] is None, row
    dates = [played.game.date for played, _ in games if played.game.date[0]]
    last = max(dates, default=None)
    text = last and "-".join(f"{part:0{width}}" for part, width in zip(last, (4, 2, 2)) if part)
    assert row["last_played"] == text, (row, text)
    if "player" in case:
        assert row["wins"] == points.count(1) and row["losses"] == points.count(0), row
        lost = None if "result" in case else sum(points) - average
        assert is_close(row.get("points_above_average"), lost), (row, lost)
        lost = sum(points) - expected if "result" not in case and is_compared else None
        assert is_close(row.get("points"), lost), (row, lost)
        check_opponents(row, finished, case)
    else:
        ratings = [elo for played, _ in games for elo in played.game.elo if elo]
        assert row.get("rating") == rounded_mean(ratings), row
    board = chess.Board()
    for uci in row["line"]:
        # Castling is written as king takes rook.
        move = chess.Move.from_uci(uci)
        board.push(board._from_chess960(False, move.from_square, move.to_square, move.promotion))
    epd = board.epd()
    assert row["line_games"] == sum(epd in played.epds and is_wanted(played, case) for played, _ in passing), row
    return epd


def check(case, all_games, names):
    table = case["table"]
    passing = [(played, color_of(played, case)) for played in all_games]
    passing = [(played, color) for played, color in passing if color]
    averages = {}
    for color in ("white", "black"):
        points = [played.points(side) for played, side in passing if side == color]
        points = [point for point in points if point is not None]
        averages[color] = sum(points) / len(points) if points else 0
    points = [played.points(color) for played, color in passing]
    points = [point for point in points if point is not None]
    average = 100 * sum(points) / len(points) if points and "result" not in case else None
    assert is_close(table["average_score"], average), table["average_score"]
    board = chess.Board()
    for san in case.get("moves", "").split():
        board.push_san(san)
    reached = [(played, color) for played, color in passing if board.epd() in played.epds and is_wanted(played, case)]
    assert table["games"] == len(reached), (table["games"], len(reached))
    rows = defaultdict(list)
    for played, color in reached:
        if played.named:
            rows[played.named[1]].append((played, color))
    assert table["unnamed"] == len(reached) - sum(map(len, rows.values()))
    found = [(family, row) for family in table["families"] for row in family["variations"]]
    assert {row["name"] for _, row in found} == set(rows)
    for family, row in found:
        games = rows[row["name"]]
        epd = check_row(row, games, case, averages, passing)
        assert names[epd][1] == row["name"] and family["name"] == row["name"].replace(",", ":").split(":")[0], row
        codes = sorted({played.named[0] for played, _ in games})
        assert row["eco"] == [codes[0], codes[-1]], row
    if "player" in case:
        check_opponents(table, [(played, color) for played, color in passing if played.points(color) is not None], case)
    by_points = "player" in case and "result" not in case
    for listed in (table["families"], *(family["variations"] for family in table["families"])):
        order = [row.get("points", 0) if by_points else (-row["games"], row["name"]) for row in listed]
        assert order == sorted(order), order
    return len(rows)


def main():
    names = named_positions(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        cases = json.load(file)
    all_games = []
    for path in sys.argv[3:]:
        # A game with an illegal move is not counted.
        for game in (game for game in games_of(path) if not game.errors):
            game = Game(len(all_games), game)
            all_games.append(Played(game, [board.epd() for board, _ in game.walk()], names))
    compared = sum(check(case, all_games, names) for case in cases)
    assert compared > 0
    print(f"{compared} openings of {len(all_games)} games in {len(cases)} tables")


if __name__ == "__main__":
    main()
