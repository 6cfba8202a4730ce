//! Reads files with an evaluation on each line: EPD files, and the file of evaluations that Lichess publishes.
//!
//! [`BatchRead`] is the result of reading a batch of games, lines or records.

use std::borrow::Cow;

use serde::Deserialize;
use shakmaty::{Chess, Position};

use super::{
    EvalsReport,
    layout::{Eval, EvalRecord, RankedBytes, Score, eval_key},
};
use crate::{
    chess::position::{LineError, Rules, from_text, is_epd_comment, operand, parse_fen, write_epd},
    games::pgn::UnknownVariants,
    provenance::shortened,
};

/// The format of a text file in which each line contains a position and its evaluation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum LineFormat {
    /// An EPD with the operation `ce` or `dm`, whose score is from the point of view of the side to move. The
    /// operations `acd` and `acn` are optional.
    Epd,
    /// A line of Lichess's file of evaluations, `{"fen": "...", "evals": [...]}`. The scores are from White's point of
    /// view.
    Lichess,
}

impl LineFormat {
    /// Detects the format of `text` from its first line that is neither empty nor a comment. Returns `None` if the
    /// format of this line is unknown.
    pub(super) fn of(text: &[u8]) -> Option<LineFormat> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let line = lines.find(|line| !is_epd_comment(line))?;
        if line.starts_with(b"{\"") {
            return Some(LineFormat::Lichess);
        }
        let board = line
            .split(|byte| byte.is_ascii_whitespace() || *byte == b';')
            .next()?;
        let slashes = board.iter().filter(|byte| **byte == b'/').count();
        (slashes == 7).then_some(LineFormat::Epd)
    }
}

/// Reads the evaluations in `text`, a batch of lines in the format `format`. Stores `origin`, the number that
/// identifies their source, in each evaluation. Skips empty lines and comments.
pub(super) fn read_lines(format: LineFormat, text: &[u8], origin: u8) -> BatchRead {
    let mut read = BatchRead::default();
    let mut start = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let offset = start;
        start += line.len();
        let line = line
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(line)
            .trim_ascii();
        if !is_epd_comment(line) {
            let found = std::str::from_utf8(line)
                .map_err(|_| "not UTF-8".to_owned())
                .and_then(|line| match format {
                    LineFormat::Epd => of_epd(line, origin),
                    LineFormat::Lichess => of_lichess(line, origin),
                });
            match found {
                Ok(Some(record)) => read.records.push(record.to_ranked()),
                Ok(None) => read.ignored += 1,
                Err(reason) => read.reject(offset, reason),
            }
        }
        read.entries += 1;
    }
    read
}

/// The base of the numbers by which the EPD operation `ce` encodes mates. The number is `CE_MATE_BASE` - 2N if the side
/// to move mates in N moves, and 2N + 1 - `CE_MATE_BASE` if it is mated in N moves. Other values are scores in
/// centipawns.
const CE_MATE_BASE: i64 = 32768;

/// The maximum number of moves to a mate that the EPD operation `ce` can express.
const MAX_MATE_MOVES: i64 = 383;

/// Reads an evaluation from `line`, an EPD. Stores `origin`, the number that identifies the evaluation's source, in the
/// record. Returns `None` if the EPD contains no evaluation. The error is a message that describes what cannot be read.
fn of_epd(line: &str, origin: u8) -> Result<Option<EvalRecord>, String> {
    let (pos, operations) = split_epd(line)?;
    let score = match (number(operations, "dm")?, number(operations, "ce")?) {
        (Some(moves), _) => Score::mate(moves),
        (None, Some(ce)) => of_ce(ce),
        (None, None) => None,
    };
    let Some(score) = score else {
        return Ok(None);
    };
    let eval = Eval {
        score: score.seen_from(pos.turn()),
        depth: number(operations, "acd")?.map_or(0, |depth: u64| depth.min(255) as u8),
        nodes: number(operations, "acn")?.unwrap_or(0),
        origin,
    };
    record(&pos, eval).map(Some)
}

/// Converts the operand of the EPD operation `ce` to a score. The operand and the score are both from the point of view
/// of the side to move. Returns `None` if the operand means that the side to move is already checkmated.
fn of_ce(ce: i64) -> Option<Score> {
    const MATED: i64 = 1 - CE_MATE_BASE;
    match ce {
        ce if (CE_MATE_BASE - 2 * MAX_MATE_MOVES..CE_MATE_BASE).contains(&ce) => {
            Score::mate((CE_MATE_BASE - ce + 1) / 2)
        }
        ce if (MATED..=MATED + 2 * MAX_MATE_MOVES).contains(&ce) => Score::mate((MATED - ce) / 2),
        _ => Some(Score::centipawns(ce)),
    }
}

/// Finds an opcode, such as `acd`, in the operations of an EPD, and parses the number after it. Returns `None` if
/// `operations` does not contain the opcode. The error is a message for the user.
fn number<T: std::str::FromStr>(operations: &str, opcode: &str) -> Result<Option<T>, String> {
    let operand = operand(operations, opcode);
    let number = operand.map(|operand| {
        operand
            .parse()
            .map_err(|_| format!("{opcode} \"{}\" is not a number", quoted(operand)))
    });
    number.transpose()
}

/// Shortens a string for an error message: returns its first 40 characters, with special characters escaped.
pub(super) fn quoted(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

/// Splits `line` after its first `words` words. Returns the text up to the last of these words, and the rest of the
/// line. The rest is empty if the line has no more words.
fn after_words(line: &str, words: usize) -> (&str, &str) {
    let mut rest = line;
    for _ in 0..words {
        rest = rest.trim_start();
        rest = &rest[rest.find(char::is_whitespace).unwrap_or(rest.len())..];
    }
    line.split_at(line.len() - rest.len())
}

/// Parses the position at the start of `line`, an EPD or a FEN. Returns the position, and the operations that
/// follow it. The position may have any form that [`from_text`] accepts.
fn split_epd(line: &str) -> Result<(Chess, &str), String> {
    // A semicolon may directly follow the position, as in `w KQkq - 0 1;D1 20`.
    if let Some((position, operations)) = line.split_once(';')
        && position.split_whitespace().count() >= 4
        && let Ok(pos) = parse_fen(position)
    {
        return Ok((pos, operations));
    }
    let (position, operations) = after_words(line, 4);
    let problem = match parse_fen(position) {
        Ok(pos) => return Ok((pos, without_counters(operations))),
        Err(problem) => problem,
    };
    // If fields are missing, the operations follow fewer than four words.
    (1..=4)
        .rev()
        .find_map(|words| {
            let (position, operations) = after_words(line, words);
            let operations = without_counters(operations).trim_start();
            if position.contains(';') || !are_operations(operations) {
                return None;
            }
            let pos = from_text(Some(position), None).ok()?;
            Some((pos, operations))
        })
        .ok_or_else(|| problem_of(problem))
}

/// Returns `true` if `text` can be the operations of an EPD that has fewer than four fields. This is the case if `text`
/// is empty, or if it ends with a semicolon and its first word looks like an opcode. An opcode begins with a lower-case
/// letter and has at least two characters. If it consists of a letter and a digit, the letter must be `c` or `v`,
/// because any other could be a misspelled square such as `e9`.
fn are_operations(text: &str) -> bool {
    let opcode = text.split_whitespace().next().unwrap_or_default();
    let is_opcode = match opcode.as_bytes() {
        [letter, digit] if digit.is_ascii_digit() => b"cv".contains(letter),
        [letter, _, ..] => letter.is_ascii_lowercase(),
        _ => false,
    };
    text.is_empty() || (is_opcode && text.ends_with(';'))
}

/// Removes the half-move clock and the move number of a FEN from the start of `operations`. Either of them may be a
/// number, or `-` or `?` if it is unknown. If `operations` belongs to an EPD, which has neither, it is returned
/// unchanged.
fn without_counters(operations: &str) -> &str {
    let (counters, rest) = after_words(operations, 2);
    let are_counters = counters
        .split_whitespace()
        .all(|word| matches!(word, "-" | "?") || word.bytes().all(|byte| byte.is_ascii_digit()));
    if are_counters { rest } else { operations }
}

fn record<P: Rules>(pos: &P, eval: Eval) -> Result<EvalRecord, String> {
    let record = EvalRecord::new(pos, eval_key(pos), eval);
    record.ok_or_else(|| "a position with more than 32 pieces".to_owned())
}

/// A line of the evaluations file that Lichess publishes. Each line of this file is a JSON object.
#[derive(Deserialize)]
struct LichessLine<'a> {
    #[serde(borrow)]
    fen: Cow<'a, str>,
    evals: Vec<LichessEval>,
}

#[derive(Deserialize)]
struct LichessEval {
    pvs: Vec<LichessLineScore>,
    knodes: u64,
    depth: u64,
}

impl LichessEval {
    fn nodes(&self) -> u64 {
        self.knodes.saturating_mul(1000)
    }
}

#[derive(Deserialize)]
struct LichessLineScore {
    cp: Option<i64>,
    mate: Option<i64>,
}

/// Reads a line of the evaluations file that Lichess publishes. Returns the position with its deepest evaluation, or
/// `None` if the line contains no evaluation. The score is that of the first variation, which is the best one. Stores
/// `origin`, the number that identifies the evaluation's source, in the record. The error is a message that describes
/// what cannot be read.
fn of_lichess(line: &str, origin: u8) -> Result<Option<EvalRecord>, String> {
    let line: LichessLine<'_> = serde_json::from_str(line).map_err(|err| err.to_string())?;
    let pos = from_text(Some(&line.fen), None).map_err(problem_of)?;
    let deepest = line
        .evals
        .iter()
        .max_by_key(|eval| Eval::thoroughness(eval.depth.min(255) as u8, eval.nodes()));
    let Some((eval, first)) = deepest.and_then(|eval| Some((eval, eval.pvs.first()?))) else {
        return Ok(None);
    };
    let score = match (first.mate, first.cp) {
        (Some(moves), _) => Score::mate(moves),
        (None, centipawns) => centipawns.map(Score::centipawns),
    };
    let eval = score.map(|score| Eval {
        score,
        depth: eval.depth.min(255) as u8,
        nodes: eval.nodes(),
        origin,
    });
    eval.map(|eval| record(&pos, eval)).transpose()
}

/// Reads only the position from `line`, which has the format `format`.
///
/// # Errors
///
/// Returns the reason if the position cannot be read.
pub(super) fn position_of(format: LineFormat, line: &[u8]) -> Result<Chess, String> {
    #[derive(Deserialize)]
    struct LichessPosition<'a> {
        #[serde(borrow)]
        fen: Cow<'a, str>,
    }
    let line = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?;
    match format {
        LineFormat::Epd => split_epd(line).map(|(pos, _)| pos),
        LineFormat::Lichess => {
            let line: LichessPosition<'_> =
                serde_json::from_str(line).map_err(|err| err.to_string())?;
            from_text(Some(&line.fen), None).map_err(problem_of)
        }
    }
}

/// Returns the error message for a FEN that cannot be read because of `err`. If the position belongs to another
/// variant, the message says that only standard chess is supported.
fn problem_of(err: LineError) -> String {
    match (err.part_of_other_variant(), err) {
        (Some((part, variant)), LineError::OtherVariant { fen, .. }) => {
            format!(
                "FEN \"{fen}\": the {part} are those of {variant}, but a store of evaluations contains only standard \
                 chess"
            )
        }
        (_, err) => err.to_string(),
    }
}

/// Appends a position and its evaluation to `text` as a line of EPD.
pub(super) fn write_eval_epd(pos: &Chess, eval: Eval, text: &mut Vec<u8>) {
    write_epd(pos, text);
    let score = eval.score.seen_from(pos.turn());
    let ce = match (score.as_mate(), score.as_centipawns()) {
        (Some(moves), _) => {
            let moves = i64::from(moves).clamp(-MAX_MATE_MOVES, MAX_MATE_MOVES);
            let ce = if moves > 0 {
                CE_MATE_BASE
            } else {
                1 - CE_MATE_BASE
            };
            ce - 2 * moves
        }
        (None, centipawns) => centipawns.unwrap_or_default().into(),
    };
    let mut operations = format!(" acd {}; acn {}; ce {ce};", eval.depth, eval.nodes);
    if let Some(moves) = score.as_mate().filter(|moves| *moves > 0) {
        operations.push_str(&format!(" dm {moves};"));
    }
    text.extend_from_slice(operations.as_bytes());
    text.push(b'\n');
}

/// The maximum length, in characters, of the reason why an entry is rejected. The reason may quote a line of up to 16
/// MiB, so it is shortened.
pub(super) const MAX_REASON_LENGTH: usize = 300;

/// The result of reading a batch of games, lines or records: the evaluations, and the numbers of entries that were
/// skipped.
#[derive(Default)]
pub(super) struct BatchRead {
    pub records: Vec<RankedBytes>,
    /// The number of games, lines or records in the batch.
    pub entries: u64,
    pub filtered: u64,
    /// The games among `filtered` whose variant is unknown.
    pub unknown_variants: UnknownVariants,
    pub ignored: u64,
    pub rejected: u64,
    /// The first rejected entries. Each element contains the number of the entry in the batch, the offset in bytes in
    /// the batch, and the reason.
    pub described: Vec<(u64, usize, String)>,
}

impl BatchRead {
    /// Counts the current game, line or record as rejected. Also stores `reason` and `offset`, unless the maximum
    /// number of rejected entries is already stored. `offset` is the offset in the batch at which the fault or the
    /// faulty line begins.
    pub(super) fn reject(&mut self, offset: usize, reason: String) {
        self.rejected += 1;
        if self.described.len() < EvalsReport::MAX_DESCRIBED {
            let reason = shortened(&reason, MAX_REASON_LENGTH);
            self.described.push((self.entries, offset, reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BLACK: &str = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq";

    fn eval(line: &str) -> Result<Option<(String, u8, u64)>, String> {
        let format = LineFormat::of(line.as_bytes()).unwrap();
        let record = match format {
            LineFormat::Epd => of_epd(line, 0),
            LineFormat::Lichess => of_lichess(line, 0),
        };
        Ok(record?.map(|EvalRecord { eval, .. }| (eval.score.to_string(), eval.depth, eval.nodes)))
    }

    #[test]
    fn epds_are_seen_from_the_side_to_move() {
        for (operations, score, depth, nodes) in [
            ("ce 35;", "-0.35", 0, 0),
            (
                "acd 20; acn 12345678901; ce -120; pv e5;",
                "+1.20",
                20,
                12_345_678_901,
            ),
            ("ce +7; id \"ce 99;\"; acd 999;", "-0.07", 255, 0),
            ("dm 3; ce 10;", "#-3", 0, 0),
            ("ce 32766;", "#-1", 0, 0),
            ("ce -32765;", "#1", 0, 0),
            ("ce 31999;", "-319.99", 0, 0),
            ("ce 32002;", "#-383", 0, 0),
            ("ce -32001;", "#383", 0, 0),
            ("0 1 ce 35;", "-0.35", 0, 0),
            ("ce 99999;", "-320.00", 0, 0),
        ] {
            let line = format!("{BLACK} - {operations}");
            assert_eq!(
                eval(&line),
                Ok(Some((score.to_owned(), depth, nodes))),
                "{line}"
            );
        }
        for operations in ["", "bm e5;", "ce -32767;", "id \"ce 5;\";"] {
            assert_eq!(
                eval(&format!("{BLACK} - {operations}")),
                Ok(None),
                "{operations}"
            );
        }
        for line in ["ce 0.35;", "ce;", "ce 5; acd x;"] {
            assert!(eval(&format!("{BLACK} - {line}")).is_err(), "{line}");
        }
        assert!(eval(&format!("{BLACK} z9 ce 5;")).is_err());
    }

    #[test]
    fn fields_may_be_missing_and_spelled_otherwise() {
        let board = BLACK.strip_suffix(" b KQkq").unwrap();
        for position in [
            BLACK.to_owned(),
            format!("{board} b"),
            format!("{board} black KQkq -"),
            format!("{board} b KQkq \u{2013}"),
            format!("{board} b KQkq - - ?"),
            format!("{board} b 0 1"),
        ] {
            let expected = Ok(Some(("-0.35".to_owned(), 9, 0)));
            let line = format!("{position} acd 9; ce 35;");
            assert_eq!(eval(&line), expected, "{line}");
            let line = format!("{position} ce 35; acd 9;");
            assert_eq!(eval(&line), expected, "{line}");
            let here = position_of(LineFormat::Epd, line.as_bytes()).unwrap();
            let there = from_text(None, Some("e4")).unwrap();
            assert_eq!(
                crate::chess::position::key(&here),
                crate::chess::position::key(&there)
            );
            let line = format!(
                r#"{{"fen":"{position}","evals":[{{"pvs":[{{"cp":-35}}],"knodes":0,"depth":9}}]}}"#
            );
            assert_eq!(eval(&line), expected, "{line}");
        }
        assert_eq!(eval(board).unwrap(), None);
    }

    #[test]
    fn lichess_sees_from_white_and_the_deepest_counts() {
        let line = r#"{"fen":"FEN -","evals":[{"pvs":[{"cp":311,"line":"g5d7 f8g7"},{"cp":292,"line":"g5f7"}],"knodes":206765,"depth":36},
            {"pvs":[{"mate":-12,"line":"g5e6"}],"knodes":92958,"depth":34,"new":[1]}]}"#;
        let line = line.replace('\n', "").replace("FEN", BLACK);
        assert_eq!(eval(&line), Ok(Some(("+3.11".to_owned(), 36, 206_765_000))));
        let deeper = line.replace("\"depth\":34", "\"depth\":340");
        assert_eq!(
            eval(&deeper),
            Ok(Some(("#-12".to_owned(), 255, 92_958_000)))
        );
        let none = line.replace("\"cp\":311,", "");
        assert_eq!(eval(&none), Ok(None));
        for bad in [
            line.replace("36", "-1"),
            line.replace("KQkq", "x"),
            line.replace(']', ""),
        ] {
            assert!(eval(&bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn an_epd_says_what_was_written(code in -31_999..=31_999i64, mate in -383..=383i64, black: bool, depth: u8, nodes: u64) {
            let line = if black { "e4" } else { "e4 e5" };
            let pos = crate::chess::position::from_text(None, Some(line)).unwrap();
            for score in [Some(Score::centipawns(code)), Score::mate(mate)].into_iter().flatten() {
                let eval = Eval { score, depth, nodes, origin: 0 };
                let mut text = Vec::new();
                write_eval_epd(&pos, eval, &mut text);
                text.splice(text.len() - 1.., *b" bm e4;\n");
                let read = of_epd(std::str::from_utf8(&text).unwrap(), 0).unwrap();
                prop_assert_eq!(read.unwrap().eval, eval);
            }
        }

        #[test]
        fn any_line_is_read_or_refused(line in "\\PC{0,40}|([1-8pPkK/]{1,20} [wb] [-KQkq]{1,4} - (ce|dm|acd|\"|;|[0-9-]){0,9})") {
            let _ = of_epd(&line, 0);
            let _ = of_lichess(&line, 0);
        }
    }
}
