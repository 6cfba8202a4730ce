"""Compares queries about the board with a brute force by python-chess: the games, and the half-moves in each game.

Arguments: the program, and a PGN file whose games begin with the tag Event.
"""

import json
import re
import subprocess
import sys

import chess
import chess.pgn

program, path = sys.argv[1:3]


def squares(text):
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        last = last or first
        letters = [re.sub("[1-8]", "", end) or "ah"[at] for at, end in enumerate((first, last))]
        digits = [re.sub("[a-h]", "", end) or "18"[at] for at, end in enumerate((first, last))]
        found |= {
            square
            for square in chess.SQUARES
            if letters[0] <= chess.FILE_NAMES[chess.square_file(square)] <= letters[1]
            and digits[0] <= chess.RANK_NAMES[chess.square_rank(square)] <= digits[1]
        }
    return found


def count(board, letter, text="a1-h8"):
    wanted = squares(text)
    if letter in ("white", "black"):
        return sum(1 for square in wanted if board.color_at(square) == (letter == "white"))
    piece = chess.Piece.from_symbol(letter)
    return sum(1 for square in wanted if board.piece_at(square) == piece)


def material(board):
    sides = ("".join(sorted(letter for letter in board.board_fen() if letter.isalpha() and test(letter)))
             for test in (str.isupper, str.islower))
    return "v".join(side.upper() for side in sides)


def spread(text):
    return "v".join("".join(sorted(side)) for side in text.split("v"))


def imbalance(board):
    white, black = material(board).split("v")
    for letter in "QRBNPK":
        both = min(white.count(letter), black.count(letter))
        white, black = (side.replace(letter, "", both) for side in (white, black))
    return white + "v" + black


def stands(board, placement):
    wanted = chess.Board(None)
    wanted.set_board_fen(placement)
    return all(board.piece_at(square) == piece for square, piece in wanted.piece_map().items())


def san(node):
    return node.board.san(node.move) if node.move else ""


def captured(node):
    if not node.move or not node.board.is_capture(node.move):
        return None
    if node.board.is_en_passant(node.move):
        return chess.PAWN
    return node.board.piece_type_at(node.move.to_square)


def moved(node):
    return node.board.piece_type_at(node.move.from_square) if node.move else None


class Node:
    def __init__(self, board, move, ply):
        self.board, self.move, self.ply = board, move, ply


def mirrored(test):
    def exchanged(node):
        move = node.move and chess.Move(
            chess.square_mirror(node.move.from_square), chess.square_mirror(node.move.to_square), node.move.promotion
        )
        return test(Node(node.board.mirror(), move, node.ply))

    return lambda node: test(node) or exchanged(node)


def each(test):
    return lambda nodes: [bool(test(node)) for node in nodes]


def lasts(test, positions):
    def values(nodes):
        holds, run, found = each(test)(nodes), 0, []
        for value in holds:
            run = run + 1 if value else 0
            found.append(run >= positions)
        return found

    return values


def follows(*tests):
    def values(nodes):
        tests_values = [test(nodes) for test in tests]
        so_far = tests_values[0]
        for later in tests_values[1:]:
            so_far = [later[ply] and any(so_far[:ply]) for ply in range(len(nodes))]
        return so_far

    return values


QUERIES = []


def query(text, test):
    QUERIES.append((text, each(test)))


for letter in "QRBNPqrbnp":
    query(f"{letter} = 1", lambda node, letter=letter: count(node.board, letter) == 1)
for letter, text in [("P", "d"), ("p", "e5"), ("n", "b-e"), ("R", "7"), ("q", "5-7"), ("B", "a1-h4"), ("P", "a4,c5,d5")]:
    query(
        f"{letter}[{text}] >= 1 and ply > 20",
        lambda node, letter=letter, text=text: count(node.board, letter, text) >= 1 and node.ply > 20,
    )
query("P[d] = 1 and P[c,e] = 0", lambda n: count(n.board, "P", "d") == 1 and count(n.board, "P", "c,e") == 0)
query("p[d] = 1 and p[c,e] = 0", lambda n: count(n.board, "p", "d") == 1 and count(n.board, "p", "c,e") == 0)
query("white[6] > 1", lambda n: count(n.board, "white", "6") > 1)
query("white - black >= 2", lambda n: count(n.board, "white") - count(n.board, "black") >= 2)
query("2 * N + B = n + b * 2", lambda n: 2 * count(n.board, "N") + count(n.board, "B") == count(n.board, "n") + 2 * count(n.board, "b"))
query("Q + q = 0 and R + r = 1", lambda n: count(n.board, "Q") + count(n.board, "q") == 0 and count(n.board, "R") + count(n.board, "r") == 1)
query("not (Q or q) and turn = black", lambda n: not (count(n.board, "Q") or count(n.board, "q")) and not n.board.turn)
query("Qd1 = 0 and qd8 and ply < 12", lambda n: not count(n.board, "Q", "d1") and count(n.board, "q", "d8") and n.ply < 12)
query("check", lambda n: n.board.is_check())
query("check and turn = white", lambda n: n.board.is_check() and n.board.turn)
query("mate", lambda n: n.board.is_checkmate())
query("stalemate", lambda n: n.board.is_stalemate())
query("board[8/8/8/3P4/8/8/8/8]", lambda n: stands(n.board, "8/8/8/3P4/8/8/8/8"))
query("board[8/8/8/8/8/5N2/8/6K1, 8/8/8/8/8/2N5/8/2K5]", lambda n: stands(n.board, "8/8/8/8/8/5N2/8/6K1") or stands(n.board, "8/8/8/8/8/2N5/8/2K5"))
query("board[6k1/5ppp/8/8/8/8/5PPP/6K1]", lambda n: stands(n.board, "6k1/5ppp/8/8/8/8/5PPP/6K1"))
for placement in ["rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR", "rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR"]:
    query(f"fen[{placement}]", lambda n, placement=placement: n.board.board_fen() == placement)
query(
    "fen[rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq - 0 1]",
    lambda n: n.board.fen() == "rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq - 0 1",
)
for text in ["KRPPvKRP", "KRPvKRP", "KPvK", "KRvKR", "KQvK", "KBPPvKNP"]:
    query(f"material[{text}]", lambda n, text=text: material(n.board) == spread(text))
for text in ["PPvN", "Pv", "vPP", "BvN", "RvB", "v"]:
    query(f"imbalance[{text}]", lambda n, text=text: imbalance(n.board) == spread(text))
query("move[O-O-O] and turn = white", lambda n: n.board.turn and san(n).startswith("O-O-O"))
query("move[O-O]", lambda n: san(n).rstrip("+#") == "O-O")
query("move[e8=Q]", lambda n: bool(re.fullmatch("([a-h]x)?e8=Q[+#]?", san(n))))
query("move[=]", lambda n: "=" in san(n))
query("move[Bxh7]", lambda n: bool(re.match("B[a-h1-8]*xh7", san(n))))
query("move[KxQ]", lambda n: moved(n) == chess.KING and captured(n) == chess.QUEEN)
query("move[xQ]", lambda n: captured(n) == chess.QUEEN)
query("move[PxN]", lambda n: moved(n) == chess.PAWN and captured(n) == chess.KNIGHT)
query("move[x]", lambda n: "x" in san(n))
query("move[#]", lambda n: "#" in san(n))
query("move[N+]", lambda n: bool(re.match("N.*[+#]", san(n))))
query("move[Nf3, Nc6]", lambda n: bool(re.match("N[a-h1-8]*x?(f3|c6)[+#]?$", san(n))))
query("move[exd5]", lambda n: san(n).rstrip("+#") == "exd5")
query("move[d5]", lambda n: bool(re.fullmatch("([a-h]x)?d5[+#]?", san(n))))
query("move[*d5]", lambda n: n.move and n.move.to_square == chess.D5 and "O" not in san(n))
query("either(P[d] = 1 and P[c,e] = 0)", mirrored(lambda n: count(n.board, "P", "d") == 1 and count(n.board, "P", "c,e") == 0))
query("either(imbalance[BvN] and turn = white)", mirrored(lambda n: imbalance(n.board) == "BvN" and n.board.turn))
query("either(move[Bxh7])", mirrored(lambda n: bool(re.match("B[a-h1-8]*xh7", san(n)))))
QUERIES += [
    ("imbalance[Pv] for 6", lasts(lambda n: imbalance(n.board) == "Pv", 6)),
    ("Q + q = 0 for 20", lasts(lambda n: count(n.board, "Q") + count(n.board, "q") == 0, 20)),
    (
        "move[O-O] and turn = white then move[O-O-O] and turn = black",
        follows(
            each(lambda n: n.board.turn and san(n).rstrip("+#") == "O-O"),
            each(lambda n: not n.board.turn and san(n).startswith("O-O-O")),
        ),
    ),
    (
        "imbalance[Pv] then imbalance[vP] then imbalance[v]",
        follows(*(each(lambda n, text=text: imbalance(n.board) == text) for text in ("Pv", "vP", "v"))),
    ),
    (
        "imbalance[vP] or imbalance[Pv] for 4 then check",
        follows(lasts(lambda n: imbalance(n.board) in ("vP", "Pv"), 4), each(lambda n: n.board.is_check())),
    ),
]

with open(path, "rb") as file:
    text = file.read()
offsets = [match.start() for match in re.finditer(rb"^\[Event ", text, re.MULTILINE)]
games = []
with open(path, encoding="latin-1") as file:
    while (game := chess.pgn.read_game(file)) is not None:
        board, nodes = game.board(), []
        for ply, move in enumerate([*game.mainline_moves(), None]):
            nodes.append(Node(board.copy(stack=False), move, ply))
            if move:
                board.push(move)
        games.append(nodes)
assert len(games) == len(offsets), (len(games), len(offsets))

assert len(QUERIES) >= 60, len(QUERIES)
found = 0
for text, values in QUERIES:
    command = [program, "extract", "-q", path, "--json", "--position", text]
    document = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    ours = {game["offset"]: game["matches"] for game in document["games"]}
    expected = {}
    for offset, nodes in zip(offsets, games):
        plies = [ply for ply, holds in enumerate(values(nodes)) if holds]
        if plies:
            expected[offset] = plies
    if ours != expected:
        other = [offset for offset in offsets if ours.get(offset) != expected.get(offset)][0]
        sys.exit(f"{text}: at {other}: {ours.get(other)} instead of {expected.get(other)}")
    for game in document["games"]:
        nodes = games[offsets.index(game["offset"])]
        board = nodes[game["matches"][0]].board
        if game["fen"].split()[0] != board.board_fen():
            sys.exit(f"{text}: {game['fen']} instead of {board.fen()}")
    found += len(expected)
assert found > 100, found
print(len(QUERIES), "queries,", found, "games")
