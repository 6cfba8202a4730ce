"""Opening books and game indexes from PGN, and games as NumPy arrays.

polybook is under the GNU General Public License, version 3 or later, and so is what is distributed with it.
"""

from os import PathLike
from typing import Any, Callable, Iterator, List, Literal, Mapping, Optional, Protocol, Sequence, Tuple, TypedDict, Union

import numpy as np
import numpy.typing as npt
from typing_extensions import NotRequired, Unpack

__version__: str

_Path = Union[str, PathLike[str]]
_Paths = Union[_Path, Sequence[_Path]]
_Texts = Union[str, Sequence[str]]
_Ratings = Union[str, int, Sequence[Union[str, int]]]

class _Board(Protocol):
    def fen(self) -> str: ...

#: A FEN, a board of python-chess, or None for the position in which games start.
_Position = Union[None, str, _Board]

class Error(Exception):
    """An error of polybook. Errors of the operating system are raised as OSError."""

class GameError(Error):
    """A game that cannot be replayed."""

    file: str
    #: The number of the game in the file, from 0.
    game: int
    #: The offset of the move in the decompressed file, in bytes.
    offset: int
    #: The number of half-moves before the move.
    ply: int
    move: str
    reason: str

class BookMove(TypedDict):
    uci: str
    #: None for an illegal move.
    san: Optional[str]
    weight: int
    #: The probability that an engine which follows the weights plays the move, in percent. None for an illegal move.
    probability: Optional[float]
    learn: int

class Header(TypedDict):
    variants: List[str]
    comment: str

class ObsMove(TypedDict):
    uci: str
    san: Optional[str]
    active: bool
    #: Wins, draws and losses of the side to move.
    wins: int
    draws: int
    losses: int
    comment: Optional[str]

class GameHeader(TypedDict):
    white: str
    #: None if the rating is unknown.
    white_rating: Optional[int]
    black: str
    black_rating: Optional[int]
    result: str
    date: str
    event: str
    site: str
    eco: str
    fen: str
    #: The number of half-moves by the tag PlyCount.
    ply_count: Optional[int]
    event_date: str
    event_type: str
    #: Only in an index made with `explorer`.
    round: NotRequired[str]
    #: The offset in bytes, counted from 0, at which the game begins in the decompressed PGN. None for a game without tags in
    #: an index made with `leveldb`.
    offset: Optional[int]
    #: The path of the PGN file.
    file: str

class GameCounts(TypedDict):
    read: int
    counted: int
    filtered: int
    rejected: int

class Rejection(TypedDict):
    file: str
    #: The number of the game in the file, from 0.
    game: int
    offset: int
    ply: int
    move: str
    reason: str

class _BookReport(TypedDict):
    path: str
    entries: int
    largest_weight: int
    scale: float
    minimax: NotRequired[Mapping[str, int]]
    eval_weights: NotRequired[Mapping[str, int]]
    losses: NotRequired[Mapping[str, Any]]

class _IndexReport(TypedDict):
    path: str
    games: int
    positions: int
    postings: int
    rows: NotRequired[int]

class _ObsReport(TypedDict):
    path: str
    rows: int
    rare: int
    min_game: int

class _CountsReport(TypedDict):
    path: str
    rows: int
    parts: int
    pruned: NotRequired[Mapping[str, int]]

class Report(TypedDict):
    """What `make_book` read and wrote. A number that is missing is 0."""

    games: GameCounts
    filtered_by: NotRequired[Mapping[str, int]]
    plies: int
    left_out: NotRequired[int]
    null_moves: NotRequired[int]
    unplayable_variations: NotRequired[int]
    castling_dropped: NotRequired[int]
    contradicted_results: NotRequired[int]
    unreadable_results: NotRequired[int]
    unfinished: NotRequired[int]
    undated: NotRequired[int]
    unrated: NotRequired[int]
    not_tallied: NotRequired[int]
    variants: NotRequired[Mapping[str, int]]
    positions: int
    entries: int
    book: NotRequired[_BookReport]
    index: NotRequired[_IndexReport]
    explorer: NotRequired[_IndexReport]
    obs: NotRequired[_ObsReport]
    counts: NotRequired[_CountsReport]
    rejected: List[Rejection]
    has_unknown_games: NotRequired[bool]
    matched_players: NotRequired[List[str]]
    warnings: NotRequired[List[str]]

class Opening(TypedDict):
    eco: str
    name: str

class Player(TypedDict):
    name: str
    #: 0 if the rating is unknown.
    rating: int

class Game(TypedDict):
    id: str
    winner: Optional[Literal["white", "black"]]
    speed: NotRequired[str]
    mode: NotRequired[str]
    black: Player
    white: Player
    #: 0 if the year is unknown.
    year: int
    month: Optional[str]
    unfinished: NotRequired[bool]

class PlayedGame(Game):
    #: The move that was played in the position, or None if the game ended there.
    uci: Optional[str]
    unindexed: NotRequired[bool]

class _LichessResults(TypedDict):
    """Numbers of games. `draws` contains the games without a result, whose number is `unfinished`."""

    white: int
    draws: int
    black: int
    unfinished: NotRequired[int]

class Resulting(_LichessResults):
    #: The number of games that continue from the position. `white`, `draws` and `black` are their results.
    games: int
    #: The number of games that end in the position, if known.
    ended: NotRequired[int]

class PlayedMove(_LichessResults):
    uci: str
    san: str
    #: The mean of the known ratings of the players who made the move, or 0. Missing in the view "player".
    averageRating: NotRequired[int]
    ratingGames: NotRequired[int]
    wins: NotRequired[int]
    losses: NotRequired[int]
    averageOpponentRating: NotRequired[Optional[int]]
    performance: NotRequired[Optional[int]]
    performanceGames: NotRequired[int]
    lastPlayed: NotRequired[str]
    #: The game with the move, if there is exactly one.
    game: Optional[Game]
    opening: Optional[Opening]
    #: With `resulting`, if known: the results of the position after the move, by any order of moves.
    resulting: NotRequired[Resulting]

class MonthResults(_LichessResults):
    month: str

class Answer(_LichessResults):
    """What was played in a position. The fields are those of the route `/lichess` of `polybook serve`."""

    wins: NotRequired[int]
    losses: NotRequired[int]
    playerRating: NotRequired[int]
    playerRatingGames: NotRequired[int]
    opponentRating: NotRequired[int]
    performance: NotRequired[int]
    performanceGames: NotRequired[int]
    lastPlayed: NotRequired[str]
    moves: List[PlayedMove]
    recentGames: NotRequired[List[PlayedGame]]
    topGames: NotRequired[List[PlayedGame]]
    opening: Optional[Opening]
    queuePosition: int
    history: NotRequired[List[MonthResults]]
    unknownMonths: NotRequired[int]

class _Results(TypedDict):
    """Numbers of games. `draws` does not contain the games without a result, whose number is `unfinished`."""

    games: int
    white: int
    draws: int
    black: int
    unfinished: NotRequired[int]

class OpeningRow(_Results):
    name: str
    #: The lowest and the highest ECO code.
    eco: List[str]
    wins: int
    losses: int
    #: The score of the player, or of White, in percent.
    score: Optional[float]
    score_range: Optional[List[float]]
    points: NotRequired[float]
    points_above_average: NotRequired[float]
    opponent_rating: NotRequired[int]
    performance: NotRequired[int]
    rating: NotRequired[int]
    last_played: Optional[str]
    line: List[str]
    line_games: Optional[int]
    variations: NotRequired[List["OpeningRow"]]

class OpeningTable(_Results):
    unnamed: int
    average_score: Optional[float]
    average_by_color: NotRequired[List[float]]
    opponent_rating: NotRequired[int]
    performance: NotRequired[int]
    performance_by_color: NotRequired[List[int]]
    families: List[OpeningRow]

class PlayerGames(_Results):
    rating: Optional[int]
    last_played: Optional[str]

class OpponentGames(_Results):
    #: The number of recent games.
    recent: int

class GamesHere(TypedDict):
    theirs: int
    yours: int

class PreparedAnswer(TypedDict):
    uci: str
    san: str
    games: int
    source: Literal["repertoire", "games"]

class PreparedMove(TypedDict):
    uci: str
    san: str
    opening: Optional[Opening]
    theirs: OpponentGames
    yours: _Results
    score_range: Optional[List[float]]
    expected_score: Optional[float]
    answer: Optional[PreparedAnswer]
    gap: bool
    line_end: NotRequired[bool]
    unindexed: NotRequired[bool]

class PreparedLine(_Results):
    play: List[str]
    san: List[str]
    opening: Optional[Opening]
    chance: float
    theirs: OpponentGames
    score: Optional[float]
    score_range: Optional[List[float]]
    #: The score in percent that the player's other games predict.
    expected_score: Optional[float]
    loss: Optional[float]
    answer: Optional[PreparedAnswer]
    gap: bool
    line_end: NotRequired[bool]

class WeakLines(TypedDict):
    judged: int
    #: The number of lines that are listed because they cost points.
    listed: int
    by_chance: float

class Preparation(TypedDict):
    theirs: PlayerGames
    yours: PlayerGames
    met: PlayerGames
    here: GamesHere
    recent_since: Optional[int]
    moves: List[PreparedMove]
    lines: NotRequired[List[PreparedLine]]
    weak_lines: NotRequired[WeakLines]
    half_life: NotRequired[float]
    line_ends: NotRequired[List[PreparedLine]]

class _PreparationConditions(TypedDict, total=False):
    """Conditions on games. They have the names and values of the command line's options.

    A name of a player or an event is a part of the whole name, unless `exact` is true, which is the default of `Explorer`.
    `rating` selects rating groups: 2500 selects the group that begins at 2500, and "unknown" the games without a known rating.
    If `duplicates` is "once", duplicates of a game count as one game. Only indexes have a `source`.
    """

    min_elo: Optional[int]
    max_elo: Optional[int]
    min_plies: int
    since: Optional[str]
    until: Optional[str]
    opponent_rating: Optional[str]
    white: _Texts
    black: _Texts
    event: Optional[str]
    eco: _Texts
    tag: _Texts
    not_tag: _Texts
    rating: _Ratings
    speed: _Texts
    time_control: Optional[str]
    require_elo: bool
    require_date: bool
    exact: bool
    rated: Union[bool, _Texts]
    opening: Optional[str]
    position: Optional[str]
    duplicates: Literal["once", "all"]
    source: Optional[str]

class _Conditions(_PreparationConditions, total=False):
    """Conditions on games, with those on players. `result` "win" or "loss" selects the games that `player` won or lost."""

    result: _Texts
    player: _Texts
    color: Optional[str]
    opponent: _Texts

def key(position: _Position = None, *, variant: Optional[str] = None) -> int:
    """Returns the Polyglot key of a position."""

def make_book(
    inputs: _Paths,
    *,
    progress: Optional[Callable[[str, Optional[float], int], object]] = None,
    bin: Optional[_Path] = None,
    leveldb: Optional[_Path] = None,
    explorer: Optional[_Path] = None,
    obs: Optional[_Path] = None,
    counts: Optional[_Path] = None,
    by: _Texts = (),
    with_: _Texts = (),
    force: bool = False,
    allow_empty: bool = False,
    index_stats: bool = False,
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
    variations: bool = False,
    piece_letters: str = "en",
    comment: Optional[str] = None,
    no_header: bool = False,
    threads: int | None = None,
    memory: int = 1 << 30,
    temp_dir: Optional[_Path] = None,
    **conditions: Unpack[_Conditions],
) -> Report:
    """Makes books, indexes, databases and counts from PGN files. Returns the report that `polybook make-book --json` prints.

    The options have the names and defaults of the command line's options; `with_` is the option `--with`, because `with` is a
    keyword of Python. Options for suites and evaluations are missing. The GIL is released during the run.

    `progress` is called about ten times a second with three arguments: the phase, the completed fraction of the run (from 0
    to 1, or None if it is unknown), and the number of games read. An exception that it raises stops the run, as Ctrl-C does;
    no output is changed then.
    """

class Book:
    """A Polyglot book that is open for reading."""

    def __init__(self, path: _Path) -> None: ...
    def moves(self, position: _Position = None) -> List[BookMove]:
        """Returns the moves of a position, sorted by weight in descending order."""
    def weighted_choice(self, position: _Position = None) -> BookMove:
        """Returns a random legal move. The probability of a move is proportional to its weight, as in an engine.

        Raises IndexError if the position has no legal move with a weight above 0.
        """
    def header(self) -> Optional[Header]:
        """Returns the variants and the comment of the header, or None if the book has no header."""
    def __len__(self) -> int:
        """Returns the number of records, including those of the header."""

class Index:
    """An index of games, made with `make_book(leveldb=...)` or `make_book(explorer=...)`, that is open for reading."""

    def __init__(self, path: _Path) -> None: ...
    def games(self, position: _Position = None) -> List[int]:
        """Returns the ids of the games that reached a position, in ascending order."""
    def header(self, id: int) -> GameHeader:
        """Returns the header of a game: its tags, and its offset in the input."""
    def text(self, id: int) -> bytes:
        """Returns the PGN of a game, byte for byte as in the input."""
    def __len__(self) -> int:
        """Returns the number of games."""

class Obs:
    """An OOBS database that is open for reading."""

    def __init__(self, path: _Path) -> None: ...
    def moves(self, position: _Position = None) -> List[ObsMove]:
        """Returns the moves of a position."""

class Explorer:
    """Indexes made with `make_book(explorer=...)` that are open together and answer queries about positions.

    `sources` is the path of an index, or a list of paths or of pairs of a name and a path. An index without a name is named after
    its directory. The option `source` of `answer` accepts these names.
    """

    def __init__(self, sources: Union[_Path, Sequence[Union[_Path, Tuple[str, _Path]]]]) -> None: ...
    def answer(
        self,
        position: _Position = None,
        /,
        *,
        variant: Optional[str] = None,
        view: str = "lichess",
        moves: Optional[int] = None,
        top_games: Optional[int] = None,
        recent_games: Optional[int] = None,
        history: bool = False,
        resulting: bool = False,
        unfinished: str = "draw",
        **conditions: Unpack[_Conditions],
    ) -> Answer:
        """Returns the counts, the moves, and the top and recent games of a position, in the form in which `polybook serve` answers.

        If `unfinished` is "skip", games without a result do not count.
        """
    def openings(
        self,
        position: _Position = None,
        /,
        *,
        variant: Optional[str] = None,
        unfinished: str = "draw",
        **conditions: Unpack[_Conditions],
    ) -> OpeningTable:
        """Returns the openings of the games that reached a position and pass the filters.

        The openings are in families with their variations. With `player`, the family that cost the player most points comes
        first. The fields are those of the route `/openings` of `polybook serve`, in snake case: `average_score`.
        """
    def prepare(
        self,
        position: _Position = None,
        /,
        *,
        player: _Texts,
        opponent: _Texts,
        color: str,
        repertoire: Optional[_Path] = None,
        lines: int = 7,
        min_game: int = 2,
        half_life: Optional[float] = None,
        variant: Optional[str] = None,
        unfinished: str = "draw",
        **conditions: Unpack[_PreparationConditions],
    ) -> Preparation:
        """Returns the preparation of `player`, who has the color `color`, for `opponent`.

        The fields are those that `polybook prepare --json` prints: the opponent's moves in the position, with the results and
        answers of the player, and at most `lines` lines to look at first. A gap and the last move of a line have at least `min_game`
        games of the opponent. In the chance of a line, a game that is `half_life` years older counts half as much. Filters apply
        to the games of both players.
        A game that the files of both players contain counts once, unless `duplicates` is "all".
        """
    def text(self, number: int) -> bytes:
        """Returns the PGN of the game with this number, byte for byte as in the input."""
    def __len__(self) -> int:
        """Returns the number of games in all indexes."""

class Batch:
    """The half-moves of some games, as arrays of equal length."""

    #: The Polyglot keys of the positions before the moves.
    keys: npt.NDArray[np.uint64]
    #: The moves as 16-bit Polyglot numbers. `move >> 6 & 63` is the square from which the piece moves, `move & 63` the square to
    #: which it moves (a1 = 0, h8 = 63), and `move >> 12` the promotion (1 = knight, 2 = bishop, 3 = rook, 4 = queen). Castling is
    #: written as the king capturing its own rook.
    moves: npt.NDArray[np.uint16]
    #: The result of the game: 1 if White won, 0 for a draw, -1 if Black won.
    results: npt.NDArray[np.int8]
    #: The number of the game, counted from 0 through all files.
    games: npt.NDArray[np.uint64]
    #: The seconds that the player's clock showed after the move (`[%clk]`), or NaN if the game contains no clock time. None if
    #: `comments` is False.
    clock: Optional[npt.NDArray[np.float64]]
    #: The evaluation after the move (`[%eval]`) from White's point of view: centipawns from -32,000 to 32,000, 32,768 - N if White
    #: mates in N moves, N - 32,768 if Black does, or NaN if the game contains no evaluation. None if `comments` is False.
    eval: Optional[npt.NDArray[np.float64]]

    def __len__(self) -> int: ...
    def to_frame(self) -> Any:
        """Returns the arrays as the columns of a data frame of pandas, or else of polars, or else of a table of pyarrow.

        The columns are `key`, `move`, `result`, `game`, `clock` and `eval`. `key` (int64, with the bits of
        `keys`) and `move` (int32) have the types and values of counts, so frames can be joined to counts.
        """

class Positions:
    """An iterator over the batches of PGN files, in the order of the files. Each batch consists of whole games."""

    def __iter__(self) -> Iterator[Batch]: ...
    def __next__(self) -> Batch: ...
    def to_frame(self) -> Any:
        """Reads all remaining batches, and returns their arrays as the columns of a data frame, as `Batch.to_frame` does."""
    @property
    def games(self) -> int:
        """The number of games read so far."""
    @property
    def rejected(self) -> int:
        """The number of games that could not be replayed and were skipped."""

def positions(
    pgn: _Paths,
    *,
    max_ply: Optional[int] = None,
    comments: bool = True,
    unfinished: str = "skip",
    strict: bool = False,
    temp_dir: Optional[_Path] = None,
    **conditions: Unpack[_Conditions],
) -> Positions:
    """Returns the half-moves of the games of standard chess in one or more PGN files, which may be compressed, batch by batch.

    If `comments` is true, clocks and evaluations are read from the comments of the games, which takes about as long as reading
    the moves. Otherwise `clock` and `eval` of the batches are None.

    Games without a result are skipped unless `unfinished` is "draw". Games that cannot be replayed are skipped, but if
    `strict` is true, the first one raises GameError.
    """
