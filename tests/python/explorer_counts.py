"""Requests counts of filtered games from a server, and compares them with counts by python-chess.

usage: explorer_counts.py URL PGN LINES

All games of the PGN must be served, from the standard start. LINES games give lines of 20 plies; every position of each
is asked under every filter.
"""

import json
import sys
import urllib.parse
import urllib.request
from collections import defaultdict

import chess
import chess.pgn

PLIES = 20


def rating(headers, side):
    text = headers.get(side + "Elo", "")
    return int(text) if text.isdigit() else 0


class Game:
    def __init__(self, game):
        headers = game.headers
        self.names = {"white": headers["White"], "black": headers["Black"]}
        self.ratings = {"white": rating(headers, "White"), "black": rating(headers, "Black")}
        self.result = {"1-0": "white", "0-1": "black"}.get(headers["Result"], "draws")
        self.token = headers["Result"]
        year = headers.get("Date", "")[:4]
        self.year = int(year) if year.isdigit() else None
        self.event = headers.get("Event", "")
        # The last move that was played in each position.
        self.moves = {}
        self.line = []
        board = game.board()
        for move in game.mainline_moves():
            uci = board.uci(move, chess960=True)
            self.moves[position(board)] = (board.turn, uci)
            self.line.append(uci)
            board.push(move)


def position(board):
    """Returns what identifies a position: pieces, side to move, castling rights, and the en passant square if a capture is legal."""
    ep = board.ep_square if board.ep_square is not None and board.has_legal_en_passant() else None
    return (board.board_fen(), board.turn, board.clean_castling_rights(), ep)


def group(game):
    """Returns the rating group that contains the mean of the known ratings."""
    known = [rating for rating in game.ratings.values() if rating]
    if not known:
        return "unknown"
    return max(floor for floor in (0, 1000, 1200, 1400, 1600, 1800, 2000, 2200, 2500) if floor * len(known) <= sum(known))


def filters(games):
    """Returns parameters and the games that they select."""
    names = defaultdict(int)
    events = defaultdict(int)
    for game in games:
        names[game.names["white"]] += 1
        events[game.event] += 1
    name = max(names, key=lambda name: (names[name], name))
    event = max(events, key=lambda event: (events[event], event))
    years = sorted(game.year for game in games if game.year)
    middle = years[len(years) // 2] if years else 2000
    return [
        ({}, lambda game: True),
        ({"player": name.upper()}, lambda game: name in game.names.values()),
        ({"player": name, "color": "white"}, lambda game: game.names["white"] == name),
        ({"result": "1-0,0-1"}, lambda game: game.token in ("1-0", "0-1")),
        ({"ratings": "0,2200"}, lambda game: group(game) in (0, 2200)),
        ({"ratings": "unknown,1800,2500"}, lambda game: group(game) in ("unknown", 1800, 2500)),
        # Games without a year pass the filter.
        ({"since": f"{middle}-01"}, lambda game: game.year is None or game.year >= middle),
        ({"event": event, "until": f"{middle}-12"},
         lambda game: game.event == event and (game.year is None or game.year <= middle)),
    ]


def ask(url, play, parameters):
    query = urllib.parse.urlencode({"play": ",".join(play), "moves": 300, **parameters})
    with urllib.request.urlopen(f"{url}lichess?{query}") as answer:
        return json.load(answer)


def expected(games, board, chosen):
    moves = defaultdict(lambda: {"white": 0, "draws": 0, "black": 0, "unfinished": 0, "ratings": []})
    here = position(board)
    for game in games:
        found = game.moves.get(here)
        if found is None or not chosen(game):
            continue
        turn, uci = found
        counts = moves[uci]
        counts[game.result] += 1
        counts["unfinished"] += game.token == "*"
        mover = game.ratings["white" if turn else "black"]
        if mover:
            counts["ratings"].append(mover)
    return moves


def main():
    url, path, lines = sys.argv[1], sys.argv[2], int(sys.argv[3])
    games = []
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        while (game := chess.pgn.read_game(file)) is not None:
            if not game.errors:
                games.append(Game(game))
    step = max(1, len(games) // lines)
    chosen_by = filters(games)
    asked = counted = 0
    for game in games[::step][:lines]:
        board = chess.Board()
        for ply in range(min(PLIES, len(game.line)) + 1):
            play = game.line[:ply]
            for parameters, chosen in chosen_by:
                answer = ask(url, play, parameters)
                moves = expected(games, board, chosen)
                where = f"{play} {parameters}"
                assert {move["uci"] for move in answer["moves"]} == set(moves), where
                for move in answer["moves"]:
                    counts = moves[move["uci"]]
                    for result in ("white", "draws", "black"):
                        assert move[result] == counts[result], f"{where} {move} {counts}"
                    assert move.get("unfinished", 0) == counts["unfinished"], f"{where} {move} {counts}"
                    ratings = counts["ratings"]
                    mean = sum(ratings) // len(ratings) if ratings else 0
                    assert move["averageRating"] == mean, f"{where} {move} {mean}"
                    played = sum(counts[result] for result in ("white", "draws", "black"))
                    known = move.get("ratingGames", played if mean else 0)
                    assert known == len(ratings), f"{where} {move} {ratings}"
                for result in ("white", "draws", "black"):
                    total = sum(counts[result] for counts in moves.values())
                    assert answer[result] == total, f"{where} {result}"
                    counted += total
                asked += 1
            if ply < len(game.line):
                board.push(board.parse_uci(game.line[ply]))
    assert asked >= 200 and counted > 1000, (asked, counted)
    print(f"{asked} answers, {counted} games counted")


main()
