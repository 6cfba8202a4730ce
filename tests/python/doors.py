"""Sends the queries of tests/doors.rs to polybook's Python package. Queries and answers are JSON on standard input and output."""

import json
import sys
import tempfile
from pathlib import Path

import polybook


def counts(moves, numbers):
    return {move["uci"]: [move[name] for name in numbers] for move in moves}


games, index = sys.argv[1:]
explorer = polybook.Explorer([("games", index)])
lists = polybook.Index(index)
answers = []
with tempfile.TemporaryDirectory() as directory:
    book, database = (str(Path(directory) / name) for name in ("a.bin", "a.obs.db3"))
    for question in json.load(sys.stdin):
        fen = question["fen"]
        polybook.make_book([games], bin=book, obs=database, force=True, allow_empty=True, **question["make"])
        answer = {
            "book": counts(polybook.Book(book).moves(fen), ["weight"]),
            "database": counts(polybook.Obs(database).moves(fen), ["wins", "draws", "losses"]),
            "reached": len(lists.games(fen)),
        }
        if question["ask"] is not None:
            try:
                asked = explorer.answer(fen, moves=999, **question["ask"])
                answer["explorer"] = counts(asked["moves"], ["white", "draws", "black"])
            except ValueError as error:
                # Names that no game contains are an error, so no move may be expected.
                assert str(error).startswith("no player"), error
                answer["explorer"] = {}
        answers.append(answer)
json.dump(answers, sys.stdout)
