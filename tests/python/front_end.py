"""Reads an index as a front-end does, with LevelDB's own C++ code, and compares it with python-chess.

front_end.py INDEX_DIR GAMES.pgn [--stats] [--positions N] [--games N]

All records are compared; positions and games are drawn at random, all of them unless told how many.
"""

import argparse
import collections
import io
import random
import re

import chess
import chess.pgn
import chess.polyglot
import plyvel

FIELDS = [
    "White", "WhiteElo", "Black", "BlackElo", "Result", "Date", "Event", "Site", "ECO", None,
    "FEN", "PlyCount", "EventDate", "EventType",
]  # fmt: skip
TAG = re.compile(rb'^\[(\w+)\s+"(.*)"\s*\]\s*$')


def independent_records(pgn):
    """Returns the record of each game, by reading the tags line by line."""
    tags, first, offset, in_tags = {}, None, 0, False
    with open(pgn, "rb") as file:
        for line in file:
            match = TAG.match(line)
            if match and not in_tags and tags:
                yield record(tags, first)
                tags = {}
            if match:
                if not tags:
                    first = offset + 1
                tags[match[1].decode()] = re.sub(rb"[|\r\n]", b"/", match[2])
            if line.strip():
                in_tags = bool(match)
            offset += len(line)
    if tags:
        yield record(tags, first)


def record(tags, first):
    values = []
    for name in FIELDS:
        if name is None:
            values.append(str(first).encode())
        else:
            values.append(tags.get(name, b"" if name == "FEN" else b"*"))
    return b"|".join(values)


def ids_of(db, key):
    """Returns the ids of a position, by a range scan that contains only its key."""
    text = str(key).encode()
    with db.iterator(start=text, stop=text, include_stop=True, verify_checksums=True) as found:
        values = [value for _, value in found]
    if not values:
        return []
    assert len(values) == 1
    return [int(number) for number in values[0].split(b",")[:-1]]


def parse(text):
    """Returns the single game in a text. A second blank line would begin another game for python-chess."""
    return chess.pgn.read_game(io.StringIO(re.sub(r"\n(\s*\n)+", "\n\n", text)))


def games_of(pgn_bytes, records):
    """Returns the games, split where the tags begin."""
    starts = [int(record.split(b"|")[9]) - 1 for record in records] + [len(pgn_bytes)]
    for start, end in zip(starts, starts[1:]):
        yield parse(pgn_bytes[start:end].decode("latin-1"))


def game_text(db, pgn_bytes, number, total):
    """Returns the text of a game, from its offset to that of the next game."""
    def place(number):
        return int(db.get(f"game_{number}_data".encode()).split(b"|")[9])

    start = place(number)
    end = place(number + 1) - 1 if number + 1 < total else len(pgn_bytes)
    return "[" + pgn_bytes[start:end].decode("latin-1")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("index")
    parser.add_argument("pgn")
    parser.add_argument("--stats", action="store_true")
    parser.add_argument("--positions", type=int)
    parser.add_argument("--games", type=int)
    args = parser.parse_args()
    rng = random.Random(960)

    db = plyvel.DB(args.index, create_if_missing=False, paranoid_checks=True)
    assert db.get(b"numPasses") is None
    total = int(db.get(b"total_game_count"))
    assert db.get(b"pgn_filename").decode().endswith(args.pgn.split("/")[-1])

    last, entries = b"", 0
    with db.iterator(verify_checksums=True) as everything:
        for key, value in everything:
            assert key > last, (key, last)
            last = key
            entries += 1
            if key.isdigit():
                ids = value.split(b",")[:-1]
                assert len(ids) == len(set(ids)) and ids == sorted(ids, key=int), key
            elif not args.stats:
                assert key.startswith((b"game_", b"pgn_", b"total_")), key

    expected = list(independent_records(args.pgn))
    assert len(expected) == total, (len(expected), total)
    for number, value in enumerate(expected):
        found = db.get(f"game_{number}_data".encode())
        assert found == value, (number, found, value)

    # All positions of all games, according to python-chess.
    reached = collections.defaultdict(list)
    results, boards, played = [], {}, collections.defaultdict(set)
    sequences = []
    with open(args.pgn, "rb") as file:
        pgn_bytes = file.read()
    for number, game in enumerate(games_of(pgn_bytes, expected)):
        results.append(game.headers["Result"])
        board = game.board()
        keys = [chess.polyglot.zobrist_hash(board)]
        moves = list(game.mainline_moves())
        for move in moves:
            if args.stats:
                raw = move
                if board.is_castling(move):
                    file_ = 7 if board.is_kingside_castling(move) else 0
                    rank = chess.square_rank(move.from_square)
                    raw = chess.Move(move.from_square, chess.square(file_, rank))
                bits = raw.from_square << 6 | raw.to_square | (raw.promotion or 1) - 1 << 12
                played[keys[-1]].add(bits)
                if keys[-1] not in boards and len(boards) < 1000 and rng.random() < 0.05:
                    boards[keys[-1]] = board.copy(stack=False)
            board.push(move)
            keys.append(chess.polyglot.zobrist_hash(board))
        for key in set(keys):
            reached[key].append(number)
        if args.games is None or rng.random() < args.games / total * 1.1:
            sequences.append((number, moves))

    keys = list(reached)
    if args.positions is not None:
        keys = rng.sample(keys, min(args.positions, len(keys)))
    for key in keys:
        assert ids_of(db, key) == reached[key], key
    for _ in range(100):
        stranger = rng.getrandbits(64)
        assert ids_of(db, stranger) == reached.get(stranger, [])

    for number, moves in sequences:
        game = parse(game_text(db, pgn_bytes, number, total))
        assert list(game.mainline_moves()) == moves, number

    if args.stats:
        for key, board in boards.items():
            check_opening_table(db, key, board, reached, results, played)
    print(f"{entries} entries, {total} records, {len(keys)} positions, {len(sequences)} games agree")


def check_opening_table(db, key, board, reached, results, played):
    """Returns the table of moves as a front-end shows it: each move with the results of the position after it."""
    moves = [int(bits) for bits in db.get(f"{key}_moves".encode()).split(b",")[:-1]]
    assert set(moves) == played[key] and len(moves) == len(set(moves)), key
    for bits in moves:
        move = chess.Move(bits >> 6 & 63, bits & 63, (bits >> 12) + 1 if bits >> 12 else None)
        if board.kings & chess.BB_SQUARES[move.from_square] and board.color_at(
            move.to_square
        ) == board.turn:
            king_to = chess.square(
                6 if chess.square_file(move.to_square) == 7 else 2, chess.square_rank(move.to_square)
            )
            move = chess.Move(move.from_square, king_to)
        assert board.is_legal(move), (board.fen(), move)
        after = board.copy(stack=False)
        after.push(move)
        number = str(chess.polyglot.zobrist_hash(after))
        freq, score, draws = (
            int(db.get(f"{number}_{name}".encode())) for name in ("freq", "white_score", "draws")
        )
        games = [results[game] for game in reached[int(number)]]
        white, black = games.count("1-0"), games.count("0-1")
        assert freq == len(games), (number, freq)
        assert draws == len(games) - white - black, (number, draws)
        assert (freq - draws - score) // 2 == black, (number, score)
        assert (freq - draws + score) // 2 == white, (number, score)


main()
