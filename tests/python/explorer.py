"""Answers the queries of an opening explorer directly from a PGN file, using only python-chess.

explorer.py --positions N --filters M [--seed S] [--all] GAMES.pgn...

Prints a JSON document a line: a question (the files count as one database) and what the answer must say. The
positions are drawn from random games, or with --all every position of N games is taken, without filters.
"""

import argparse
import calendar
import collections
import fractions
import io
import json
import random
import re
import unicodedata

import chess
import chess.pgn
import chess.variant

SPEEDS = [(30, "ultraBullet"), (180, "bullet"), (480, "blitz"), (1500, "rapid"), (21600, "classical")]
GROUPS = [0, 1000, 1200, 1400, 1600, 1800, 2000, 2200, 2500]
SITE = re.compile(r"https://lichess\.org/(?=.*[A-Za-z])([0-9A-Za-z]{8})(?:[0-9A-Za-z]{4})?(?:/black|/white)?(?:#.*)?")
PAGES = {"analysis", "practice", "training"}


def speed(tag):
    if tag == "-":
        return "correspondence"
    period = r"\d+/\d+(?:\+\d+)?"
    if not re.fullmatch(rf"(?:{period}:)*(?:{period}|\*?\d+(?:\+\d+)?)", tag.strip()):
        return "classical"
    match = re.match(r"(?:\d+/)?\*?(\d+)(?:\+(\d+))?", tag.strip())
    seconds = int(match[1]) + 40 * int(match[2] or 0)
    return next((name for most, name in SPEEDS if seconds < most), "correspondence")


def rating(tag):
    elo = int(tag) if re.fullmatch(r"\s*\d+\s*", tag) else 0
    return elo if elo <= 4000 else 0


def folded(name):
    """Returns a name in the form in which names are compared."""
    name = unicodedata.normalize("NFC", name)
    return " ".join(unicodedata.normalize("NFC", name.upper().lower()).split())


def date_of(headers):
    for name in ["Date", "UTCDate", "EventDate"]:
        parts = re.split(r"[.\-/]", headers.get(name, ""))
        numbers = [int(part) if part.isdigit() else 0 for part in (parts + ["", ""])[:3]]
        if numbers[0] and len(parts[0].strip()) == 4:
            month = numbers[1] if 1 <= numbers[1] <= 12 else 0
            days = calendar.monthrange(numbers[0], month)[1] if month else 31
            day = numbers[2] if 1 <= numbers[2] <= days else 0
            return (numbers[0], month, day)
        if len(parts) == 3 and len(parts[2].strip()) == 4 and numbers[2]:
            # A date that ends in its year. Day and month are known if only one order of the two is possible.
            day, month = numbers[:2] if numbers[0] > 12 else numbers[1::-1]
            if not all(numbers) or month > 12 or not (day > 12 or day == month):
                return (numbers[2], 0, 0)
            days = calendar.monthrange(numbers[2], month)[1]
            return (numbers[2], month, day if day <= days else 0)
    return (0, 0, 0)


def square_bits(board):
    """Returns what identifies a position, like python-chess's _transposition_key."""
    takes = board.has_legal_en_passant()
    key = [board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings,
           board.occupied_co[0], board.occupied_co[1], board.turn, board.clean_castling_rights(),
           board.ep_square if takes else None]  # fmt: skip
    if isinstance(board, chess.variant.CrazyhouseBoard):
        key += [str(board.pockets[0]), str(board.pockets[1]), board.promoted]
    if isinstance(board, chess.variant.ThreeCheckBoard):
        key += [tuple(board.remaining_checks)]
    return tuple(key)


class Game:
    def __init__(self, number, game):
        headers = game.headers
        self.number = number
        self.variant = headers.get("Variant", "Standard")
        if self.variant == "From Position":
            self.variant = "Standard"
        self.names = (headers.get("White", "?"), headers.get("Black", "?"))
        self.elo = (rating(headers.get("WhiteElo", "")), rating(headers.get("BlackElo", "")))
        self.date = date_of(headers)
        self.result = headers.get("Result", "*")
        self.speed = speed(headers.get("TimeControl", "?"))
        self.event = headers.get("Event", "?")
        self.mode = "casual" if re.search(r"(?i)\b(casual|unrated)\b", self.event) else "rated"
        self.eco = headers.get("ECO", "")
        site = SITE.fullmatch(headers.get("Site", ""))
        self.site_id = site[1] if site and site[1] not in PAGES else None
        self.id = f"{number:08}"
        board = game.board()
        self.start = board.copy()
        self.moves = list(game.mainline_moves())

    def mean_rating(self):
        """Returns the mean of the known ratings, or 0 if no rating is known."""
        known = [elo for elo in self.elo if elo]
        return fractions.Fraction(sum(known), len(known)) if known else 0

    def group(self):
        mean = self.mean_rating()
        return max(floor for floor in GROUPS if floor <= mean) if mean else "unknown"

    def info(self):
        winner = {"1-0": "white", "0-1": "black"}.get(self.result)
        year, month, _ = self.date
        return {
            "id": self.id, "winner": winner, "speed": self.speed, "mode": self.mode,
            "black": {"name": self.names[1], "rating": self.elo[1]},
            "white": {"name": self.names[0], "rating": self.elo[0]},
            "year": year, "month": f"{year:04}-{month:02}" if year and month else None,
            **({"unfinished": True} if self.result == "*" else {}),
        }  # fmt: skip

    def walk(self):
        """Yields each position with the move that was played in it, None at the end."""
        board = self.start.copy()
        for move in self.moves:
            yield board, move
            board.push(move)
        yield board, None


def uci(board, move):
    """Returns a move in UCI notation, with castling as the king capturing its rook."""
    if board.is_castling(move):
        side = chess.A1 if board.is_queenside_castling(move) else chess.H1
        if board.chess960:
            return board.uci(move, chess960=True)
        rank = chess.square_rank(move.from_square)
        return chess.square_name(move.from_square) + chess.square_name(
            chess.square(chess.square_file(side), rank)
        )
    return move.uci()


def is_between(date, since, until):
    """Returns True unless a date is certainly outside of a range. Unknown parts decide nothing."""
    for bound, sign in [(since, 1), (until, -1)]:
        for ours, theirs in zip(date, bound or ()):
            if not ours or not theirs:
                break
            if ours != theirs:
                if (ours - theirs) * sign < 0:
                    return False
                break
    return True


def passes(game, filters):
    low, high = filters.get("minElo"), filters.get("maxElo")
    players = [folded(name) for name in game.names]
    if "player" in filters:
        lowest, highest = filters.get("opponentRating", (0, 9999))
        sides = [
            players[side] == folded(filters["player"])
            and folded(filters.get("opponent", players[1 - side])) == players[1 - side]
            and filters.get("color", ["white", "black"][side]) == ["white", "black"][side]
            and (lowest <= game.elo[1 - side] <= highest and game.elo[1 - side] > 0 or "opponentRating" not in filters)
            for side in (0, 1)
        ]
        if not any(sides):
            return False
    elif "opponent" in filters and folded(filters["opponent"]) not in players:
        return False
    eco = re.match(r"[A-Ea-e]\d\d", game.eco.strip())
    return (
        ("speeds" not in filters or game.speed in filters["speeds"])
        and ("ratings" not in filters or game.group() in filters["ratings"])
        and ("modes" not in filters or game.mode in filters["modes"])
        and ("results" not in filters or game.result in filters["results"])
        and ("event" not in filters or folded(game.event) == folded(filters["event"]))
        and ("eco" not in filters or bool(eco) and filters["eco"][0] <= eco[0].upper() <= filters["eco"][1])
        and len(game.moves) >= filters.get("minPly", 0)
        and all(not elo or (low or 0) <= elo <= (high or 9999) for elo in game.elo)
        and is_between(game.date, filters.get("since"), filters.get("until"))
        and (game.date[0] > 0 or not filters.get("requireDate"))
    )


def random_filters(games, rng, names):
    """Returns a combination of filters that some game is likely to pass, using only the named filters if any are named."""
    game = rng.choice(games)
    years = sorted(rng.choice(games).date[0] for _ in range(2))
    all_filters = {
        "player": lambda: rng.choice([str.upper, str.lower, str])(rng.choice(game.names)),
        "color": lambda: rng.choice(["white", "black"]),
        "opponent": lambda: rng.choice(game.names),
        "opponentRating": lambda: sorted(rng.randrange(1000, 2800) for _ in range(2)),
        "requireDate": lambda: True,
        "speeds": lambda: rng.sample(["bullet", "blitz", "rapid", "classical", "correspondence"], 3),
        "ratings": lambda: rng.sample([*GROUPS, "unknown"], 5),
        "modes": lambda: [rng.choice(["rated", "casual"])],
        "results": lambda: rng.sample(["1-0", "0-1", "1/2-1/2", "*"], 2),
        "event": lambda: game.event,
        "eco": lambda: sorted(["%s%02d" % (rng.choice("ABCDE"), rng.randrange(100)) for _ in range(2)]),
        "minPly": lambda: rng.randrange(100),
        "minElo": lambda: rng.randrange(2000, 2600),
        "maxElo": lambda: rng.randrange(2000, 2800),
        "since": lambda: [years[0], rng.randrange(13)],
        "until": lambda: [years[1], rng.randrange(13), 0],
    }
    chosen = rng.sample(names or sorted(all_filters), rng.randint(1, 3))
    if {"color", "opponentRating"} & set(chosen) and "player" not in chosen:
        chosen.append("player")
    return {name: all_filters[name]() for name in chosen}


def answer(board, reached, filters, after):
    """Returns the answer from the games that reached a position, with their last moves in it.

    `after` has, for each legal move of the position, the games that reached the position after it.
    """
    passing = [(game, move) for game, move in reached if passes(game, filters)]
    played = [(game, move) for game, move in passing if move is not None]
    moves = collections.defaultdict(list)
    for game, move in played:
        moves[move].append(game)

    def results(games):
        wins = collections.Counter(game.result for game in games)
        unfinished = {"unfinished": wins["*"]} if wins["*"] else {}
        return {"white": wins["1-0"], "black": wins["0-1"], "draws": wins["1/2-1/2"] + wins["*"], **unfinished}

    listed = []
    for move, games in sorted(moves.items(), key=lambda item: (-len(item[1]), item[0])):
        ratings = [game.elo[0 if board.turn else 1] for game in games]
        ratings = [elo for elo in ratings if elo]
        listed.append({
            "uci": move, "averageRating": sum(ratings) // len(ratings) if ratings else 0, **results(games),
            "game": games[0].info() if len(games) == 1 else None,
            **({"ratingGames": len(ratings)} if 0 < len(ratings) < len(games) else {}),
        })  # fmt: skip
        if after:
            behind = [(game, reply) for game, reply in after[move].values() if passes(game, filters)]
            going_on = [game for game, reply in behind if reply is not None]
            ended = len(behind) - len(going_on)
            listed[-1]["resulting"] = {"games": len(going_on), **results(going_on), "ended": ended}

    def named(games, key, most):
        best = sorted(games, key=lambda item: key(item[0]), reverse=True)[:most]
        return [{"uci": move, **game.info()} for game, move in best]

    def newest(game):
        # A day of an unknown month says nothing about the order.
        year, month, day = game.date
        return (year, month, day if month else 0, game.number)

    top = named(played, lambda game: (game.mean_rating(), *newest(game)), 4)
    others = [(game, move) for game, move in played if all(game.id != other["id"] for other in top)]
    return {
        **results([game for game, _ in played]),
        "moves": listed,
        "topGames": top,
        "recentGames": named(others, newest, 8 - len(top)),
        "reached": len(passing),
        "byId": [game.id for game, _ in passing][:50],
    }


def read(text):
    """Returns a game that begins with its tags. A second blank line would end it for python-chess, before or within its moves."""
    lines = [line for line in text.splitlines() if line.strip()]
    moves = next((number for number, line in enumerate(lines) if not line.startswith("[")), len(lines))
    return chess.pgn.read_game(io.StringIO("\n".join([*lines[:moves], "", *lines[moves:], ""])))


def games_of(path):
    """Returns the games of a file."""
    with open(path, encoding="utf-8") as file:
        texts = re.split(r"^(?=\[Event )", file.read(), flags=re.M)
    return [read(text) for text in filter(str.strip, texts)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pgn", nargs="+")
    parser.add_argument("--positions", type=int, default=100)
    parser.add_argument("--filters", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--of-filters", type=lambda text: text.split(","), help="filters joined by commas")
    args = parser.parse_args()
    rng = random.Random(args.seed)

    games, number = [], 0
    for path in args.pgn:
        for game in games_of(path):
            # A game with an illegal move has a number, but is not counted.
            if not game.errors:
                games.append(Game(number, game))
            number += 1

    shared = collections.Counter(game.site_id for game in games)
    for game in games:
        if game.site_id and shared[game.site_id] == 1:
            game.id = game.site_id

    wanted = {}
    for game in rng.sample(games, min(args.positions, len(games))) if args.all else rng.choices(games, k=args.positions):
        positions = [board.copy(stack=False) for board, _ in game.walk()]
        for board in positions if args.all else [rng.choice(positions[: rng.choice([2, 10, 400])])]:
            wanted.setdefault((game.variant, square_bits(board)), board)

    # For each position, the keys of the positions after its legal moves.
    after = {}
    for (variant, key), board in wanted.items():
        moves = after[variant, key] = {}
        for move in [] if args.all else list(board.legal_moves):
            name = uci(board, move)
            board.push(move)
            moves[name] = (variant, square_bits(board))
            board.pop()

    reached = {key: {} for key in [*wanted, *(key for moves in after.values() for key in moves.values())]}
    for game in games:
        for board, move in game.walk():
            key = (game.variant, square_bits(board))
            if key in reached:
                # A game that repeats the position counts with its last move in it.
                if move is not None:
                    reached[key][game.number] = (game, uci(board, move))
                else:
                    reached[key].setdefault(game.number, (game, None))

    combinations = [{}] + ([] if args.all else [random_filters(games, rng, args.of_filters) for _ in range(args.filters)])
    for (variant, key), board in wanted.items():
        found = [reached[variant, key][number] for number in sorted(reached[variant, key])]
        behind = {move: reached[other] for move, other in after[variant, key].items()}
        for filters in combinations:
            question = {"variant": variant, "fen": board.fen(en_passant="xfen"), "filters": filters}
            print(json.dumps({**question, "answer": answer(board, found, filters, behind)}))


if __name__ == "__main__":
    main()
