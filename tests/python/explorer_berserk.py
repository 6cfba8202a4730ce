"""Sends every explorer call of berserk, a client of Lichess's API, to a server of games.

usage: explorer_berserk.py URL PLAYER
"""

import sys

import berserk
import chess


def main():
    url, player = sys.argv[1].rstrip("/"), sys.argv[2]
    client = berserk.Client(explorer_url=url)
    explorer = client.opening_explorer

    lichess = explorer.get_lichess_games(
        variant="standard",
        play=["e2e4", "e7e5"],
        speeds=["classical", "rapid"],
        ratings=["0", "1000", "1200", "1400", "1600", "1800", "2000", "2200", "2500"],
        since="1800-01",
        until="2030-12",
        moves=5,
        top_games=2,
        recent_games=3,
        history=True,
    )
    assert lichess["white"] + lichess["draws"] + lichess["black"] > 0, lichess
    assert len(lichess["moves"]) <= 5 and len(lichess["topGames"]) <= 2
    assert all(isinstance(game["white"]["rating"], int) for game in lichess["topGames"])
    fen = chess.Board().fen()
    assert explorer.get_lichess_games(position=fen)["moves"]

    masters = explorer.get_masters_games(position=fen, since=1800, until=2030, moves=3, top_games=4)
    assert len(masters["moves"]) == 3 and masters["topGames"], masters
    text = explorer.get_otb_master_game(masters["topGames"][0]["id"])
    assert text.startswith("[Event "), text

    personal = explorer.get_player_games(
        player=player, color="white", variant="standard", wait_for_indexing=True, recent_games=2
    )
    assert personal["moves"] and len(personal["recentGames"]) <= 2, personal
    stream = list(explorer.stream_player_games(player=player, color="white"))
    assert len(stream) == 1 and stream[0]["moves"], stream
    print("berserk: all calls answered")


main()
