"""Opening books and game indexes from PGN, and games as NumPy arrays.

polybook is under the GNU General Public License, version 3 or later, and so is what is distributed with it.
"""

from os import PathLike
from typing import Any, Callable, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple, TypedDict, Union

import numpy as np
import numpy.typing as npt
from typing_extensions import Unpack

__version__: str

_Path = Union[str, PathLike[str]]
_Texts = Union[str, Sequence[str]]

class _Board(Protocol):
    def fen(self) -> str: ...

#: None is the position in which games start. A board is one of python-chess.
_Position = Union[None, str, _Board]

class Error(Exception):
    """What polybook cannot do, and why. Errors of the operating system are OSError."""

class GameError(Error):
    """A game that cannot be replayed."""

    file: str
    #: The number of the game in the file, from 0.
    game: int
    #: The move's offset in the unpacked file, in bytes.
    offset: int
    #: How many half-moves were played before it.
    ply: int
    move: str
    reason: str

class BookMove(TypedDict):
    uci: str
    #: None for a move that is not legal.
    san: Optional[str]
    weight: int
    #: How often a program that follows the weights plays the move, in percent; None for a move that is not legal.
    probability: Optional[float]
    learn: int

class Header(TypedDict):
    variants: List[str]
    comment: str

class ObsMove(TypedDict):
    uci: str
    san: Optional[str]
    active: bool
    #: These three are for the side to move.
    wins: int
    draws: int
    losses: int
    comment: Optional[str]

class GameHeader(TypedDict):
    white: str
    white_elo: str
    black: str
    black_elo: str
    result: str
    date: str
    event: str
    site: str
    eco: str
    fen: str
    ply_count: str
    event_date: str
    event_type: str
    #: The game's offset in the unpacked PGN, in bytes; None for a game without tags.
    offset: Optional[int]

class _GameFilter(TypedDict, total=False):
    """Which games count, under the names of the command line's options."""

    min_elo: Optional[int]
    max_elo: Optional[int]
    require_elo: bool
    require_date: bool
    min_plies: int
    since: Optional[str]
    until: Optional[str]
    result: _Texts
    player: _Texts
    white: _Texts
    black: _Texts
    exact: bool
    eco: _Texts
    tag: _Texts
    not_tag: _Texts
    rated: bool
    time_control: Optional[str]

def key(position: _Position = None, *, variant: Optional[str] = None) -> int:
    """The Polyglot key of a position."""

def make_book(
    inputs: Sequence[_Path],
    *,
    progress: Optional[Callable[[str, Optional[float], int], object]] = None,
    bin: Optional[_Path] = None,
    leveldb: Optional[_Path] = None,
    obs: Optional[_Path] = None,
    counts: Optional[_Path] = None,
    by: Optional[str] = None,
    force: bool = False,
    allow_empty: bool = False,
    index_stats: bool = False,
    explorer: bool = False,
    max_ply: int = 1024,
    min_game: int = 3,
    min_score: float = 0.0,
    only_white: bool = False,
    only_black: bool = False,
    uniform: bool = False,
    win_factor: int = 2,
    draw_factor: int = 1,
    loss_factor: int = 0,
    scale: str = "global",
    minimax: int | None = None,
    variant: str = "standard",
    untagged_variant: str = "standard",
    unfinished: str = "draw",
    keep_prefix: bool = False,
    strict: bool = False,
    drop_duplicates: bool = False,
    variations: bool = False,
    piece_letters: str = "en",
    comment: Optional[str] = None,
    no_header: bool = False,
    threads: int | None = None,
    memory: int = 1 << 30,
    temp_dir: Optional[_Path] = None,
    **game_filter: Unpack[_GameFilter],
) -> Mapping[str, Any]:
    """Makes outputs of PGN files and answers what `polybook make-book --json` prints.

    The options are those of the command line, without those of suites and evaluations. Python's lock is free meanwhile.
    `progress` is called some ten times a second with the phase, the part of the whole that is done (from 0 to 1, None
    while it is not known) and the number of games read. What it raises stops the run, as Ctrl-C does, and no output is
    changed.
    """

class Book:
    """A Polyglot book, opened for reading. Its header is passed over."""

    def __init__(self, path: _Path) -> None: ...
    def moves(self, position: _Position = None) -> List[BookMove]:
        """The moves of a position, the heaviest first."""
    def weighted_choice(self, position: _Position = None) -> BookMove:
        """A move at random, as engines choose: in proportion to the weights. IndexError if there is none."""
    def header(self) -> Optional[Header]:
        """The header's variants and comment, None without a header."""
    def __len__(self) -> int:
        """How many records there are, those of the header too."""

class Index:
    """A LevelDB index of games, opened for reading."""

    def __init__(self, path: _Path) -> None: ...
    def games(self, position: _Position = None) -> List[int]:
        """The ids of the games that reached a position, ascending."""
    def header(self, id: int) -> GameHeader:
        """What the index says of a game."""
    def text(self, id: int) -> bytes:
        """The PGN of a game, byte for byte."""
    def __len__(self) -> int:
        """How many games there are."""

class Obs:
    """An OOBS database, opened for reading."""

    def __init__(self, path: _Path) -> None: ...
    def moves(self, position: _Position = None) -> List[ObsMove]:
        """The moves of a position."""

class Explorer:
    """Indexes that were made with `explorer=True`, opened together by their names."""

    def __init__(self, sources: Sequence[Tuple[str, _Path]]) -> None: ...
    def answer(
        self,
        position: _Position = None,
        *,
        variant: Optional[str] = None,
        view: str = "lichess",
        moves: Optional[int] = None,
        top_games: Optional[int] = None,
        recent_games: Optional[int] = None,
        history: bool = False,
        transpositions: bool = False,
        speeds: _Texts = (),
        ratings: Optional[Sequence[Union[int, str]]] = None,
        modes: _Texts = (),
        since: Optional[str] = None,
        until: Optional[str] = None,
        min_elo: Optional[int] = None,
        max_elo: Optional[int] = None,
        player: Optional[str] = None,
        color: Optional[str] = None,
        opponent: Optional[str] = None,
        result: _Texts = (),
        eco: Optional[str] = None,
        opening: Optional[str] = None,
        event: Optional[str] = None,
        min_ply: int = 0,
        source: Optional[str] = None,
        unfinished: str = "draw",
    ) -> Mapping[str, Any]:
        """Counts, moves, top and recent games of a position, as `polybook serve` answers them.

        A rating is a number in its group, or "unknown" for games without a known rating. With `unfinished="skip"`, games
        without a result do not count.
        """
    def text(self, number: int) -> bytes:
        """The PGN of the game with a number, byte for byte."""
    def __len__(self) -> int:
        """How many games there are."""

class Batch:
    """Half-moves of some games, as arrays of the same length."""

    #: The Polyglot keys of the positions before the moves.
    keys: npt.NDArray[np.uint64]
    #: The moves as 16-bit Polyglot numbers: `move >> 6 & 63` is the square of departure, `move & 63` that of arrival, from
    #: a1 = 0 to h8 = 63, and `move >> 12` the promotion, 1 to 4 for knight to queen. A king castles by taking its rook.
    moves: npt.NDArray[np.uint16]
    #: 1 where White won the game, 0 for a draw, -1 where Black won.
    results: npt.NDArray[np.int8]
    #: The numbers of the games in the file, from 0.
    games: npt.NDArray[np.uint64]
    #: The seconds that the player's clock had left after the move, by `[%clk]`; NaN where the game does not say. None
    #: with `comments=False`.
    clock: Optional[npt.NDArray[np.float64]]
    #: The evaluation after the move, by `[%eval]`, seen from White: centipawns from -32,000 to 32,000; 32,768 - N if White
    #: mates in N moves, the negative of that if Black does; NaN where the game does not say. None with `comments=False`.
    eval: Optional[npt.NDArray[np.float64]]

    def __len__(self) -> int: ...

class Positions:
    """The batches of a PGN, each of whole games, in the order of the file."""

    def __iter__(self) -> Iterator[Batch]: ...
    def __next__(self) -> Batch: ...
    @property
    def games(self) -> int:
        """How many games were read so far."""
    @property
    def rejected(self) -> int:
        """How many of them could not be replayed and were left out."""

def positions(
    pgn: _Path,
    *,
    max_ply: Optional[int] = None,
    comments: bool = True,
    unfinished: str = "skip",
    strict: bool = False,
    **game_filter: Unpack[_GameFilter],
) -> Positions:
    """The half-moves of the games of standard chess in a PGN, packed or not.

    Clocks and evaluations are read from the comments of the games, which takes about as long as the moves. With
    `comments=False` they are not, and the `clock` and `eval` of batches are None.

    Games without a result are left out unless `unfinished` is "draw", and those that cannot be replayed unless
    `strict` is true, which makes them a GameError.
    """
