//! Runs a UCI session: parses and handles the commands of the user interface, handles the output of the second engine,
//! and chooses the move to play from the moves of the sources.

use std::{borrow::Cow, cmp::Reverse, collections::VecDeque, mem, time::Instant};

use rustc_hash::FxHashMap;
use shakmaty::{Color, Move, Position, uci::UciMove, variant::VariantPosition};

use super::{
    QUIT_TIMEOUT,
    output::LineQueue,
    second_engine::{Event, SecondEngine},
    settings::{
        Fallback, Play, SessionOption, Settings, VARIANTS, ignored_options, is_ignored_option,
    },
};
use crate::{
    chess::{
        position::{Keyed, Variant, fen_of, uci},
        uci::{LONGEST_LINE, is_answer},
    },
    error::{Result, plural},
    explore::{
        explorer::{Explorer, Random, not_indexed},
        tree::played,
    },
    formats::walk::{MoveSource, TreeMove},
    games::results::Wdl,
    task::Feed,
    text::is_unsafe,
};

/// Converts a line of the second engine's answer to `uci` to the form in which it is passed on to the user interface.
/// In an `id name` line, inserts `polybook: ` before the name, so that chess programs can distinguish polybook from the
/// second engine. Returns any other line unchanged.
fn renamed(line: &str) -> String {
    match line.strip_prefix("id name ") {
        Some(name) => format!("id name polybook: {name}"),
        None => line.to_owned(),
    }
}

/// The maximum length, in half-moves, of the variations that the engine shows to the user.
const MAX_SHOWN_PLIES: usize = 5;

/// The maximum number of commands that wait for the end of the current search. Further commands are ignored, and the
/// user is informed.
const MAX_QUEUED_COMMANDS: usize = 64;

/// The maximum number of positions that the engine looks up for one `go` to find out after which moves the sources end
/// soon.
const MAX_POSITIONS_AHEAD: usize = 1 << 11;

/// The maximum number of positions after the same move that the engine looks up for one `go`. If there are more, the
/// sources are considered not to end soon after this move.
const MAX_POSITIONS_AFTER_MOVE: usize = 1 << 10;

/// A search whose result, `bestmove`, has not been sent yet.
struct Search {
    /// The `bestmove` line, or `None` if the second engine will provide it because no source contains the position.
    answer: Option<String>,
    /// The command that must arrive before the answer may be sent.
    wait: Wait,
    /// Whether the command `stop` has arrived during the search.
    is_stopped: bool,
    /// The number of moves of a source that were shown before the moves of the second engine. `None` if the second
    /// engine is not searching.
    shown: Option<usize>,
}

/// A source of moves for the engine, such as a book or an index.
pub enum EngineSource {
    /// A source to which the filters for games do not apply, for example a book.
    Moves(Box<dyn MoveSource>),
    /// An index of games or counts. Only games that pass the [filters](Settings::filters) count.
    Games(Box<Explorer>),
}

/// The reason why the engine does not play a move that a source contains.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Exclusion {
    /// The score of the move is below [`Settings::min_score`].
    Score,
    /// The score of the move is unknown, and there is a minimum score.
    Unfinished,
    /// The move was played in fewer games than [`Settings::min_games`].
    Games,
    /// The weight of the move, or its number of games, is 0.
    Weight,
    /// The command `go` lists only other moves after `searchmoves`.
    Command,
    /// The move leads to a position that would then occur for the third time.
    Repetition,
    /// The lines of the sources that begin with the move are shorter than [`Settings::leave_before_end`].
    End,
}

impl Exclusion {
    const ALL: [Exclusion; 7] = [
        Exclusion::Score,
        Exclusion::Unfinished,
        Exclusion::Games,
        Exclusion::Weight,
        Exclusion::Command,
        Exclusion::Repetition,
        Exclusion::End,
    ];

    /// Describes how many moves are excluded for this reason, by words that follow their number in a message.
    fn describe(self, settings: &Settings) -> String {
        let Settings {
            min_score,
            min_games,
            leave_before_end,
            ..
        } = settings;
        match self {
            Exclusion::Score => format!("with a score below {min_score} % (MinScore)"),
            Exclusion::Unfinished => "without a finished game (MinScore)".to_owned(),
            Exclusion::Games => format!("with fewer than {min_games} games (MinGames)"),
            Exclusion::Weight => "with weight 0".to_owned(),
            Exclusion::Command => "not listed after searchmoves".to_owned(),
            Exclusion::Repetition => "after which a position occurs for the third time".to_owned(),
            Exclusion::End => {
                format!("too close to the end of the sources (Leave Before End {leave_before_end})")
            }
        }
    }
}

/// The moves of sources that the engine may not play in a position, each with the reason.
#[derive(Default)]
struct Excluded(Vec<(Move, Exclusion)>);

impl Excluded {
    /// Moves all moves for which `reason` returns a reason from `moves` to this value.
    fn take_from(
        &mut self,
        moves: &mut Vec<TreeMove>,
        reason: impl Fn(&TreeMove) -> Option<Exclusion>,
    ) {
        moves.retain(|mv| {
            let reason = reason(mv);
            self.0.extend(reason.map(|reason| (mv.mv, reason)));
            reason.is_none()
        });
    }

    /// Returns `true` if `mv` is excluded because its score in a source is too low.
    fn refuses(&self, mv: Move) -> bool {
        self.0.contains(&(mv, Exclusion::Score))
    }

    /// Returns a message that says why no move of the sources is played, or `None` if the sources contain no move.
    fn explain(&self, settings: &Settings) -> Option<String> {
        let is_first = |at: usize| self.0[..at].iter().all(|(mv, _)| *mv != self.0[at].0);
        let first: Vec<Exclusion> = (0..self.0.len())
            .filter(|at| is_first(*at))
            .map(|at| self.0[at].1)
            .collect();
        let reasons = Exclusion::ALL.into_iter().filter_map(|reason| {
            let moves = first.iter().filter(|own| **own == reason).count();
            (moves > 0).then(|| format!("{moves} {}", reason.describe(settings)))
        });
        let reasons = reasons.collect::<Vec<String>>().join(", ");
        let moves = plural(first.len() as u64, "move");
        let explain = || {
            format!("the sources contain {moves} of this position, but none is played: {reasons}")
        };
        (!first.is_empty()).then(explain)
    }
}

/// The state of a search for the end of the sources, which is made for one `go` and shared by all moves of the
/// position.
struct EndSearch {
    /// The side that the engine plays.
    side: Color,
    /// The identities (hashes) of the positions in the current line, which begins with the position of `go`.
    line: Vec<u64>,
    /// The lowest index in `line` of a position that a move has reached again since the search entered the last
    /// position of `line`. The position of `go` does not count. `usize::MAX` if no position was reached again.
    lowest_return: usize,
    /// For each position, given by its identity (a hash), a number of half-moves for which the sources are known not to
    /// continue from there.
    ends: FxHashMap<u64, u32>,
    /// The number of positions that may still be looked up after the current move.
    left_after_move: usize,
    /// The number of positions that may still be looked up after all further moves.
    left: usize,
}

impl EndSearch {
    /// Starts a search in `pos`, the position of `go`, for the side to move.
    fn new(pos: &VariantPosition) -> EndSearch {
        EndSearch {
            side: pos.turn(),
            line: vec![Keyed::new(pos.clone()).identity()],
            lowest_return: usize::MAX,
            ends: FxHashMap::default(),
            left_after_move: 0,
            left: MAX_POSITIONS_AHEAD,
        }
    }

    /// Sets how many positions may be looked up for the next move: an equal share of those that are still allowed,
    /// including those that earlier moves did not use. `moves` is the number of moves that still need a share,
    /// including this one.
    fn share(&mut self, moves: usize) {
        self.left += mem::take(&mut self.left_after_move);
        self.left_after_move = (self.left / moves).min(MAX_POSITIONS_AFTER_MOVE);
        self.left -= self.left_after_move;
    }
}

/// The state of a UCI session: the current position, the options and the current search.
pub(super) struct Session {
    sources: Vec<(EngineSource, Option<Color>)>,
    settings: Settings,
    options: Vec<SessionOption>,
    second_engine: Option<SecondEngine>,
    output: LineQueue,
    random: Random,
    /// The last `position` command, in the form that is sent to the second engine.
    position: String,
    /// The game that the last `position` command describes, or `None` if the command is invalid.
    game: Option<UciGame>,
    search: Option<Search>,
    /// The commands that arrived during the search and must wait for its end. Some programs send further commands after
    /// `stop` without waiting for the result.
    waiting: VecDeque<String>,
    /// The number of `isready` commands that the second engine has not answered yet.
    ready_asked: usize,
    /// The numbers of the sources that could not be read since the last `go`. Each is reported to the user only once.
    unreadable: Vec<usize>,
}

impl Session {
    pub(super) fn new(
        sources: Vec<(EngineSource, Option<Color>)>,
        settings: Settings,
        second_engine: Option<SecondEngine>,
        output: LineQueue,
    ) -> Session {
        Session {
            sources,
            options: SessionOption::all(second_engine.as_ref()),
            random: Random::new(settings.seed),
            game: Some(UciGame::new(settings.rules().start())),
            settings,
            second_engine,
            output,
            position: "position startpos".to_owned(),
            search: None,
            waiting: VecDeque::new(),
            ready_asked: 0,
            unreadable: Vec::new(),
        }
    }

    /// Handles the events of the session until the command `quit` or the end of the input. Then ends the second engine,
    /// if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the output cannot be written, or if a thread that reads commands or lines panics. Returns
    /// [`Error::Interrupted`](crate::Error::Interrupted) if the user interface sends `quit` and reads no answers.
    pub(super) fn run(mut self, events: &mut Feed<Event>) -> Result<()> {
        self.handle_events(events)?;
        let deadline = Instant::now() + QUIT_TIMEOUT;
        self.end_search(events, deadline)?;
        // The commands that arrived during this search must have answers, too.
        while !self.output.is_quitting()
            && let Some(line) = self.next_waiting()
        {
            if let Some((word, rest)) = split_command(&line) {
                self.handle(word, rest)?;
            }
            self.end_search(events, deadline)?;
        }
        if let Some(second_engine) = self.second_engine {
            second_engine.quit(events, deadline);
        }
        self.output.finish()
    }

    fn handle_events(&mut self, events: &mut Feed<Event>) -> Result<()> {
        loop {
            let event = match self.next_waiting() {
                Some(line) => Some(Event::Command(line)),
                None => events.next(&[])?,
            };
            if let (Some(Event::EngineLine(_)), Some(engine)) = (&event, &mut self.second_engine) {
                engine.took_line();
            }
            match event {
                Some(Event::Command(line)) => match split_command(&line) {
                    Some(("quit", _)) => return Ok(()),
                    Some((word, _)) if !self.can_obey(word) => self.postpone(line)?,
                    Some((word, rest)) => self.handle(word, rest)?,
                    None => {}
                },
                Some(Event::TooLongCommand) => self.inform(&format!(
                    "a command is longer than {LONGEST_LINE} bytes: polybook ignored it"
                ))?,
                // A second engine that floods its output must not delay `quit`.
                Some(Event::EngineLine(_)) if self.output.is_quitting() => {}
                Some(Event::EngineLine(line)) => self.take_engine_line(&line)?,
                Some(Event::EngineEnd) => self.lose_second_engine()?,
                Some(Event::End) | None => return Ok(()),
            }
        }
    }

    /// Returns `true` if the command `word` can be handled now, and `false` if it must wait for the end of the current
    /// search. After `stop` has arrived, `stop` and `ponderhit` must wait too, because they belong to the next search.
    fn can_obey(&self, word: &str) -> bool {
        let Some(search) = &self.search else {
            return true;
        };
        match word {
            "stop" | "ponderhit" => !search.is_stopped,
            "uci" | "isready" | "debug" => true,
            _ => false,
        }
    }

    /// Removes the first command from the queue of commands that had to wait, and returns it. Returns `None` if the
    /// queue is empty, or if its first command must still wait for the end of the current search.
    fn next_waiting(&mut self) -> Option<String> {
        let (word, _) = split_command(self.waiting.front()?)?;
        let can_obey = self.can_obey(word);
        can_obey.then(|| self.waiting.pop_front()).flatten()
    }

    fn postpone(&mut self, line: String) -> Result<()> {
        if self.waiting.len() == MAX_QUEUED_COMMANDS {
            return self
                .inform("too many commands arrived during a search: polybook ignored one command");
        }
        self.waiting.push_back(line);
        Ok(())
    }

    fn handle(&mut self, word: &str, rest: &str) -> Result<()> {
        match word {
            "uci" => self.introduce(),
            "isready" if self.second_engine.is_some() => {
                self.ready_asked += 1;
                self.send_to_second_engine("isready")
            }
            "isready" => self.say("readyok"),
            "setoption" => self.set(rest),
            "position" => self.take_position(rest),
            "go" => self.go(rest),
            "stop" | "ponderhit" => self.end_wait(word),
            // All other commands concern only the second engine.
            _ => self.send_to_second_engine(format!("{word} {rest}").trim()),
        }
    }

    fn introduce(&mut self) -> Result<()> {
        let mut lines = match &self.second_engine {
            Some(second_engine) => second_engine
                .lines
                .iter()
                .map(|line| renamed(line))
                .collect(),
            None => vec![
                concat!("id name polybook ", env!("CARGO_PKG_VERSION")).to_owned(),
                "id author the authors of polybook".to_owned(),
            ],
        };
        let own = self.options.iter();
        lines.extend(own.filter_map(|option| option.declaration(&self.settings)));
        lines.extend(ignored_options(self.second_engine.as_ref()));
        lines.push("uciok".to_owned());
        lines.iter().try_for_each(|line| self.say(line))
    }

    fn set(&mut self, text: &str) -> Result<()> {
        let Some((name, value)) = parse_option(text) else {
            return self
                .inform("the command setoption is malformed: use setoption name NAME value VALUE");
        };
        let mut own = self.options.iter();
        let own = own.find(|option| option.name.eq_ignore_ascii_case(name));
        let is_own = own.is_some();
        if let Some(option) = own {
            let (filters, is_seed) = (self.settings.filters.clone(), option.is_seed());
            if let Err(problem) = option.set(&mut self.settings, value) {
                return self.inform(&problem);
            }
            if is_seed {
                self.random = Random::new(self.settings.seed);
            }
            if self.settings.filters != filters {
                self.check_filters()?;
            }
        }
        // If the second engine has an option of the same name, both get the same value.
        let second_engine = self.second_engine.as_ref();
        if second_engine.is_some_and(|second_engine| second_engine.has(name)) {
            self.send_to_second_engine(&format!("setoption {text}"))
        } else if is_own || is_ignored_option(name) {
            Ok(())
        } else {
            self.inform(&format!("there is no option {name}"))
        }
    }

    /// Informs the user interface if the current filters are invalid, or if no game can pass them. The filters are kept
    /// anyway, because the user interface may be about to set further options.
    fn check_filters(&mut self) -> Result<()> {
        let filters = &self.settings.filters;
        let mut problems = Vec::new();
        if let Err(err) = filters.check() {
            problems.push(err.to_string());
        }
        for source in &self.sources {
            if let (EngineSource::Games(explorer), _) = source {
                match explorer.unknown_name(filters) {
                    Ok(unknown) => problems.extend(unknown.map(|unknown| unknown.to_string())),
                    Err(err) => problems.push(err.to_string()),
                }
            }
        }
        problems.iter().try_for_each(|problem| self.inform(problem))
    }

    fn take_position(&mut self, text: &str) -> Result<()> {
        let sent = standard_position(text, self.settings.rules());
        self.position = format!("position {sent}");
        match parse_position(text, self.settings.rules()) {
            Ok(game) => {
                self.game = Some(game);
                Ok(())
            }
            Err(problem) => {
                self.game = None;
                let problem = self.other_variant(text).unwrap_or(problem);
                self.inform(&format!("position: {problem}"))
            }
        }
    }

    /// Returns advice for the user if the command `position` with the arguments `text` is invalid because its FEN
    /// belongs to another variant. Returns `None` if no variant accepts the FEN.
    fn other_variant(&self, text: &str) -> Option<String> {
        let (start, _) = split_position(text);
        let fen = start.strip_prefix("fen")?.trim();
        if self.settings.rules().parse_position(fen).is_ok() {
            return None;
        }
        let chess960 = ("UCI_Chess960", "true", Variant::Chess960);
        let others = VARIANTS.map(|(name, variant)| ("UCI_Variant", name, variant));
        let mut all = [chess960].into_iter().chain(others);
        let (option, value, variant) =
            all.find(|(_, _, variant)| variant.parse_position(fen).is_ok())?;
        let has_option = self.options.iter().any(|own| own.name == option);
        let advice = if has_option {
            format!("set the option {option} to {value}")
        } else {
            format!("the engine behind polybook has no option {option}")
        };
        Some(format!("the FEN is a position of {variant}: {advice}"))
    }

    fn go(&mut self, text: &str) -> Result<()> {
        let go = Go::read(text);
        self.unreadable.clear();
        let mut search = Search {
            answer: None,
            wait: go.wait,
            is_stopped: false,
            shown: None,
        };
        // The commands to send to the second engine.
        let mut commands = Vec::new();
        let mut excluded = Excluded::default();
        let game = self.game.take();
        let known = match &game {
            Some(game) => self.choose_and_show(game, &go, &mut excluded)?,
            None => None,
        };
        self.game = game;
        let reason = excluded.explain(&self.settings).filter(|_| known.is_none());
        if let Some((answer, already_shown, others)) = known {
            search.answer = Some(answer);
            if !others.is_empty() {
                search.shown = Some(already_shown);
                let rest = self.settings.multi_pv - already_shown;
                commands.push(format!("setoption name MultiPV value {rest}"));
                commands.push(self.position.clone());
                commands.push(format!("{} searchmoves {}", go.command(), others.join(" ")));
            }
        } else if self.second_engine.is_some() {
            if let Some(reason) = reason {
                self.inform(&reason)?;
            }
            search.shown = Some(0);
            commands.push(self.position.clone());
            commands.push(match self.searchmoves_without(&go, &excluded) {
                Some(allowed) => format!("{} searchmoves {allowed}", go.command()),
                None => format!("go {text}").trim().to_owned(),
            });
        } else {
            let reason = reason.or_else(|| self.end_of_sources());
            self.inform(&reason.unwrap_or_else(|| "out of book".to_owned()))?;
            search.answer = Some(self.fallback());
        }
        self.search = Some(search);
        commands
            .iter()
            .try_for_each(|command| self.send_to_second_engine(command))?;
        self.conclude()
    }

    /// Chooses the move to play in the last position of `game`, from the moves that a source contains and that the
    /// command `go` allows. Shows the best of these moves to the user, each in an `info` line. Adds the other moves of
    /// the sources to `excluded`.
    ///
    /// A move after which a position occurs for the third time is chosen only if the sources contain no other move and
    /// there is no second engine, because the opponent could claim a draw.
    ///
    /// Returns three values: the `bestmove` line, the number of moves shown, and the moves that the second engine
    /// should search in addition. The third value is empty unless the user wants to see more moves than were shown.
    /// Returns `None` if the sources contain no allowed move.
    fn choose_and_show(
        &mut self,
        game: &UciGame,
        go: &Go<'_>,
        excluded: &mut Excluded,
    ) -> Result<Option<(String, usize, Vec<String>)>> {
        let pos = game.pos.position();
        if self.is_too_deep(pos) {
            return Ok(None);
        }
        let of_command = |mv: Move| (!go.allows(pos, mv)).then_some(Exclusion::Command);
        let repeats = |mv: Move| game.repeats(mv).then_some(Exclusion::Repetition);
        let mut lookahead = EndSearch::new(pos);
        let no_repetition = |mv: Move| of_command(mv).or(repeats(mv));
        let mut moves = self.playable(pos, excluded, &no_repetition, &mut lookahead)?;
        let has_repetition = || {
            let mut excluded = excluded.0.iter();
            excluded.any(|(_, reason)| *reason == Exclusion::Repetition)
        };
        if moves.is_empty() && self.second_engine.is_none() && has_repetition() {
            moves = self.playable(pos, excluded, &of_command, &mut lookahead)?;
        }
        if moves.is_empty() {
            return Ok(None);
        }
        let chosen = choose(
            &moves,
            pos.turn(),
            self.settings.play,
            self.random.next_number(),
        );
        let line = self.line_from(pos, moves[chosen].mv)?;
        let most = self.settings.multi_pv.max(1);
        let first = if most == 1 { chosen } else { 0 };
        let shown = first..moves.len().min(first + most);
        let already_shown = shown.len();
        let sum = moves.iter().map(|mv| mv.weight).sum();
        for at in shown {
            let other = (at != chosen).then(|| self.line_from(pos, moves[at].mv));
            let shown = other.transpose()?;
            self.say_move(
                &moves[at],
                at - first + 1,
                shown.as_ref().unwrap_or(&line),
                sum,
                pos.turn(),
            )?;
        }
        let ponder = line.get(1).map(|reply| format!(" ponder {reply}"));
        let answer = format!("bestmove {}{}", line[0], ponder.unwrap_or_default());
        let can_add = self
            .second_engine
            .as_ref()
            .is_some_and(|second_engine| second_engine.has("MultiPV"));
        let mut others = Vec::new();
        if already_shown < most && can_add {
            let is_known = |mv: Move| moves.iter().any(|known| known.mv == mv);
            let legal = pos.legal_moves().into_iter();
            let legal = legal.filter(|mv| go.allows(pos, *mv) && !is_known(*mv));
            others.extend(legal.map(|mv| uci(pos, mv)));
        }
        Ok(Some((answer, already_shown, others)))
    }

    fn fallback(&mut self) -> String {
        let random = self.random.next_number();
        let chosen = self.game.as_ref().and_then(|game| {
            let pos = game.pos.position();
            let legal = pos.legal_moves();
            let at = (random * legal.len() as f64) as usize;
            Some(uci(pos, *legal.get(at)?))
        });
        match chosen.filter(|_| self.settings.fallback == Fallback::Random) {
            Some(mv) => format!("bestmove {mv}"),
            None => "bestmove (none)".to_owned(),
        }
    }

    /// Handles the command `word`, which is `stop` or `ponderhit`. If the second engine is searching, passes the
    /// command on to it. Otherwise, sends the result of the search, unless the search is infinite and the command is
    /// `ponderhit`: such a result must wait for `stop`.
    fn end_wait(&mut self, word: &str) -> Result<()> {
        let Some(search) = &mut self.search else {
            return Ok(());
        };
        search.is_stopped = word == "stop";
        if search.is_stopped || search.wait == Wait::Ponderhit {
            search.wait = Wait::None;
        }
        match search.shown {
            Some(_) => self.send_to_second_engine(word),
            None => self.conclude(),
        }
    }

    /// Stops a search that is still running at the end of the session, and sends its result to the user interface.
    /// Waits for the result of the second engine until `deadline`.
    fn end_search(&mut self, events: &mut Feed<Event>, deadline: Instant) -> Result<()> {
        self.end_wait("stop")?;
        while self.search.is_some() && Instant::now() < deadline {
            match events.next_before(deadline)? {
                Some(Event::EngineLine(line)) => {
                    if let Some(engine) = &mut self.second_engine {
                        engine.took_line();
                    }
                    // A user interface that has sent `quit` may not read any more.
                    if !self.output.is_quitting() || is_answer(&line) {
                        self.take_engine_line(&line)?;
                    }
                }
                Some(Event::EngineEnd) => self.lose_second_engine()?,
                Some(_) => {}
                None => break,
            }
        }
        Ok(())
    }

    /// Ends the search and sends its result to the user interface. Does nothing if the result must still wait for a
    /// command such as `stop`, or if the second engine is still searching.
    fn conclude(&mut self) -> Result<()> {
        let is_over = |search: &mut Search| search.wait == Wait::None && search.shown.is_none();
        match self.search.take_if(is_over) {
            Some(search) => self.say(&search.answer.unwrap_or_default()),
            None => Ok(()),
        }
    }

    /// Handles a line of output of the second engine.
    fn take_engine_line(&mut self, line: &str) -> Result<()> {
        if self.second_engine.is_none() {
            return Ok(());
        }
        if line == "readyok" {
            // A `readyok` that the user interface does not expect is dropped.
            if self.ready_asked > 0 {
                self.ready_asked -= 1;
                self.say(line)?;
            }
            return Ok(());
        }
        let already_shown = self.search.as_ref().and_then(|search| search.shown);
        match (already_shown, is_answer(line)) {
            // The user interface would mistake a `bestmove` outside of a search for the result of the next search.
            (None, true) => Ok(()),
            (None | Some(0), false) => self.say(line),
            (Some(already_shown), false) => self.say(&renumbered(line, already_shown)),
            (Some(0), true) => {
                self.search = None;
                self.say(line)
            }
            (Some(_), true) => {
                let most = self.settings.multi_pv;
                self.send_to_second_engine(&format!("setoption name MultiPV value {most}"))?;
                self.end_second_search()
            }
        }
    }

    /// Continues the session without the second engine after it has ended. From now on, the fallback move is played in
    /// positions that no source contains.
    fn lose_second_engine(&mut self) -> Result<()> {
        let Some(mut second_engine) = self.second_engine.take() else {
            return Ok(());
        };
        let problem = second_engine.process.end_error("closed its output");
        drop(second_engine);
        self.inform(&format!(
            "{problem}; polybook still answers in known positions"
        ))?;
        for _ in 0..mem::take(&mut self.ready_asked) {
            self.say("readyok")?;
        }
        self.end_second_search()
    }

    /// Handles the end of a search of the second engine that did not choose the move to play, because the engine has
    /// exited or was only asked to show further moves. The result of the whole search is then the move that was chosen
    /// from a source or, if the sources contain no move, the fallback move.
    fn end_second_search(&mut self) -> Result<()> {
        let fallback = self.fallback();
        if let Some(search) = &mut self.search
            && search.shown.take().is_some()
        {
            search.answer.get_or_insert(fallback);
        }
        self.conclude()
    }

    /// Sends a line to the second engine, if there is one.
    fn send_to_second_engine(&mut self, line: &str) -> Result<()> {
        let Some(second_engine) = &mut self.second_engine else {
            return Ok(());
        };
        match second_engine.process.say(line) {
            Ok(()) => Ok(()),
            Err(_) => self.lose_second_engine(),
        }
    }

    /// Returns the moves that the engine may play in `pos`, the best first. All of them come from the first source that
    /// contains such moves. Adds the other moves of the sources to `excluded`. `exclude` returns a reason not to play a
    /// move, or `None` if there is none.
    fn playable(
        &mut self,
        pos: &VariantPosition,
        excluded: &mut Excluded,
        exclude: &dyn Fn(Move) -> Option<Exclusion>,
        lookahead: &mut EndSearch,
    ) -> Result<Vec<TreeMove>> {
        let needed = self.settings.leave_before_end.saturating_sub(1);
        for number in 0..self.sources.len() {
            let mut moves = Vec::new();
            let choices = self.choices_of(number, pos, excluded, exclude)?;
            // Fewer positions follow the last moves, so they leave more look-ups for the best ones.
            for (at, mv) in choices.into_iter().enumerate().rev() {
                let mut after = pos.clone();
                after.play_unchecked(mv.mv);
                lookahead.share(at + 1);
                if self.continues(&after, needed, lookahead)? {
                    moves.push(mv);
                } else {
                    excluded.0.push((mv.mv, Exclusion::End));
                }
            }
            if !moves.is_empty() {
                moves.reverse();
                return Ok(moves);
            }
        }
        Ok(Vec::new())
    }

    /// Returns `true` if all sources together contain a line of at least `plies` half-moves that begins in `pos`, and
    /// in which no position of [`EndSearch::line`] or of the line itself recurs. The engine's moves in such a line are
    /// moves that it may play.
    ///
    /// The sources may lack the moves of the opponent, as books for one side do. If all sources, or a source for the
    /// color of the engine, contain no move of the opponent in a position, each legal move to which the sources contain
    /// an answer may therefore belong to a line.
    ///
    /// Also returns `true` if `lookahead` allows no further look-up.
    fn continues(
        &mut self,
        pos: &VariantPosition,
        plies: u32,
        lookahead: &mut EndSearch,
    ) -> Result<bool> {
        let identity = Keyed::new(pos.clone()).identity();
        let mut line = lookahead.line.iter();
        if let Some(at) = line.position(|before| *before == identity) {
            // Every line of this `go` contains its position, so a return to it says nothing about the current line.
            if at > 0 {
                lookahead.lowest_return = lookahead.lowest_return.min(at);
            }
            return Ok(false);
        }
        let known = lookahead.ends.get(&identity);
        if known.is_some_and(|known| *known <= plies) {
            return Ok(false);
        }
        if plies == 0 || lookahead.left_after_move == 0 {
            return Ok(true);
        }
        lookahead.left_after_move -= 1;
        let at = lookahead.line.len();
        lookahead.line.push(identity);
        let return_before = mem::replace(&mut lookahead.lowest_return, usize::MAX);
        let mut continues = false;
        for (mv, rest) in self.next_of_line(pos, plies, lookahead.side)? {
            let mut after = pos.clone();
            after.play_unchecked(mv);
            continues = self.continues(&after, rest, lookahead)?;
            if continues {
                break;
            }
        }
        lookahead.line.pop();
        let lowest_return = mem::replace(&mut lookahead.lowest_return, return_before);
        if lowest_return < at {
            // The sources may continue after this position if another line reaches it.
            lookahead.lowest_return = lowest_return.min(return_before);
        } else if !continues {
            lookahead.ends.insert(identity, plies);
        }
        Ok(continues)
    }

    /// Returns the moves with which a line of `plies` half-moves may begin in `pos`, each with the number of half-moves
    /// that must follow it. `side` is the side that the engine plays.
    fn next_of_line(
        &mut self,
        pos: &VariantPosition,
        plies: u32,
        side: Color,
    ) -> Result<Vec<(Move, u32)>> {
        let mut next: Vec<(Move, u32)> = Vec::new();
        let mut add = |mv: Move, rest: u32| {
            if next.iter().all(|(own, _)| *own != mv) {
                next.push((mv, rest));
            }
        };
        let mut excluded = Excluded::default();
        let (mut all_lack, mut own_color_lacks) = (true, false);
        for number in 0..self.sources.len() {
            let mut moves = self.known_moves(number, side, pos, &mut excluded)?;
            all_lack &= moves.is_empty();
            own_color_lacks |= moves.is_empty() && self.sources[number].1 == Some(side);
            moves.sort_by_key(|mv| Reverse(mv.weight));
            for mv in moves {
                add(mv.mv, plies - 1);
            }
        }
        if pos.turn() != side && (all_lack || own_color_lacks) {
            // The last move of a line must be one that a source contains.
            let rest = (plies - 1).max(1);
            for mv in pos.legal_moves() {
                add(mv, rest);
            }
        }
        Ok(next)
    }

    /// Returns the moves of source `number` in `pos` that may belong to lines. `side` is the side that the engine
    /// plays. The settings restrict only the moves of the engine, not those of its opponent. Adds the moves that the
    /// engine may not play to `excluded`.
    fn known_moves(
        &mut self,
        number: usize,
        side: Color,
        pos: &VariantPosition,
        excluded: &mut Excluded,
    ) -> Result<Vec<TreeMove>> {
        if pos.turn() == side {
            return self.choices_of(number, pos, excluded, &|_| None);
        }
        let mut moves = self.moves_of(number, side, pos)?;
        moves.retain(|mv| mv.games() > 0);
        Ok(moves)
    }

    /// Returns `true` if the move number of `pos` is so high that moves of the sources are no longer played.
    fn is_too_deep(&self, pos: &VariantPosition) -> bool {
        let max_depth = self.settings.max_book_depth;
        max_depth > 0 && pos.fullmoves().get() > max_depth
    }

    /// Returns a message that says why the sources contain no move of the current position, if they do not reach that
    /// far: because of the maximum depth in the settings, or because an index ends at an earlier half-move.
    fn end_of_sources(&self) -> Option<String> {
        let pos = self.game.as_ref()?.pos.position();
        if self.is_too_deep(pos) {
            let depth = self.settings.max_book_depth;
            return Some(format!(
                "the sources are used up to move {depth} (Max Book Depth)"
            ));
        }
        let has_games = |(source, _): &(EngineSource, _)| matches!(source, EngineSource::Games(_));
        if self.sources.iter().any(has_games) && self.settings.filters_as(pos.turn()).is_none() {
            let color = (!pos.turn()).fold_wb("White", "Black");
            return Some(format!(
                "the filters select games in which the player has {color} (Color)"
            ));
        }
        let ends = self.sources.iter().find_map(|source| match source {
            (EngineSource::Games(explorer), _) => {
                explorer.max_ply_before(&self.settings.filters, pos)
            }
            (EngineSource::Moves(_), _) => None,
        });
        ends.map(not_indexed)
    }

    /// Returns the moves that the second engine should search: the moves that `go` allows, except those whose score in
    /// a source is too low. The moves are in UCI notation, separated by spaces, as the UCI argument `searchmoves`
    /// requires.
    ///
    /// Returns `None` if the search need not be restricted, because no move's score is too low, or cannot be
    /// restricted, because the scores of all allowed moves are too low.
    fn searchmoves_without(&self, go: &Go<'_>, excluded: &Excluded) -> Option<String> {
        let pos = self.game.as_ref()?.pos.position();
        let mut moves = pos.legal_moves();
        moves.retain(|mv| go.allows(pos, *mv));
        let allowed = moves.len();
        moves.retain(|mv| !excluded.refuses(*mv));
        if moves.len() == allowed {
            return None;
        }
        let moves: Vec<String> = moves.iter().map(|mv| uci(pos, *mv)).collect();
        (!moves.is_empty()).then(|| moves.join(" "))
    }

    /// Returns the moves of source `number` that the engine may play in `pos`, the best first, and adds its other moves
    /// to `excluded`. A move whose score in an earlier source is too low is not played either. `exclude` returns a
    /// reason not to play a move, or `None` if there is none.
    fn choices_of(
        &mut self,
        number: usize,
        pos: &VariantPosition,
        excluded: &mut Excluded,
        exclude: &dyn Fn(Move) -> Option<Exclusion>,
    ) -> Result<Vec<TreeMove>> {
        let turn = pos.turn();
        let mut moves = self.moves_of(number, turn, pos)?;
        let settings = &self.settings;
        excluded.take_from(&mut moves, |mv| {
            exclusion_of(mv, turn, settings).or_else(|| exclude(mv.mv))
        });
        moves.retain(|mv| !excluded.refuses(mv.mv));
        rank(&mut moves, turn);
        Ok(moves)
    }

    /// Returns the moves that source `number`, counted from 0, contains in the position `pos`. `side` is the side that
    /// the engine plays; a source that is only for the other side returns no moves. If the source cannot be read,
    /// returns no moves, and informs the user interface once for each `go`.
    fn moves_of(
        &mut self,
        number: usize,
        side: Color,
        pos: &VariantPosition,
    ) -> Result<Vec<TreeMove>> {
        let (source, color) = &self.sources[number];
        if color.is_some_and(|color| color != side) {
            return Ok(Vec::new());
        }
        let read = match source {
            EngineSource::Moves(source) => source.moves(&Keyed::new(pos.clone())),
            EngineSource::Games(explorer) => match self.settings.filters_as(side) {
                Some(filters) => played(explorer, self.settings.rules(), pos, &filters),
                None => Ok(Vec::new()),
            },
        };
        match read {
            Ok(moves) => Ok(moves),
            Err(err) => {
                if !self.unreadable.contains(&number) {
                    self.unreadable.push(number);
                    self.inform(&err.to_string())?;
                }
                Ok(Vec::new())
            }
        }
    }

    /// Returns a variation to show to the user: a sequence of moves in UCI notation. It begins with the move `mv` in
    /// the position `pos`, and continues with the most frequent moves of the first source that contains the position.
    /// It ends after [`MAX_SHOWN_PLIES`] half-moves, or at a position for which the sources have no suitable move.
    ///
    /// # Errors
    ///
    /// Returns an error if standard output cannot be written.
    fn line_from(&mut self, pos: &VariantPosition, mv: Move) -> Result<Vec<String>> {
        let side = pos.turn();
        let (mut pos, mut mv) = (pos.clone(), mv);
        let mut line = Vec::new();
        loop {
            line.push(uci(&pos, mv));
            pos.play_unchecked(mv);
            if line.len() == MAX_SHOWN_PLIES {
                return Ok(line);
            }
            let mut excluded = Excluded::default();
            let mut moves = Vec::new();
            for number in 0..self.sources.len() {
                if moves.is_empty() {
                    moves = self.known_moves(number, side, &pos, &mut excluded)?;
                }
            }
            let Some(next) = moves.iter().max_by_key(|mv| mv.weight) else {
                return Ok(line);
            };
            mv = next.mv;
        }
    }

    /// Writes the `info` line for the move `mv`. `number` is the number of the move among the moves shown, counted
    /// from 1. `line` is a variation that begins with the move. `sum` is the total weight of all moves of the position,
    /// from which a percentage is calculated. `turn` is the side that moves.
    fn say_move(
        &mut self,
        mv: &TreeMove,
        number: usize,
        line: &[String],
        sum: u64,
        turn: Color,
    ) -> Result<()> {
        let mut info = format!("info depth 1 seldepth {} multipv {number}", line.len());
        // Moves without results have no score.
        if let Some(stats) = mv.stats(turn).filter(|stats| stats.games() > 0) {
            let score = SureScore::of(stats);
            info += &format!(" score cp {}", score.centipawns());
            if self.settings.show_wdl {
                let [wins, draws, losses] = score.per_thousand();
                info += &format!(" wdl {wins} {draws} {losses}");
            }
        }
        let nodes = mv.games();
        self.say(&format!("{info} nodes {nodes} pv {}", line.join(" ")))?;
        if mv.results.is_none() {
            let percent = mv.weight as f64 * 100.0 / sum.max(1) as f64;
            self.inform(&format!("{} has {percent:.1} % of the weight", line[0]))?;
        }
        Ok(())
    }

    fn inform(&mut self, text: &str) -> Result<()> {
        let text: String = text.chars().filter(|c| !is_unsafe(*c)).collect();
        self.say(&format!("info string {text}"))
    }

    fn say(&self, line: &str) -> Result<()> {
        self.output.say(line)
    }
}

/// Changes the number of a move in an `info` line of the second engine, so that it follows the moves that polybook has
/// already shown. `already_shown`, the number of those moves, is added to the number after `multipv`. A missing number
/// counts as 1 if the line describes a move. Returns any other line unchanged.
fn renumbered(line: &str, already_shown: usize) -> String {
    let mut words: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
    let of = |name: &str| words.iter().position(|word| word == name);
    let end = of("string").or(of("pv")).unwrap_or(words.len());
    let number = of("multipv").filter(|at| *at < end);
    let has_score = of("score").is_some_and(|at| at < end) || of("pv") == Some(end);
    if of("info") != Some(0) {
        return line.to_owned();
    }
    match number.and_then(|at| words.get_mut(at + 1)) {
        Some(number) => {
            let old: usize = number.parse().unwrap_or(1);
            *number = old.saturating_add(already_shown).to_string();
        }
        None if has_score => words.insert(1, format!("multipv {}", already_shown + 1)),
        None => {}
    }
    words.join(" ")
}

/// Returns the reason why the settings of the engine exclude the move `mv`, or `None` if they allow it. `turn` is the
/// side that moves. A move without results is excluded only if its weight is 0.
fn exclusion_of(mv: &TreeMove, turn: Color, settings: &Settings) -> Option<Exclusion> {
    let Some(stats) = mv.stats(turn) else {
        return (mv.weight == 0).then_some(Exclusion::Weight);
    };
    if mv.games() == 0 {
        Some(Exclusion::Weight)
    } else if mv.games() < settings.min_games {
        Some(Exclusion::Games)
    } else if settings.min_score == 0 {
        None
    } else if stats.games() == 0 {
        Some(Exclusion::Unfinished)
    } else {
        let is_low = stats.score() * 100.0 < f64::from(settings.min_score);
        is_low.then_some(Exclusion::Score)
    }
}

/// Sorts moves from best to worst: moves with results by their [sure scores](SureScore), other moves by their weights.
/// Moves without a finished game come last. `turn` is the side that moves.
fn rank(moves: &mut [TreeMove], turn: Color) {
    let merit = |mv: &TreeMove| match mv.stats(turn) {
        Some(stats) if stats.games() == 0 => -1.0,
        Some(stats) => SureScore::of(stats).score(),
        None => mv.weight as f64,
    };
    moves.sort_by(|a, b| merit(b).total_cmp(&merit(a)));
}

/// Chooses one of `moves`, which must be sorted from best to worst, by the rule `play`. Returns the index of the chosen
/// move, or 0 if `moves` is empty. `turn` is the side that moves. `random` is a random number from 0 (inclusive) to 1
/// (exclusive), which [`Play::Best`] does not use.
pub(super) fn choose(moves: &[TreeMove], turn: Color, play: Play, random: f64) -> usize {
    let weight = |mv: &TreeMove| match (play, mv.stats(turn)) {
        (Play::Uniform, _) => 1.0,
        (_, Some(stats)) => stats.score().powi(2) * stats.games() as f64,
        (_, None) => mv.weight as f64,
    };
    let sum: f64 = moves.iter().map(weight).sum();
    // If all games were lost, all weights are 0.
    if play == Play::Best || sum <= 0.0 {
        return 0;
    }
    let mut left = random * sum;
    let chosen = moves.iter().position(|mv| {
        left -= weight(mv);
        left < 0.0
    });
    chosen.unwrap_or(0)
}

/// A cautious estimate of a move's score, by which moves are sorted and shown. To the games with the move,
/// [`ADDED_GAMES`](SureScore::ADDED_GAMES) imaginary games are added; the estimate is one standard error below the
/// score in all these games. Few games therefore neither make a move the best one nor look like a lost position. The
/// standard error takes draws into account.
#[derive(Copy, Clone, Debug)]
struct SureScore {
    /// The expected share of games that are won, from 0 to 1.
    wins: f64,
    /// The expected share of games that are drawn, from 0 to 1.
    draws: f64,
}

impl SureScore {
    /// The number of imaginary games that are added to those of a move. Half of them are wins, and half are losses.
    const ADDED_GAMES: f64 = 20.0;

    fn of(stats: Wdl) -> SureScore {
        let games = stats.games() as f64 + SureScore::ADDED_GAMES;
        let wins = (stats.wins as f64 + SureScore::ADDED_GAMES / 2.0) / games;
        let draws = stats.draws as f64 / games;
        let mean = wins + draws / 2.0;
        let variance = wins + draws / 4.0 - mean * mean;
        let error = (variance / games).sqrt();
        // Wins become losses first. If there are too few of them, draws become losses.
        let from_wins = error.min(wins);
        let from_draws = (2.0 * (error - from_wins)).min(draws);
        SureScore {
            wins: wins - from_wins,
            draws: draws - from_draws,
        }
    }

    /// Returns the score, from 0 to 1.
    fn score(self) -> f64 {
        self.wins + self.draws / 2.0
    }

    /// Returns the score in centipawns, by the inverse of the formula with which Lichess converts centipawns to a
    /// score. For example, 100 centipawns correspond to 59 %.
    fn centipawns(self) -> i64 {
        const SCALE: f64 = 0.003_682_08;
        let score = self.score().clamp(0.001, 0.999);
        ((score / (1.0 - score)).ln() / SCALE).round() as i64
    }

    /// Returns the shares of wins, draws and losses in thousandths, in this order. The shares are rounded so that they
    /// add up to 1000: those with the largest fractions are rounded up.
    fn per_thousand(self) -> [u64; 3] {
        let exact = [self.wins, self.draws, 1.0 - self.wins - self.draws]
            .map(|share| (share * 1000.0).max(0.0));
        let mut rounded = exact.map(|share| share as u64);
        let mut by_fraction = [1, 0, 2];
        by_fraction.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()));
        let rest = 1000_u64.saturating_sub(rounded.iter().sum()) as usize;
        for place in by_fraction.into_iter().take(rest) {
            rounded[place] += 1;
        }
        rounded
    }
}

/// Finds the first known UCI command in a line. Returns the command and the text after it, or `None` if the line
/// contains no known command. Unknown words before the command are skipped, as UCI requires.
pub(super) fn split_command(line: &str) -> Option<(&str, &str)> {
    const KNOWN: [&str; 11] = [
        "uci",
        "debug",
        "isready",
        "setoption",
        "register",
        "ucinewgame",
        "position",
        "go",
        "stop",
        "ponderhit",
        "quit",
    ];
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, after) = rest
            .split_once(|c: char| c.is_ascii_whitespace())
            .unwrap_or((rest, ""));
        if KNOWN.contains(&word) {
            return Some((word, after.trim()));
        }
        rest = after.trim();
    }
    None
}

/// Parses the arguments of the UCI command `setoption`, which have the form `name NAME value VALUE`. Returns the name
/// and the value. If the value is missing, it is returned as an empty string. Returns `None` if the arguments do not
/// begin with `name`.
fn parse_option(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("name ")?;
    let (name, value) = match text.split_once(" value ") {
        Some((name, value)) => (name, value),
        None => (text.strip_suffix(" value").unwrap_or(text), ""),
    };
    Some((name.trim(), value.trim()))
}

/// The UCI command that must arrive before the result of a search may be sent. For example, UCI requires that the
/// result of `go infinite` is held back until `stop`, even if the search has already ended.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) enum Wait {
    /// No command; the result may be sent at once.
    #[default]
    None,
    /// The command `ponderhit` or the command `stop`.
    Ponderhit,
    /// The command `stop`.
    Stop,
}

/// The parsed arguments of the UCI command `go`, which starts a search.
#[derive(Default)]
pub(super) struct Go<'a> {
    pub wait: Wait,
    /// The moves after `searchmoves`, which are the only moves that may be chosen. Empty if all moves are allowed.
    pub moves: Vec<UciMove>,
    /// All arguments except `searchmoves` and its moves.
    pub limits: Vec<&'a str>,
}

impl<'a> Go<'a> {
    /// Parses the arguments of the UCI command `go`. Adds unknown words to the field `limits`, because another engine
    /// to which the arguments are passed on may understand them.
    pub(super) fn read(text: &'a str) -> Go<'a> {
        let mut go = Go::default();
        let mut is_move = false;
        for word in text.split_ascii_whitespace() {
            if word == "searchmoves" {
                is_move = true;
                continue;
            }
            if is_move && let Ok(mv) = word.parse() {
                go.moves.push(mv);
                continue;
            }
            is_move = false;
            go.limits.push(word);
            match word {
                "infinite" => go.wait = Wait::Stop,
                "ponder" if go.wait == Wait::None => go.wait = Wait::Ponderhit,
                _ => {}
            }
        }
        go
    }

    /// Returns the command `go` for the second engine. It contains all arguments except `searchmoves` and its moves,
    /// because the caller appends `searchmoves` with moves of its own.
    pub(super) fn command(&self) -> String {
        format!("go {}", self.limits.join(" "))
            .trim_end()
            .to_owned()
    }

    /// Returns `true` if the command permits the move `mv` in `pos`. This is the case if `searchmoves` lists the move,
    /// or if the command does not contain `searchmoves`.
    pub(super) fn allows(&self, pos: &VariantPosition, mv: Move) -> bool {
        let is_same = |allowed: &UciMove| allowed.to_move(pos).is_ok_and(|allowed| allowed == mv);
        self.moves.is_empty() || self.moves.iter().any(is_same)
    }
}

/// A game that the UCI command `position` describes: its last position, and the positions before it.
#[derive(Debug)]
struct UciGame {
    pos: Keyed<VariantPosition>,
    /// The identities (hashes) of all positions of the game, including the last one. Positions that differ only in
    /// castling rights or in legal en passant captures have different identities.
    identities: Vec<u64>,
}

impl UciGame {
    fn new(start: VariantPosition) -> UciGame {
        let pos = Keyed::new(start);
        UciGame {
            identities: vec![pos.identity()],
            pos,
        }
    }

    fn play(&mut self, mv: Move) {
        self.pos.play(mv);
        self.identities.push(self.pos.identity());
    }

    /// Returns `true` if the move `mv` leads to a position that has already occurred at least twice.
    fn repeats(&self, mv: Move) -> bool {
        let mut after = self.pos.clone();
        after.play(mv);
        let identity = after.identity();
        let before = self.identities.iter();
        before.filter(|before| **before == identity).count() >= 2
    }
}

/// Splits the arguments of the UCI command `position` into the starting position and the moves.
fn split_position(text: &str) -> (&str, &str) {
    match text.split_once("moves") {
        Some((start, moves)) => (start.trim(), moves),
        None => (text.trim(), ""),
    }
}

/// Parses the arguments of the UCI command `position`, and plays all moves.
///
/// # Errors
///
/// Returns a message for the user if the position is invalid or a move is illegal.
fn parse_position(text: &str, variant: Variant) -> Result<UciGame, String> {
    let (start, moves) = split_position(text);
    let mut game = UciGame::new(match start.strip_prefix("fen") {
        Some(fen) => variant
            .parse_position(fen.trim())
            .map_err(|err| err.to_string())?,
        None if start == "startpos" => variant.start(),
        None => {
            return Err(
                "the command position is malformed: use position startpos or position fen FEN"
                    .to_owned(),
            );
        }
    });
    for text in moves.split_ascii_whitespace() {
        let mv = text.parse::<UciMove>().ok();
        let mv = mv.and_then(|mv| mv.to_move(game.pos.position()).ok());
        let text: String = text.chars().take(10).collect();
        game.play(mv.ok_or_else(|| format!("{text} is not a legal move"))?);
    }
    Ok(game)
}

/// Converts the arguments of the UCI command `position` to a form that other engines can read: replaces a FEN in a
/// nonstandard form, which only [`Variant::parse_position`] accepts, with a standard FEN.
fn standard_position(text: &str, variant: Variant) -> Cow<'_, str> {
    let Some(fen) = text.trim().strip_prefix("fen") else {
        return text.into();
    };
    let end = fen.find("moves").unwrap_or(fen.len());
    let (fen, moves) = fen.split_at(end);
    match variant.parse_position(fen) {
        Ok(pos) if variant.parse_fen(fen).is_err() => {
            format!("fen {} {moves}", fen_of(&pos)).into()
        }
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, rc::Rc, sync::Arc};

    use proptest::prelude::*;
    use shakmaty::{Chess, Position, Role, Square};

    use super::*;
    use crate::Error;

    /// A source whose moves a function returns, the best first. It counts the look-ups.
    struct Computed<F> {
        moves: F,
        lookups: Rc<Cell<usize>>,
    }

    impl<F: Fn(&VariantPosition) -> Result<Vec<Move>>> MoveSource for Computed<F> {
        fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
            self.lookups.set(self.lookups.get() + 1);
            let moves = (self.moves)(pos.position())?
                .into_iter()
                .zip((1..=1000).rev());
            Ok(moves
                .map(|(mv, weight)| TreeMove::without_evaluation(mv, weight, None))
                .collect())
        }
    }

    /// Returns the answer to `go` in the starting position, and the number of look-ups. `leave_before_end` is the
    /// setting of this name.
    fn answer(
        moves: impl Fn(&VariantPosition) -> Result<Vec<Move>> + 'static,
        leave_before_end: u32,
    ) -> (String, usize) {
        let lookups = Rc::default();
        let source = Computed {
            moves,
            lookups: Rc::clone(&lookups),
        };
        let settings = Settings {
            leave_before_end,
            multi_pv: 500,
            play: Play::Best,
            ..Settings::default()
        };
        let (read, write) = std::io::pipe().unwrap();
        let output = LineQueue::start(write, Arc::default()).unwrap();
        let sources = vec![(EngineSource::Moves(Box::new(source)), None)];
        let mut session = Session::new(sources, settings, None, output);
        session.handle("go", "").unwrap();
        session.output.finish().unwrap();
        (std::io::read_to_string(read).unwrap(), lookups.get())
    }

    fn after(line: &str) -> VariantPosition {
        Variant::Standard.from_text(None, Some(line)).unwrap()
    }

    fn first_moves(moves: &[&str]) -> Vec<Move> {
        let read = |text: &&str| {
            text.parse::<UciMove>()
                .unwrap()
                .to_move(&after(""))
                .unwrap()
        };
        moves.iter().map(read).collect()
    }

    /// Returns the number of half-moves from the starting position to `pos`.
    fn plies_before(pos: &VariantPosition) -> u32 {
        2 * (pos.fullmoves().get() - 1) + u32::from(pos.turn() == Color::Black)
    }

    #[test]
    fn one_move_with_many_positions_leaves_look_ups_for_the_others() {
        let firsts = ["d2d4", "e2e4", "h2h3"];
        // Many positions follow 1. e4, but no line has 8 half-moves.
        let many = move |pos: &VariantPosition| {
            Ok(match plies_before(pos) {
                0 => first_moves(&firsts),
                _ if pos.board().piece_at(Square::E2).is_some() => Vec::new(),
                1..6 => pos.legal_moves().into_iter().collect(),
                _ => Vec::new(),
            })
        };
        let (said, lookups) = answer(many, 8);
        assert!(said.contains("bestmove e2e4"), "{said}");
        assert!(
            !said.contains("pv d2d4") && !said.contains("pv h2h3"),
            "{said}"
        );
        // Each move has a share, and all shares together are limited.
        assert!(
            (MAX_POSITIONS_AFTER_MOVE..MAX_POSITIONS_AHEAD).contains(&lookups),
            "{lookups}"
        );
        let (said, lookups) = answer(|pos| Ok(pos.legal_moves().into_iter().collect()), 100);
        assert!(
            said.contains("pv a2a3") && said.contains("pv h2h4"),
            "{said}"
        );
        assert!(lookups < MAX_POSITIONS_AHEAD + 200, "{lookups}");
        // Few positions are searched to the end.
        let few = |pos: &VariantPosition| {
            let pawns = pos.legal_moves().into_iter();
            let pawns = pawns.filter(|mv| mv.role() == Role::Pawn);
            let moves = if plies_before(pos) < 5 { 2 } else { 0 };
            Ok(pawns.take(moves).collect())
        };
        assert!(answer(few, 6).0.contains("bestmove (none)"));
        assert!(!answer(few, 5).0.contains("bestmove (none)"));
    }

    #[test]
    fn an_unreadable_source_is_reported_once_for_each_go() {
        let damaged = |pos: &VariantPosition| match plies_before(pos) {
            0 => Ok(first_moves(&["e2e4", "d2d4"])),
            _ => Err(Error::damaged("book.bin", "damaged")),
        };
        let (said, lookups) = answer(damaged, 4);
        assert!(lookups > 40, "{lookups}");
        assert_eq!(said.matches("damaged").count(), 1, "{said}");
    }

    /// Returns the length of the longest line in which no position recurs. White plays moves of `lines`. Black also
    /// plays all legal moves, but not at the end of a line, in positions for which `lines` contains no move.
    fn longest(lines: &FxHashMap<u64, Vec<Move>>, pos: &VariantPosition, visited: &[u64]) -> u32 {
        let identity = Keyed::new(pos.clone()).identity();
        let mut visited = visited.to_vec();
        visited.push(identity);
        let known = lines.get(&identity);
        let added = || pos.legal_moves().into_iter().collect();
        let moves = match (known, pos.turn()) {
            (Some(moves), _) => moves.clone(),
            (None, Color::White) => Vec::new(),
            (None, Color::Black) => added(),
        };
        let lengths = moves.into_iter().filter_map(|mv| {
            let mut next = pos.clone();
            next.play_unchecked(mv);
            if visited.contains(&Keyed::new(next.clone()).identity()) {
                return None;
            }
            let rest = longest(lines, &next, &visited);
            (known.is_some() || rest > 0).then_some(rest + 1)
        });
        lengths.max().unwrap_or(0)
    }

    proptest! {
        /// The games contain only moves of knights. They reach few positions, so many lines meet, and many return to earlier
        /// positions.
        #[test]
        fn the_longest_line_without_a_recurring_position_decides(
            games in proptest::collection::vec(proptest::collection::vec(0..4usize, 1..9), 1..6),
        ) {
            let knights = [["g1f3", "f3g1", "b1c3", "c3b1"], ["g8f6", "f6g8", "b8c6", "c6b8"]];
            let mut lines: FxHashMap<u64, Vec<Move>> = FxHashMap::default();
            for game in games {
                let mut pos = after("");
                for choice in game {
                    let texts = knights[usize::from(pos.turn() == Color::Black)];
                    let legal = pos.legal_moves();
                    let knights: Vec<Move> =
                        legal.into_iter().filter(|mv| texts.contains(&uci(&pos, *mv).as_str())).collect();
                    let mv = knights[choice % knights.len()];
                    let known = lines.entry(Keyed::new(pos.clone()).identity()).or_default();
                    if !known.contains(&mv) {
                        known.push(mv);
                    }
                    pos.play_unchecked(mv);
                }
            }
            let length = longest(&lines, &after(""), &[]);
            for (needed, is_played) in [(length, true), (length + 1, false)] {
                let lines = lines.clone();
                let of = move |pos: &VariantPosition| {
                    let identity = Keyed::new(pos.clone()).identity();
                    Ok(lines.get(&identity).cloned().unwrap_or_default())
                };
                let (said, lookups) = answer(of, needed);
                let is_limited = lookups >= MAX_POSITIONS_AFTER_MOVE - 1;
                prop_assert!(is_limited || said.contains("bestmove (none)") != is_played, "{length} {said}");
            }
        }
    }

    #[test]
    fn variations_of_the_engine_come_after_the_listed_moves() {
        for (line, renumbered_line) in [
            (
                "info depth 3 multipv 2 score cp 1 pv a2a3",
                "info depth 3 multipv 5 score cp 1 pv a2a3",
            ),
            (
                "info depth 3 score cp 1",
                "info multipv 4 depth 3 score cp 1",
            ),
            ("info depth 3 pv a2a3", "info multipv 4 depth 3 pv a2a3"),
            ("info multipv x pv a2a3", "info multipv 4 pv a2a3"),
            ("info currmove a2a3", "info currmove a2a3"),
            (
                "info string score multipv 1 pv",
                "info string score multipv 1 pv",
            ),
            ("info multipv", "info multipv"),
            ("score multipv 1", "score multipv 1"),
        ] {
            assert_eq!(renumbered(line, 3), renumbered_line);
        }
    }

    fn moves(stats: &[(u64, u64, u64)]) -> Vec<TreeMove> {
        let legal = Chess::default().legal_moves();
        let of = |(at, (wins, draws, losses)): (usize, &(u64, u64, u64))| {
            let stats = Wdl {
                wins: *wins,
                draws: *draws,
                losses: *losses,
            };
            let results = crate::games::results::Results::from_side(Color::White, stats);
            TreeMove::without_evaluation(legal[at], stats.games(), Some(results))
        };
        stats.iter().enumerate().map(of).collect()
    }

    #[test]
    fn one_lucky_game_does_not_lead() {
        let mut ranked = moves(&[(1, 0, 0), (600, 100, 300), (10, 0, 90)]);
        rank(&mut ranked, Color::White);
        assert_eq!(ranked[0].weight, 1000);
        let score = SureScore::of(ranked[0].stats(Color::White).unwrap());
        assert!(score.centipawns() > 120 && score.centipawns() < 170);
        assert_eq!(score.per_thousand(), [584, 98, 318]);
    }

    #[test]
    fn moves_that_are_not_played_have_a_reason() {
        let settings = Settings {
            min_score: 45,
            min_games: 2,
            ..Settings::default()
        };
        let mut known = moves(&[
            (1, 0, 0),
            (600, 100, 300),
            (10, 0, 90),
            (0, 0, 0),
            (0, 0, 0),
        ]);
        known[3].results.as_mut().unwrap().unfinished = 9;
        let reasons = |settings: &Settings| -> Vec<Option<Exclusion>> {
            let reason = |mv| exclusion_of(mv, Color::White, settings);
            known.iter().map(reason).collect()
        };
        // The score of a single game, or of unfinished games, is unknown. Another engine may choose such a move.
        let expected = [
            Some(Exclusion::Games),
            None,
            Some(Exclusion::Score),
            Some(Exclusion::Unfinished),
            Some(Exclusion::Weight),
        ];
        assert_eq!(reasons(&settings), expected);
        let expected = [None, None, None, None, Some(Exclusion::Weight)];
        assert_eq!(reasons(&Settings::default()), expected);

        let mut excluded = Excluded::default();
        for _ in 0..2 {
            // Another source may contain the same moves.
            let reason = |mv: &TreeMove| exclusion_of(mv, Color::White, &settings);
            excluded.take_from(&mut known.clone(), reason);
        }
        assert_eq!(
            excluded.explain(&settings).unwrap(),
            "the sources contain 4 moves of this position, but none is played: 1 with a score below 45 % (MinScore), \
             1 without a finished game (MinScore), 1 with fewer than 2 games (MinGames), 1 with weight 0"
        );
        assert!(excluded.refuses(known[2].mv) && !excluded.refuses(known[0].mv));
        assert_eq!(Excluded::default().explain(&settings), None);
    }

    fn score(wins: u64, draws: u64, losses: u64) -> SureScore {
        SureScore::of(Wdl {
            wins,
            draws,
            losses,
        })
    }

    #[test]
    fn few_games_look_neither_lost_nor_won() {
        for (stats, least, most) in [
            ((0, 0, 1), -200, 0),
            ((0, 1, 0), -150, 0),
            ((1, 0, 0), -150, 100),
            ((5, 0, 0), 0, 100),
            ((750_000, 0, 250_000), 297, 299),
            ((0, 0, 1_000_000), -1900, -1800),
        ] {
            let (wins, draws, losses) = stats;
            let centipawns = score(wins, draws, losses).centipawns();
            assert!(
                (least..=most).contains(&centipawns),
                "{stats:?} {centipawns}"
            );
        }
        // Draws say more about a score of 50 % than wins and losses do.
        assert!(score(0, 100, 0).score() > score(50, 0, 50).score());
    }

    proptest! {
        #[test]
        fn lines_are_in_the_order_of_their_scores_and_shares(
            stats in proptest::collection::vec((0..400u64, 0..400u64, 0..400u64), 1..20),
        ) {
            let mut ranked = moves(&stats);
            ranked.retain(|mv| mv.games() > 0);
            rank(&mut ranked, Color::White);
            let shown = ranked.iter().map(|mv| SureScore::of(mv.stats(Color::White).unwrap()));
            let shown = Vec::from_iter(shown.map(|score| (score.centipawns(), score.per_thousand())));
            for (centipawns, [wins, draws, losses]) in &shown {
                prop_assert_eq!(wins + draws + losses, 1000);
                let share = (*wins as f64 + *draws as f64 / 2.0) / 1000.0;
                let expected = 1.0 / (1.0 + (-0.003_682_08 * *centipawns as f64).exp());
                prop_assert!((share - expected).abs() < 0.003, "{share} {expected}");
            }
            prop_assert!(shown.is_sorted_by_key(|(centipawns, _)| -centipawns));
        }
    }

    #[test]
    fn a_third_repetition_needs_the_same_castling_rights_and_captures() {
        let repeats = |text: &str, mv: &str| {
            let game = parse_position(text, Variant::Standard).unwrap();
            let mv: UciMove = mv.parse().unwrap();
            game.repeats(mv.to_move(game.pos.position()).unwrap())
        };
        let knights = "g1f3 g8f6 f3g1 f6g8";
        assert!(!repeats(
            &format!("startpos moves {knights} g1f3 g8f6 f3g1"),
            "f6e4"
        ));
        assert!(repeats(
            &format!("startpos moves {knights} g1f3 g8f6 f3g1"),
            "f6g8"
        ));
        assert!(!repeats("startpos moves g1f3 g8f6 f3g1", "f6g8"));
        // The first position has a right to castle that the later ones lack.
        let rook = "h1g1 h8g8 g1h1 g8h8";
        let start = "fen 4k2r/8/8/8/8/8/8/4K2R w Kk - 0 1 moves";
        assert!(!repeats(&format!("{start} {rook} h1g1 h8g8 g1h1"), "g8h8"));
        assert!(repeats(
            &format!("{start} {rook} {rook} h1g1 h8g8 g1h1"),
            "g8h8"
        ));
        // After 1. e4, Black can capture en passant in the first position, but not in the later ones.
        let start = "fen 4k1n1/8/8/8/3p4/8/4P3/4K1N1 w - - 0 1 moves e2e4";
        let knights = "g8f6 g1f3 f6g8 f3g1";
        assert!(!repeats(
            &format!("{start} {knights} g8f6 g1f3 f6g8"),
            "f3g1"
        ));
        assert!(repeats(
            &format!("{start} {knights} {knights} g8f6 g1f3 f6g8"),
            "f3g1"
        ));
        // If no pawn can capture en passant, the first position counts as a repetition.
        let start = "fen 4k1n1/8/8/8/8/8/4P3/4K1N1 w - - 0 1 moves e2e4";
        assert!(repeats(
            &format!("{start} {knights} g8f6 g1f3 f6g8"),
            "f3g1"
        ));
    }

    /// The chi-squared test of 2000 choices among three moves: 13.8 is exceeded in one of a thousand cases.
    #[test]
    fn choices_are_as_frequent_as_their_weights() {
        let ranked = moves(&[(100, 0, 0), (50, 0, 50), (0, 100, 0)]);
        let mut random = Random::new(7);
        let mut counts = [0.0; 3];
        for _ in 0..2000 {
            counts[choose(&ranked, Color::White, Play::Weighted, random.next_number())] += 1.0;
        }
        let expected = [4.0, 1.0, 1.0].map(|share| share * 2000.0 / 6.0);
        let squares = counts.iter().zip(expected);
        let chi: f64 = squares
            .map(|(count, expected)| (count - expected) * (count - expected) / expected)
            .sum();
        assert!(chi < 13.8, "{counts:?}");
        assert_eq!(choose(&ranked, Color::White, Play::Best, 0.99), 0);
        assert_eq!(choose(&ranked, Color::White, Play::Uniform, 0.5), 1);
        assert_ne!(Random::new(0).next_number(), Random::new(0).next_number());
        let lost = moves(&[(0, 0, 5), (0, 0, 9)]);
        assert_eq!(choose(&lost, Color::White, Play::Weighted, 0.9), 0);
    }

    #[test]
    fn unknown_words_are_skipped() {
        assert_eq!(split_command(" joho debug  on "), Some(("debug", "on")));
        assert_eq!(
            split_command("position startpos"),
            Some(("position", "startpos"))
        );
        assert_eq!(split_command("joho"), None);
        assert_eq!(parse_option("name a b value c d"), Some(("a b", "c d")));
        assert_eq!(parse_option("name Clear Hash"), Some(("Clear Hash", "")));
        assert_eq!(parse_option("name Player value"), Some(("Player", "")));
    }

    #[test]
    fn positions_are_read() {
        for wrong in [
            "",
            "fen",
            "fen x moves e2e4",
            "startpos moves e2e5",
            "startpos moves 0000",
            "startpos moves e2e4 0000",
        ] {
            assert!(parse_position(wrong, Variant::Standard).is_err(), "{wrong}");
        }
        let lenient = "fen 4k3/8/8/8/8/8/4P3/4K3 White \u{2013} \u{2013} -1 -1 moves e2e4";
        for (text, sent) in [
            (lenient, "fen 4k3/8/8/8/8/8/4P3/4K3 w - - 0 1 moves e2e4"),
            (
                "fen 4k3/8/8/8/8/8/4P3/4K3 w - - 3 9 moves e2e4",
                "fen 4k3/8/8/8/8/8/4P3/4K3 w - - 3 9 moves e2e4",
            ),
            ("startpos moves e2e4", "startpos moves e2e4"),
            ("fen x moves e2e4", "fen x moves e2e4"),
        ] {
            assert_eq!(standard_position(text, Variant::Standard), sent);
        }
        let pos = parse_position(lenient, Variant::Standard).unwrap();
        assert_eq!(
            fen_of(pos.pos.position()),
            "4k3/8/8/8/4P3/8/8/4K3 b - - 0 1"
        );
        let game = parse_position("startpos moves e2e4 e7e5 e1e2", Variant::Standard).unwrap();
        assert_eq!(game.pos.position().fullmoves().get(), 2);
        let start = Variant::Standard.start();
        let go = Go::read("wtime 1 searchmoves e2e4 g1f3 infinite ponder");
        assert_eq!((go.wait, go.moves.len()), (Wait::Stop, 2));
        assert_eq!(go.limits, ["wtime", "1", "infinite", "ponder"]);
        let allowed = start.legal_moves().into_iter();
        assert_eq!(allowed.filter(|mv| go.allows(&start, *mv)).count(), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(fen|startpos|moves|[a-h][1-8][a-h][1-8]|0000| |\\PC){0,20}") {
            let _ = split_command(&text);
            let _ = parse_option(&text);
            let _ = Go::read(&text);
            let _ = parse_position(&text, Variant::Crazyhouse);
        }
    }
}
