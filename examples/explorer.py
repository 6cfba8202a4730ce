"""Prints the moves that were played in a position: python3 explorer.py ADDRESS [NAME=VALUE...]

    polybook serve data/famous.pgn
    python3 examples/explorer.py http://127.0.0.1:8040/ play=e2e4,e7e5 "player=Morphy, Paul"

The class Explorer needs only the standard library.
"""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request


class Refused(Exception):
    """The server refused a request. The text says why."""


class Explorer:
    def __init__(self, address):
        self.address = address

    def ask(self, route, body=None, **parameters):
        """Requests a route, and returns its JSON. A parameter may be a list, such as the names of a player."""
        query = urllib.parse.urlencode(parameters, doseq=True)
        headers = {"Accept": "application/json", "Content-Type": "application/json", "X-Polybook": "1"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{urllib.parse.urljoin(self.address, route)}?{query}", data, headers)
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            # The answer to a request that is too long has no text.
            text = error.read()
            raise Refused(json.loads(text)["error"] if text else str(error)) from None

    def positions(self, fens, **parameters):
        """Returns the answers about any number of positions, in their order."""
        answers = []
        for start in range(0, len(fens), 1000):
            answers += self.ask("positions", fens[start : start + 1000], **parameters)
        return answers


def games(results):
    return results["white"] + results["draws"] + results["black"]


if __name__ == "__main__":
    address, *arguments = sys.argv[1:]
    parameters = dict(argument.split("=", 1) for argument in arguments)
    explorer = Explorer(address)
    answer = explorer.ask("lichess", **parameters)
    unknown = answer["polybook"].get("unknownName")
    if unknown:
        print(f"no game has {unknown['name']}: did you mean {', '.join(unknown['nearest'])}?")
    for move in answer["moves"]:
        print(f"{move['san']:<7} {games(move):>6} {(move['opening'] or {}).get('name', '')}")
    # The route positions reads the variant and the filters, but no line.
    known = ["variant", *explorer.ask("about")["conditions"]]
    filters = {name: value for name, value in parameters.items() if name in known}
    [here] = explorer.positions([answer["polybook"]["fen"]], moves=0, **filters)
    print(f"{games(here)} games continue from the position and pass the filters")
