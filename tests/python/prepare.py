"""Calculates the preparations of polybook prepare from PGN files, using only python-chess.

prepare.py NAMES CASES GAMES.pgn...

NAMES is the table of names. CASES is a JSON document: a list of objects with `prepared`, a document of
`polybook prepare --json`, and what it was asked with: `player` and `opponent` (lists of whole names), `color`, `moves`, `since` (a
year), `lines`, `half_life` (in years), and `repertoire` (a list of lines in SAN, without variations).
"""

import json
import math
import sys

import chess
import chess.pgn

from explorer import Game, folded, games_of, is_between, uci
from openings import expectation, named_positions

RESULTS = {"1-0": "white", "1/2-1/2": "draws", "0-1": "black", "*": "unfinished"}
LONGEST, RAREST = 40, 500
# The standard deviation of the true differences between scores and expected scores.
TRUE_DEVIATION = 0.04


class Played:
    """A game with the last move that it played in each of its positions, None if it ended there."""

    def __init__(self, game):
        self.game = game
        self.moves = {board.epd(): move and uci(board, move) for board, move in game.walk()}


def results(games):
    counts = {name: 0 for name in ("games", "white", "draws", "black")}
    for played in games:
        counts["games"] += 1
        name = RESULTS[played.game.result]
        counts[name] = counts.get(name, 0) + 1
    return counts


def score(counts, color):
    finished = counts["white"] + counts["draws"] + counts["black"]
    return (2 * counts[color] + counts["draws"]) / (2 * finished) if finished else None


def points(game, color):
    """Returns the points of a color in a finished game, and the rating of the other side."""
    draw = game.result == "1/2-1/2"
    won = RESULTS[game.result] == color
    return 0.5 if draw else float(won), game.elo[color == "white"]


def years(date):
    """Returns a date as a number of years."""
    year, month, day = date
    if not month:
        return year + 0.5
    return year + (month - 1 + (day - 0.5 if day else 15.5) / 31) / 12


def by_games(games, epd):
    """Returns the moves that games played in a position with their games, the most played first."""
    moves = {}
    for played in games:
        if played.moves.get(epd):
            moves.setdefault(played.moves[epd], []).append(played)
    return sorted(moves.items(), key=lambda item: (-len(item[1]), item[0]))


def pushed(board, text):
    board = board.copy(stack=False)
    move = chess.Move.from_uci(text)
    board.push(board._from_chess960(False, move.from_square, move.to_square, move.promotion))
    return board


def check_player(shown, games, color):
    counts = results(games)
    assert {name: shown[name] for name in counts} == counts, (shown, counts)
    ratings = [played.game.elo[color == "black"] for played in games]
    ratings = [rating for rating in ratings if rating]
    mean = (2 * sum(ratings) + len(ratings)) // (2 * len(ratings)) if ratings else None
    assert shown["rating"] == mean, (shown, mean)
    last = max((played.game.date for played in games), default=(0, 0, 0))
    text = "-".join(f"{part:0{width}}" for part, width in zip(last, (4, 2, 2)) if part)
    assert shown["last_played"] == (text or None), (shown, text)


class Preparation:
    def __init__(self, case, all_games, names):
        self.case, self.names = case, names
        self.color = case["color"]
        self.other = "black" if self.color == "white" else "white"
        passing = [
            played
            for played in all_games
            if is_between(played.game.date, (case["since"],) if "since" in case else None, None)
        ]

        def of(players, color):
            side = color == "black"
            wanted = [folded(name) for name in players]
            return [played for played in passing if folded(played.game.names[side]) in wanted]

        self.yours = of(case["player"], self.color)
        self.theirs = of(case["opponent"], self.other)
        self.met = [played for played in self.yours if played in self.theirs]
        self.repertoire = {}
        for line in case.get("repertoire", []):
            board = chess.Board()
            for san in line.split():
                move = board.parse_san(san)
                if board.turn == (self.color == "white"):
                    moves = self.repertoire.setdefault(board.epd(), [])
                    if uci(board, move) not in moves:
                        moves.append(uci(board, move))
                board.push(move)

    def weight(self, games, played):
        """Returns the weight of a game of a player, of whom `games` are all games."""
        if "half_life" not in self.case:
            return 1
        first = min((one.game.date for one in games if one.game.date[0]), default=(0, 0, 0))
        return 2 ** ((years(played.game.date if played.game.date[0] else first) - 2020) / self.case["half_life"])

    def judged(self, epd):
        """Returns the number of finished games of the player in a position, the points in them, the expected points and the
        standard deviation of the difference, or None for both if there are no other games."""
        finished = [played for played in self.yours if played.game.result != "*"]
        games, others = (
            [points(played.game, self.color) for played in finished if (epd in played.moves) == is_here] for is_here in (True, False)
        )
        expected, spread, is_compared = expectation(games, others, True)
        if not is_compared:
            expected = spread = None
        return len(games), sum(points for points, _ in games), expected, spread and math.sqrt(spread)

    def check_judged(self, shown, epd):
        """Compares the range of a score and the expected score."""
        n, scored, expected, deviation = self.judged(epd)
        if expected is None:
            assert shown["expected_score"] is None, shown
        else:
            assert math.isclose(shown["expected_score"], 100 * expected / n, abs_tol=0.0051), (shown, expected)
        if not n:
            assert shown["score_range"] is None, shown
        elif expected is not None and n >= 10:
            half = 1.2816 * deviation
            ends = [100 * min(max(end / n, 0), 1) for end in (scored - half, scored + half)]
            assert all(math.isclose(a, b, abs_tol=0.0051) for a, b in zip(shown["score_range"], ends)), (shown, ends)

    def answers(self, epd):
        """Returns the player's answers in a position, and where they come from."""
        if epd in self.repertoire:
            return self.repertoire[epd], "repertoire"
        most = by_games(self.yours, epd)[:1]
        return [move for move, games in most if len(games) >= 5], "games"

    def check(self):
        shown = self.case["prepared"]
        check_player(shown["theirs"], self.theirs, self.other)
        check_player(shown["yours"], self.yours, self.color)
        check_player(shown["met"], self.met, self.color)
        years = [played.game.date[0] for played in self.theirs]
        since = max(years, default=0) - 2
        self.since = since
        assert shown["recent_since"] == (since if since > 0 else None), shown["recent_since"]
        board = chess.Board()
        for san in self.case.get("moves", "").split():
            board.push_san(san)
        epd = board.epd()
        here = [[played for played in side if epd in played.moves] for side in (self.theirs, self.yours)]
        assert shown["here"] == {"theirs": len(here[0]), "yours": len(here[1])}, shown["here"]
        is_own = board.turn == (self.color == "white")
        self.check_moves(shown["moves"], board, is_own, since)
        self.check_lines(shown["lines"], shown.get("line_ends"), board)
        assert shown.get("half_life") == self.case.get("half_life"), shown.get("half_life")
        weak = shown["weak_lines"]
        assert [weak["judged"], weak["listed"]] == self.weak, (weak, self.weak)
        # Chance marks one line in ten, and some of these cost few points or are related.
        assert 0 <= weak["by_chance"] <= 0.13 * weak["judged"] + 0.1, weak
        return len(shown["moves"]) + len(shown["lines"])

    def check_moves(self, shown, board, is_own, since):
        epd = board.epd()
        moves = by_games(self.yours if is_own else self.theirs, epd)
        own, source = self.answers(epd)
        if is_own:
            moves += [(move, []) for move in own if move not in dict(moves)]
        assert [row["uci"] for row in shown] == [move for move, _ in moves]
        for row, (move, games) in zip(shown, moves):
            after = pushed(board, move)
            to = after.epd()
            theirs = [played for played in self.theirs if to in played.moves] if is_own else games
            counts = results(theirs) | {"recent": sum(played.game.date[0] >= since for played in theirs)}
            assert {name: row["theirs"][name] for name in counts} == counts, (row, counts)
            counts = results(played for played in self.yours if to in played.moves)
            assert {name: row["yours"][name] for name in counts} == counts, (row, counts)
            self.check_judged(row, to)
            name = self.names.get(to)
            assert (row["opening"] and (row["opening"]["eco"], row["opening"]["name"])) == name, row
            assert board.parse_san(row["san"]) == pushed_move(board, move), row
            if is_own:
                assert not row["gap"] and "line_end" not in row, row
            else:
                gap, end = self.state(board, after, len(games))
                assert (row["gap"], row.get("line_end", False)) == (gap, end), row
            answer, of = (move if move in own else None, source) if is_own else self.first_answer(to)
            if answer is None:
                assert row["answer"] is None, row
            else:
                played = dict(by_games(self.yours, epd if is_own else to)).get(answer, [])
                found = [row["answer"][key] for key in ("uci", "games", "source")]
                assert found == [answer, len(played), of], (row, answer)

    def first_answer(self, epd):
        answers, source = self.answers(epd)
        return (answers[0] if answers else None), source

    def state(self, before, after, games):
        """Returns whether a move of the opponent is a gap, and whether a line of the repertoire ends before it."""
        epd = after.epd()
        if "repertoire" not in self.case:
            is_answered, answers_another = bool(by_games(self.yours, epd)), True
        else:
            is_answered = epd in self.repertoire
            answers_another = any(pushed_by(before, move).epd() in self.repertoire for move in before.legal_moves)
        is_open = not is_answered and games >= 2 and any(after.legal_moves)
        return is_open and answers_another, is_open and not answers_another

    def check_lines(self, shown, ends, board):
        """Compares the lines to look at with those of all positions that may be met."""
        met, start = [], board
        level = {board.epd(): (board, (), 1.0, 1.0, 0)}
        for _ in range(LONGEST + 1):
            children = {}
            for epd, (board, play, path, chance, least) in level.items():
                if chance * RAREST < 1:
                    continue
                moves = by_games(self.theirs, epd)
                if board.turn == (self.color == "white"):
                    answers, source = self.answers(epd)
                    if play and least >= 2:
                        met.append(self.line(board, play, chance, answers, least))
                    moves = by_games(self.yours, epd) if answers else []
                    if source == "repertoire":
                        moves = [(move, [None]) for move in answers]
                own = board.turn == (self.color == "white")
                is_repertoire = own and answers and source == "repertoire"
                side = self.yours if own else self.theirs
                weights = [1 if is_repertoire else sum(self.weight(side, one) for one in games) for _, games in moves]
                for (move, games), weight in zip(moves, weights):
                    after, share = pushed(board, move), weight / sum(weights)
                    child = (after, play + (move,), path * share, chance * share, len(games))
                    before = children.get(after.epd())
                    if before:
                        likelier = child if child[2] > before[2] else before
                        child = (*likelier[:3], before[3] + child[3], max(before[4], child[4]))
                    children[after.epd()] = child
            level = children
        most = self.case["lines"]
        expected = [line for line in met if line["line_end"] and (line["loss"] or 0) < 0.005]
        met = [line for line in met if line not in expected]
        expected.sort(key=lambda line: (-line["chance"], line["play"]))
        assert ("repertoire" in self.case) == (ends is not None)
        assert [line["play"] for line in ends or []] == [line["play"] for line in expected[:2]], (ends, expected)
        likely = [line for line in met if line["is_open"] and round(line["chance"], 6) >= 0.1]
        likely.sort(key=lambda line: (-line["chance"], line["play"]))
        likely = likely[: min(2, max(1, most // 2))]
        judged = sum(line["is_judged"] for line in [*met, *expected] if line not in likely)
        met = [line for line in met if line not in likely]
        before_gaps = most - len(likely) - max(0, min(2, most // 2) - len(likely))
        most -= len(likely)
        losses = []
        for line in sorted(met, key=lambda line: (-(line["loss"] or 0), line["play"])):
            related = (
                line["play"][: len(other["play"])] == other["play"]
                or other["play"][: len(line["play"])] == line["play"]
                for other in losses
            )
            if len(losses) < most + 2 and (line["loss"] or 0) >= 0.005 and not any(related):
                losses.append(line)
        expected, others = losses[:before_gaps], losses[before_gaps:]
        gaps = [line for line in met if line["is_open"] and line not in expected]
        gaps.sort(key=lambda line: (-line["chance"], line["play"]))
        gaps = gaps[: min(2 - len(likely), most - len(expected))]
        expected += [line for line in others if line not in gaps][: most - len(expected) - len(gaps)]
        self.weak = [judged, len(expected)]
        expected = [line | {"loss": None} for line in likely] + expected + [line | {"loss": None} for line in gaps]
        assert [line["play"] for line in shown] == [line["play"] for line in expected], (shown, expected)
        for line, wanted in zip(shown, expected):
            for name in ("games", "white", "draws", "black", "gap"):
                assert line[name] == wanted[name], (name, line, wanted)
            assert {name: line["theirs"][name] for name in wanted["theirs"]} == wanted["theirs"], (line, wanted)
            at = start
            for move in line["play"]:
                at = pushed(at, move)
            self.check_judged(line, at.epd())
            for name, margin in (("chance", 2e-6), ("loss", 2e-6), ("score", 0.0051)):
                a, b = line[name], wanted[name]
                assert a is b is None or math.isclose(a, b, abs_tol=margin), (name, line, wanted)
            assert (line["opening"] and (line["opening"]["eco"], line["opening"]["name"])) == wanted["opening"], line

    def line(self, board, play, chance, answers, least):
        epd = board.epd()
        counts = results(played for played in self.yours if epd in played.moves)
        reached = score(counts, self.color)
        at, opening = chess.Board(), None
        for san in self.case.get("moves", "").split():
            at.push_san(san)
            opening = self.names.get(at.epd(), opening)
        for move in play:
            before, at = at, pushed(at, move)
            opening = self.names.get(at.epd(), opening)
        n, scored, wanted, deviation = self.judged(epd)
        is_judged = wanted is not None and n >= 10
        loss = None
        if is_judged:
            lost, deviation = (wanted - scored) / n, deviation / n
            loss = round(chance * lost * TRUE_DEVIATION**2 / (TRUE_DEVIATION**2 + deviation**2), 6)
            if loss < 0.005 or lost <= 1.2816 * deviation:
                loss = None
        theirs = [played for played in self.theirs if epd in played.moves]
        is_gap, is_end = self.state(before, board, least)
        return counts | {
            "theirs": results(theirs) | {"recent": sum(played.game.date[0] >= self.since for played in theirs)},
            "play": list(play),
            "chance": chance,
            "score": reached and 100 * reached,
            "loss": loss,
            "is_judged": is_judged,
            "gap": is_gap,
            "line_end": is_end,
            "is_open": any(board.legal_moves) and not is_end and (is_gap or not answers),
            "opening": opening,
        }


def pushed_by(board, move):
    board = board.copy(stack=False)
    board.push(move)
    return board


def pushed_move(board, text):
    move = chess.Move.from_uci(text)
    return board._from_chess960(False, move.from_square, move.to_square, move.promotion)


def main():
    names = named_positions(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        cases = json.load(file)
    all_games = []
    for path in sys.argv[3:]:
        # A game with an illegal move is not counted.
        for game in (game for game in games_of(path) if not game.errors):
            all_games.append(Played(Game(len(all_games), game)))
    compared = sum(Preparation(case, all_games, names).check() for case in cases)
    assert compared > 0
    print(f"{compared} moves and lines of {len(all_games)} games in {len(cases)} preparations")


if __name__ == "__main__":
    main()
