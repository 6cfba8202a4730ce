"""Calculates the reports of polybook repertoire with python-chess.

usage: repertoire.py REPERTOIRE GAMES REFERENCE COLOR SAID

REPERTOIRE, GAMES and REFERENCE are PGN files, COLOR is white or black. SAID is a directory with the JSON documents of
check.json (REPERTOIRE GAMES), new.json and earlier.json (GAMES --reference REFERENCE, without and with --earlier), and
gaps.json (REPERTOIRE --against REFERENCE --min-game 1).
"""

import io
import json
import sys
from collections import defaultdict

import chess
import chess.pgn
import chess.polyglot


def games_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        # python-chess would lose the tags if there were no blank line before them.
        text = io.StringIO(file.read().replace("\n[Event ", "\n\n[Event "))
    while (game := chess.pgn.read_game(text)) is not None:
        yield game


def played(game):
    """Returns the keys of the positions in the main line and the moves, up to a null move."""
    board = game.board()
    keys, moves, boards = [chess.polyglot.zobrist_hash(board)], [], [board.copy(stack=False)]
    for move in game.mainline_moves():
        if not move:
            break
        moves.append(move)
        board.push(move)
        keys.append(chess.polyglot.zobrist_hash(board))
        boards.append(board.copy(stack=False))
    return keys, moves, boards


def repertoire_of(path):
    """Returns the moves of each position, including those of variations."""
    known = defaultdict(set)
    for game in games_of(path):
        waiting = [(game, game.board())]
        while waiting:
            node, board = waiting.pop()
            for child in node.variations:
                if not child.move:
                    continue
                known[chess.polyglot.zobrist_hash(board)].add(child.move)
                after = board.copy(stack=False)
                after.push(child.move)
                waiting.append((child, after))
    return known


def check(known, game, color):
    keys, moves, boards = played(game)
    left = (None, None)
    for ply, key in enumerate(keys):
        if boards[ply].turn == color:
            if ply == len(moves) and not any(boards[ply].legal_moves):
                break
            here = known.get(key)
            if not here:
                left = left if left[0] else ("opponent", ply)
            elif ply < len(moves) and moves[ply] not in here:
                left = ("player", ply + 1)
            else:
                left = (None, None)
    return left


def day(game, is_last):
    """Returns the first or the last day on which a game may have been played."""
    parts = (game.headers.get("Date", "?").split(".") + ["?", "?"])[:3]
    if not parts[0].isdigit() or int(parts[0]) == 0:
        return (9999, 99, 99)
    numbers, known = [], True
    for part in parts:
        known = known and part.isdigit() and int(part) > 0
        numbers.append(int(part) if known else 99 if is_last else 0)
    return tuple(numbers)


class Reference:
    def __init__(self, path):
        self.reached = defaultdict(list)
        self.moves = defaultdict(lambda: defaultdict(int))
        for number, game in enumerate(games_of(path)):
            keys, moves, _ = played(game)
            for key in set(keys):
                self.reached[key].append((day(game, False), number, day(game, True)))
            # A game counts once in a position, with its last move in it.
            for key, move in dict(zip(keys, moves)).items():
                self.moves[key][move] += 1

    def new(self, game, earlier):
        keys, moves, boards = played(game)
        before = day(game, False) if earlier else (99999,)
        games = lambda key: [found for found in self.reached.get(key, ()) if found[2] < before]
        ply = 1 + max(ply for ply, key in enumerate(keys) if ply == 0 or games(key))
        if ply == len(keys):
            return None, None, None, None
        last = games(keys[ply - 1])
        return ply, boards[ply - 1].san(moves[ply - 1]), len(last), max(last)[1] if last else None


def gaps(known, reference, color, longest):
    """Returns the probability of each position without an answer, level by level. No path may visit a position twice."""
    found = defaultdict(float)
    start = chess.polyglot.zobrist_hash(chess.Board())
    level = [(chess.Board(), 1.0, (start,))]
    for _ in range(longest):
        following = {}
        for board, reach, way in level:
            key = way[-1]
            if not any(board.legal_moves):
                continue
            if board.turn == color:
                if not known.get(key):
                    found[key] += reach
                    continue
                moves = {move: 1.0 for move in known[key]}
            else:
                counts = reference.moves.get(key, {})
                moves = {move: count / sum(counts.values()) for move, count in counts.items()}
            for move, share in moves.items():
                after = board.copy(stack=False)
                after.push(move)
                to = chess.polyglot.zobrist_hash(after)
                if to in way:
                    continue
                # Paths that differ only in positions that cannot repeat are merged.
                past = (to,) if board.is_zeroing(move) else way + (to,)
                seen = (to, frozenset(past))
                board_, reach_, way_ = following.get(seen, (after, 0.0, past))
                following[seen] = (board_, reach_ + reach * share, way_)
        level = following.values()
    return found


def same(what, said, expected):
    if said != expected:
        sys.exit(f"{what}: polybook says {said}, python-chess {expected}")


def main(repertoire, games, reference, color, said):
    color = chess.WHITE if color == "white" else chess.BLACK
    document = lambda name: json.load(open(f"{said}/{name}.json"))
    known = repertoire_of(repertoire)
    checked, new, earlier = (document(name)["games"] for name in ("check", "new", "earlier"))
    all_games = list(games_of(games))
    for documents in (checked, new, earlier):
        same("numbers", [game["game"] for game in documents], list(range(len(all_games))))
    reference = Reference(reference)
    for number, game in enumerate(all_games):
        here = checked[number]
        same(f"check, game {number + 1}", (here["left_by"], here["ply"]), check(known, game, color))
        for name, found, only_earlier in (("new", new[number], False), ("earlier", earlier[number], True)):
            last = found["last_game"] and int(found["last_game"]["id"])
            told = (found["ply"], found["move"], found["games_before"], last)
            same(f"{name}, game {number + 1}", told, reference.new(game, only_earlier))
    expected = gaps(known, reference, color, 60)
    found = {}
    answered = document("gaps")
    for gap in answered["gaps"] + answered["line_ends"]:
        board = chess.Board(gap["fen"])
        line = chess.Board()
        for word in gap["line"].split():
            if not word.endswith("."):
                line.push_san(word)
        same("line", line.fen(), board.fen())
        same("line", line.turn, not color)
        counts = reference.moves[chess.polyglot.zobrist_hash(board)]
        move = board.parse_san(gap["move"])
        same("games", gap["games"], counts[move])
        board.push(move)
        found[chess.polyglot.zobrist_hash(board)] = gap["one_in"]
    same("gaps", len(found), len(expected))
    for key, reach in expected.items():
        # Documents have at most six decimal places.
        if abs(found[key] - 1 / min(reach, 1)) > 1e-6:
            sys.exit(f"reach {reach} is 1 in {found[key]}")
    print(len(all_games), "games,", len(expected), "gaps")


main(*sys.argv[1:])
