//! A conversation with a program that speaks UCI.

use std::io::Write;

use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::{
    EngineSource,
    behind::Behind,
    choice::{Random, centipawns, choose, rank, wdl},
    command::{self, Go},
    settings::{Fallback, PREFIX, Settings, declarations, has, own},
    write_line,
};
use crate::{
    error::Result,
    position::{Keyed, uci},
    task::Feed,
    tree::played,
    uci::is_answer,
    walk::TreeMove,
};

/// The maximum number of half-moves of a line.
const LONGEST_LINE: usize = 5;

/// What happened to a program that is listened to.
pub(super) enum Event {
    /// A command came.
    Command(String),
    /// No command will come any more.
    End,
    /// The engine behind wrote a line.
    Behind(String),
    /// The engine behind ended, or closed its output.
    BehindEnd,
}

/// The search that is not answered yet.
enum Search {
    /// None.
    Idle,
    /// A source has answered, and the answer waits for `stop`, or also for `ponderhit`.
    Held { answer: String, is_ponder: bool },
    /// The engine behind searches.
    Passed,
    /// The engine behind searches for moves to list after `listed` moves of a source, whose answer counts.
    Filled { answer: String, listed: usize },
}

/// The state of a conversation.
pub(super) struct Session<W> {
    sources: Vec<EngineSource>,
    settings: Settings,
    behind: Option<Behind>,
    output: W,
    random: Random,
    /// The last `position` command, for the engine behind.
    position: String,
    /// Its position, or `None` if it cannot be read.
    pos: Option<VariantPosition>,
    search: Search,
    /// How often the engine behind has still to answer `isready`.
    ready_asked: usize,
}

impl<W: Write> Session<W> {
    pub(super) fn new(
        sources: Vec<EngineSource>,
        settings: Settings,
        behind: Option<Behind>,
        output: W,
    ) -> Session<W> {
        Session {
            sources,
            random: Random(settings.seed),
            pos: Some(settings.rules().start()),
            settings,
            behind,
            output,
            position: "position startpos".to_owned(),
            search: Search::Idle,
            ready_asked: 0,
        }
    }

    /// Handles events until `quit` or the end of the commands.
    ///
    /// # Errors
    ///
    /// Returns an error if the output cannot be written.
    pub(super) fn run(mut self, events: &mut Feed<Event>) -> Result<()> {
        while let Some(event) = events.next(&[])? {
            match event {
                Event::Command(line) => {
                    let Some((word, rest)) = command::split(&line) else {
                        continue;
                    };
                    if word == "quit" {
                        break;
                    }
                    self.obey(word, rest)?;
                }
                Event::End => break,
                Event::Behind(line) => self.hear(&line)?,
                Event::BehindEnd => self.lose_behind()?,
            }
        }
        if let Some(behind) = self.behind {
            behind.quit(events);
        }
        Ok(())
    }

    fn obey(&mut self, word: &str, rest: &str) -> Result<()> {
        match word {
            "uci" => self.introduce(),
            "isready" if self.behind.is_some() => {
                self.ready_asked += 1;
                self.pass("isready")
            }
            "isready" => self.say("readyok"),
            "setoption" => self.set(rest),
            "ucinewgame" => self.pass("ucinewgame"),
            "debug" => self.pass(&format!("debug {rest}")),
            "position" => self.take_position(rest),
            "go" => self.go(rest),
            "stop" => self.end_wait("stop", true),
            "ponderhit" => self.end_wait("ponderhit", false),
            _ => Ok(()),
        }
    }

    fn introduce(&mut self) -> Result<()> {
        let (mut lines, names) = match &self.behind {
            Some(behind) => (behind.lines.clone(), &behind.options[..]),
            None => {
                let name = concat!("id name polybook ", env!("CARGO_PKG_VERSION"));
                let author = "id author the authors of polybook";
                (vec![name.to_owned(), author.to_owned()], &[][..])
            }
        };
        lines.extend(declarations(names));
        lines.push("uciok".to_owned());
        lines.iter().try_for_each(|line| self.say(line))
    }

    fn set(&mut self, text: &str) -> Result<()> {
        let Some((name, value)) = command::option(text) else {
            return self.inform("write setoption name NAME value VALUE");
        };
        let names = self
            .behind
            .as_ref()
            .map_or(&[][..], |behind| &behind.options);
        let (own, is_behind) = (own(names, name), has(names, name));
        if let Some(own) = own {
            if let Err(problem) = self.settings.set(own, value) {
                return self.inform(&format!("option {own}: {problem}"));
            }
            if own.eq_ignore_ascii_case("seed") {
                self.random = Random(self.settings.seed);
            }
        }
        // The engine behind has the options of the protocol too; those of its own have no prefix.
        if is_behind && !name.starts_with(PREFIX) {
            return self.pass(&format!("setoption {text}"));
        }
        match own {
            Some(_) => Ok(()),
            None => self.inform(&format!("there is no option {name}")),
        }
    }

    fn take_position(&mut self, text: &str) -> Result<()> {
        self.position = format!("position {text}");
        match command::position(text, self.settings.rules()) {
            Ok(pos) => {
                self.pos = Some(pos);
                Ok(())
            }
            Err(problem) => {
                self.pos = None;
                self.inform(&format!("position: {problem}"))
            }
        }
    }

    fn go(&mut self, text: &str) -> Result<()> {
        if !matches!(self.search, Search::Idle) {
            return self.inform("a search is not answered yet: send stop first");
        }
        let go = Go::read(text);
        let Some(pos) = self.pos.clone() else {
            return self.leave_book(text);
        };
        let mut moves = self.known(&pos)?;
        moves.retain(|mv| go.allows(&pos, mv.mv));
        if moves.is_empty() {
            return self.leave_book(text);
        }
        let random = self.random.next();
        let chosen = choose(&moves, self.settings.play, random);
        let most = self.settings.multi_pv;
        let first = if most == 1 { chosen } else { 0 };
        let shown = first..moves.len().min(first + most);
        let listed = shown.len();
        let sum: u64 = moves.iter().map(|mv| mv.weight).sum();
        let mut answered = None;
        for (number, at) in shown.enumerate() {
            let line = self.line_from(&pos, moves[at].mv)?;
            self.list(&pos, &moves[at], number + 1, &line, sum)?;
            if at == chosen {
                answered = Some(line);
            }
        }
        let line = match answered {
            Some(line) => line,
            None => self.line_from(&pos, moves[chosen].mv)?,
        };
        let ponder = line.get(1).map(|reply| format!(" ponder {reply}"));
        let answer = format!("bestmove {}{}", line[0], ponder.unwrap_or_default());
        if listed < most && self.fill(&pos, &go, text, &moves)? {
            self.search = Search::Filled { answer, listed };
            return Ok(());
        }
        if go.is_infinite || go.is_ponder {
            let is_ponder = !go.is_infinite;
            self.search = Search::Held { answer, is_ponder };
            return Ok(());
        }
        self.say(&answer)
    }

    /// Lets the engine behind search for moves that no source has. Returns `false` if there is no engine or no such move.
    fn fill(
        &mut self,
        pos: &VariantPosition,
        go: &Go,
        text: &str,
        known: &[TreeMove],
    ) -> Result<bool> {
        let is_other = |mv: &Move| go.allows(pos, *mv) && known.iter().all(|known| known.mv != *mv);
        let others = pos.legal_moves().into_iter().filter(is_other);
        let others: Vec<String> = others.map(|mv| uci(pos, mv)).collect();
        let can_fill = self.behind.as_ref();
        let can_fill = can_fill.is_some_and(|behind| has(&behind.options, "MultiPV"));
        if others.is_empty() || !can_fill {
            return Ok(false);
        }
        let rest = self.settings.multi_pv - known.len();
        let limits = text.split("searchmoves").next().unwrap_or_default().trim();
        for line in [
            format!("setoption name MultiPV value {rest}"),
            self.position.clone(),
            format!("go {limits} searchmoves {}", others.join(" ")),
        ] {
            self.pass(&line)?;
        }
        Ok(self.behind.is_some())
    }

    /// Answers `go` in a position that no source knows.
    fn leave_book(&mut self, text: &str) -> Result<()> {
        if self.behind.is_some() {
            self.search = Search::Passed;
            let position = self.position.clone();
            self.pass(&position)?;
            return self.pass(format!("go {text}").trim());
        }
        let go = Go::read(text);
        self.inform("out of book")?;
        let answer = self.fallback();
        if go.is_infinite || go.is_ponder {
            let is_ponder = !go.is_infinite;
            self.search = Search::Held { answer, is_ponder };
            return Ok(());
        }
        self.say(&answer)
    }

    fn fallback(&mut self) -> String {
        let random = self.random.next();
        let chosen = self.pos.as_ref().and_then(|pos| {
            let legal = pos.legal_moves();
            let at = (random * legal.len() as f64) as usize;
            Some(uci(pos, *legal.get(at)?))
        });
        match chosen.filter(|_| self.settings.fallback == Fallback::Random) {
            Some(mv) => format!("bestmove {mv}"),
            None => "bestmove (none)".to_owned(),
        }
    }

    /// Handles `stop` and `ponderhit`.
    fn end_wait(&mut self, word: &str, is_stop: bool) -> Result<()> {
        match std::mem::replace(&mut self.search, Search::Idle) {
            Search::Held { answer, is_ponder } if is_stop || is_ponder => self.say(&answer),
            search => {
                let is_behind = matches!(search, Search::Passed | Search::Filled { .. });
                self.search = search;
                if is_behind { self.pass(word) } else { Ok(()) }
            }
        }
    }

    /// Handles a line of the engine behind.
    fn hear(&mut self, line: &str) -> Result<()> {
        if line == "readyok" {
            // An answer that nobody asked for is dropped.
            if self.ready_asked > 0 {
                self.ready_asked -= 1;
                self.say(line)?;
            }
            return Ok(());
        }
        match std::mem::replace(&mut self.search, Search::Idle) {
            Search::Passed if is_answer(line) => self.say(line),
            Search::Filled { answer, .. } if is_answer(line) => {
                let most = self.settings.multi_pv;
                self.pass(&format!("setoption name MultiPV value {most}"))?;
                self.say(&answer)
            }
            Search::Filled { answer, listed } => {
                self.search = Search::Filled { answer, listed };
                self.say(&renumbered(line, listed))
            }
            // An answer without a search would be taken for that of the next search.
            search => {
                self.search = search;
                match is_answer(line) {
                    true => Ok(()),
                    false => self.say(line),
                }
            }
        }
    }

    /// Goes on without the engine behind.
    fn lose_behind(&mut self) -> Result<()> {
        let Some(mut behind) = self.behind.take() else {
            return Ok(());
        };
        let problem = behind.process.has_ended("closed its output");
        drop(behind);
        self.inform(&format!("{problem}; known positions are still answered"))?;
        for _ in 0..std::mem::take(&mut self.ready_asked) {
            self.say("readyok")?;
        }
        match std::mem::replace(&mut self.search, Search::Idle) {
            Search::Passed => {
                let answer = self.fallback();
                self.say(&answer)
            }
            Search::Filled { answer, .. } => self.say(&answer),
            search => {
                self.search = search;
                Ok(())
            }
        }
    }

    /// Writes a line to the engine behind, if there is one.
    fn pass(&mut self, line: &str) -> Result<()> {
        let Some(behind) = &mut self.behind else {
            return Ok(());
        };
        match behind.process.say(line) {
            Ok(()) => Ok(()),
            Err(_) => self.lose_behind(),
        }
    }

    /// Returns the moves of the first source that knows a position and whose moves the settings allow, the best first.
    fn known(&mut self, pos: &VariantPosition) -> Result<Vec<TreeMove>> {
        let ply =
            2 * (u64::from(pos.fullmoves().get()) - 1) + u64::from(pos.turn() == Color::Black);
        let max_ply = u64::from(self.settings.max_ply);
        if max_ply > 0 && ply >= max_ply {
            return Ok(Vec::new());
        }
        for number in 0..self.sources.len() {
            let mut moves = self.moves_of(number, pos)?;
            rank(&mut moves, &self.settings);
            if !moves.is_empty() {
                return Ok(moves);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the moves of a source. A source that cannot be read is reported, and knows nothing.
    fn moves_of(&mut self, number: usize, pos: &VariantPosition) -> Result<Vec<TreeMove>> {
        let read = match &self.sources[number] {
            EngineSource::Moves(source) => source.moves(&Keyed::new(pos.clone())),
            EngineSource::Games(explorer) => {
                let settings = &self.settings;
                played(explorer, settings.rules(), pos, &settings.filters)
            }
        };
        match read {
            Ok(moves) => Ok(moves),
            Err(err) => {
                self.inform(&err.to_string())?;
                Ok(Vec::new())
            }
        }
    }

    /// Returns a move and the most played replies as the protocol writes them.
    fn line_from(&mut self, pos: &VariantPosition, mv: Move) -> Result<Vec<String>> {
        let (mut pos, mut mv) = (pos.clone(), mv);
        let mut line = Vec::new();
        loop {
            line.push(uci(&pos, mv));
            pos.play_unchecked(mv);
            if line.len() == LONGEST_LINE {
                return Ok(line);
            }
            let moves = self.known(&pos)?;
            let Some(next) = moves.iter().max_by_key(|mv| mv.weight) else {
                return Ok(line);
            };
            mv = next.mv;
        }
    }

    /// Writes the `info` line of a move; `sum` is the weight of all moves.
    fn list(
        &mut self,
        pos: &VariantPosition,
        mv: &TreeMove,
        number: usize,
        line: &[String],
        sum: u64,
    ) -> Result<()> {
        let (length, pv) = (line.len(), line.join(" "));
        let Some(stats) = mv.stats else {
            let weight = mv.weight;
            let percent = weight as f64 * 100.0 / sum.max(1) as f64;
            self.say(&format!(
                "info depth 1 seldepth {length} multipv {number} nodes {weight} pv {pv}"
            ))?;
            let mv = uci(pos, mv.mv);
            return self.inform(&format!("{mv} has {percent:.1} % of the weight"));
        };
        let (cp, [wins, draws, losses], games) = (centipawns(stats), wdl(stats), stats.games());
        self.say(&format!(
            "info depth 1 seldepth {length} multipv {number} score cp {cp} wdl {wins} {draws} {losses} nodes {games} pv {pv}"
        ))
    }

    fn inform(&mut self, text: &str) -> Result<()> {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        self.say(&format!("info string {text}"))
    }

    fn say(&mut self, line: &str) -> Result<()> {
        write_line(&mut self.output, line)
    }
}

/// Adds `listed` to the number of a variation.
fn renumbered(line: &str, listed: usize) -> String {
    let mut words: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
    let is_info = words.first().is_some_and(|word| word == "info");
    let end = words
        .iter()
        .position(|word| word == "string" || word == "pv");
    let at = words.iter().position(|word| word == "multipv");
    match at.filter(|at| end.is_none_or(|end| *at < end)) {
        Some(at) if is_info => {
            if let Some(number) = words.get_mut(at + 1)
                && let Ok(old) = number.parse::<usize>()
            {
                *number = old.saturating_add(listed).to_string();
            }
        }
        _ if is_info && end.is_some_and(|end| words[end] == "pv") => {
            words.insert(1, format!("multipv {}", listed + 1));
        }
        _ => {}
    }
    words.join(" ")
}
