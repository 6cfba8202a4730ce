//! Writes games in the export format of the PGN standard. In this format, the tags of the seven-tag roster come first,
//! moves are written in standard SAN, and lines have fewer than 80 characters.

use super::{
    GameReader, GameResult, GameWriter, Token,
    play::start_of,
    tag_text,
    variations::{OpenLines, Step},
    visit::Annotated,
};
use crate::chess::position::{Keyed, PieceLetters, Variant, move_number, san, san_of};

/// The tags that every game in PGN's export format has, in this order. Each name is followed by the value of an unknown
/// tag.
const ROSTER: [(&str, &str); 7] = [
    ("Event", "?"),
    ("Site", "?"),
    ("Date", "????.??.??"),
    ("Round", "?"),
    ("White", "?"),
    ("Black", "?"),
    ("Result", "*"),
];

/// The tags that determine the starting position and the rules of a game. The moves cannot be read without them.
const OF_START: [&str; 3] = ["Variant", "SetUp", "FEN"];

/// The maximum width in bytes of a line in PGN's export format.
const MAX_LINE_WIDTH: usize = 79;

/// Options for exporting a game as PGN: what is left out, and which tags are added.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct ExportFormat {
    /// Whether comments are left out.
    pub no_comments: bool,
    /// Whether variations are left out.
    pub no_variations: bool,
    /// Whether numeric annotations such as `$1` are left out.
    pub no_nags: bool,
    /// Whether the commands `[%clk]` and `[%emt]` are removed from comments.
    pub no_clocks: bool,
    /// Whether the command `[%eval]` is removed from comments.
    pub no_evals: bool,
    /// Whether all tags are left out except the seven-tag roster and the tags that determine the starting position.
    pub roster_only: bool,
    /// Whether the `ECO` tag is set to the code of the opening that the moves lead to.
    pub add_eco: bool,
    /// Whether the tags `Opening` and `Variation` are set to the names of the opening that the moves lead to.
    pub add_opening: bool,
    /// Whether the `PlyCount` tag is set to the number of half-moves.
    pub add_ply_count: bool,
}

/// Properties of a game from which [`ExportFormat`] adds tags.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ExportFacts {
    /// The ECO code, the family and the variation of the opening.
    pub opening: Option<[&'static str; 3]>,
    pub plies: usize,
    pub result: GameResult,
    /// The language of the piece letters in the text of the game.
    pub letters: PieceLetters,
}

impl ExportFormat {
    /// Returns `true` if exporting a game requires its opening, because a tag for the opening is added.
    pub(crate) fn needs_openings(&self) -> bool {
        self.add_eco || self.add_opening
    }

    /// Reads the game at the start of `text`, and returns it in PGN's export format, followed by a blank line.
    /// `untagged` is the variant of games without a `Variant` tag. `facts` contains the properties that may be added as
    /// tags.
    pub(crate) fn write(&self, text: &[u8], untagged: Variant, facts: &ExportFacts) -> Vec<u8> {
        let mut reader = GameReader::new(text)
            .with_variations(!self.no_variations)
            .with_untagged_variant(untagged);
        reader.next_game();
        let mut out = Vec::with_capacity(text.len() + 64);
        for (name, value) in self.tags(&reader, facts) {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            out.extend(format!("[{name} \"{value}\"]\n").into_bytes());
        }
        out.push(b'\n');
        let mut out = GameWriter::new(out).with_width(MAX_LINE_WIDTH);
        let written = self.write_moves(&mut reader, facts, &mut out);
        written.expect("memory takes all");
        out.into_inner()
    }

    /// Returns the names and values of the tags to write, in this order. If a tag occurs several times in the game,
    /// uses its last value.
    fn tags(&self, reader: &GameReader<'_>, facts: &ExportFacts) -> Vec<(String, String)> {
        let tags = reader.tags();
        let mut others: Vec<(String, String)> = Vec::new();
        let mut set = |name: &str, value: String| {
            others.retain(|(known, _)| known != name);
            others.push((name.to_owned(), value));
        };
        for tag in tags.iter() {
            let name = String::from_utf8_lossy(tag.name);
            if !self.roster_only || OF_START.contains(&&*name) {
                set(&name, unescaped(&tag_text(tag.value)));
            }
        }
        if let Some([eco, family, variation]) = facts.opening {
            if self.add_eco {
                set("ECO", eco.to_owned());
            }
            if self.add_opening {
                set("Opening", family.to_owned());
                set("Variation", variation.to_owned());
            }
        }
        // The variant may come from an option of this run, which readers of the file do not have.
        if tags.untagged != Variant::Standard && tags.named_variant() == Ok(tags.untagged) {
            set("Variant", tags.untagged.name().to_owned());
        }
        if self.add_ply_count {
            set("PlyCount", facts.plies.to_string());
        }
        others.retain(|(name, value)| name != "Variation" || !value.is_empty());
        others.retain(|(name, _)| !ROSTER.iter().any(|(known, _)| known == name));
        others.sort_by(|(a, _), (b, _)| a.cmp(b));
        let roster = ROSTER.iter().map(|(name, unknown)| {
            let value = match *name {
                "Result" => facts.result.token().to_owned(),
                name => match tags.get(name.as_bytes()) {
                    Some(value) if !value.trim_ascii().is_empty() => unescaped(&tag_text(value)),
                    _ => (*unknown).to_owned(),
                },
            };
            ((*name).to_owned(), value)
        });
        roster.chain(others).collect()
    }

    fn write_moves(
        &self,
        reader: &mut GameReader<'_>,
        facts: &ExportFacts,
        out: &mut GameWriter<Vec<u8>>,
    ) -> std::io::Result<()> {
        let start = start_of(reader.tags())
            .ok()
            .map(|(_, start)| Keyed::new(start));
        let mut lines = OpenLines::of_game(start).with_letters(facts.letters);
        let mut needs_number = true;
        reader.return_to_comments();
        loop {
            let token = match reader.next_annotated() {
                Annotated::Comment(comment) => {
                    let comment = self.comment(comment);
                    if !comment.is_empty() {
                        out.words(&format!("{{{comment}}}"))?;
                        needs_number = true;
                    }
                    continue;
                }
                Annotated::Nag(nag) => {
                    if !self.no_nags {
                        out.words(&nag.to_string())?;
                    }
                    continue;
                }
                Annotated::Token(token) => token,
            };
            let is_main_line = lines.depth() == 0;
            // The main line of a game that can be read has unreadable words only where its tags end.
            if is_main_line && matches!(token, Token::Unreadable { .. }) {
                continue;
            }
            // Where castling is not legal, `0-0` as the last word is the result: both sides lost.
            let is_result = is_main_line && reader.is_double_loss(token.text());
            match lines.step(token) {
                Step::Illegal if is_result => break,
                Step::Played { before, mv } => {
                    let pos = before.position();
                    let number = move_number(pos);
                    if needs_number || !number.contains("..") {
                        out.words(number.trim_end())?;
                    }
                    out.words(&san(pos, mv).to_string())?;
                    needs_number = false;
                }
                Step::NullMove => out.words("--")?,
                Step::EndOfGame => break,
                Step::Illegal | Step::NotPlayed | Step::TooDeep => match token {
                    Token::BeginVariation => out.open()?,
                    Token::EndVariation => out.close(),
                    Token::NullMove { .. } => out.words("--")?,
                    _ => match san_of(token.text()) {
                        Some(san) => out.words(&san.to_string())?,
                        None => out.words(&tag_text(token.text()).replace(' ', ""))?,
                    },
                },
                Step::BeginVariation => {
                    out.open()?;
                    needs_number = true;
                }
                Step::EndVariation => {
                    out.close();
                    needs_number = true;
                }
            }
        }
        out.end_with(facts.result.token())
    }

    /// Returns the text of a comment to write: without the commands that are left out, such as `[%clk 0:02:59]`, and
    /// with single blanks between words.
    fn comment(&self, comment: &[u8]) -> String {
        if self.no_comments {
            return String::new();
        }
        // A comment up to the end of a line may contain a closing brace. An opening brace could make a comment that is
        // written on several lines look unclosed.
        let mut text = tag_text(comment).replace('{', "(").replace('}', ")");
        let commands = [
            (self.no_clocks, "[%clk "),
            (self.no_clocks, "[%emt "),
            (self.no_evals, "[%eval "),
        ];
        for (_, command) in commands.iter().filter(|(is_left_out, _)| *is_left_out) {
            text = without_command(&text, command);
        }
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Replaces each command in a comment that begins with `command`, such as `[%clk `, with a blank.
fn without_command(text: &str, command: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, from)) = rest.split_once(command)
        && let Some((_, after)) = from.split_once(']')
    {
        kept.push_str(before);
        kept.push(' ');
        rest = after;
    }
    kept + rest
}

/// Removes the backslashes that protect quotes and backslashes in the value of a tag.
fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('\\', Some(next @ ('"' | '\\'))) => {
                text.push(*next);
                chars.next();
            }
            _ => text.push(char),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(text: &str, format: ExportFormat) -> String {
        let facts = ExportFacts {
            opening: None,
            plies: 4,
            result: GameResult::WhiteWins,
            letters: PieceLetters::English,
        };
        let written = format.write(text.as_bytes(), Variant::Standard, &facts);
        String::from_utf8(written).unwrap()
    }

    const GAME: &str = "[Site \"x \\\"y\\\"\"]\n[White \"A\"]\n[Annotator \"B\"]\n[Event \"\"]\n\n{first} 1. e2-e4 e5 $1 \
        (1... c5 {[%clk 0:01:00] a   b} 2. Ng1f3!? (2. Nc3)) 2. Qh5?! {[%eval 0.1] [%emt 1]} ; rest\n2... Ke7 1-0";

    #[test]
    fn games_are_written_as_the_standard_says() {
        let all = export(GAME, ExportFormat::default());
        assert_eq!(
            all,
            "[Event \"?\"]\n[Site \"x \\\"y\\\"\"]\n[Date \"????.??.??\"]\n[Round \"?\"]\n[White \"A\"]\n[Black \"?\"]\n\
             [Result \"1-0\"]\n[Annotator \"B\"]\n\n{first} 1. e4 e5 $1 (1... c5 {[%clk 0:01:00] a b} 2. Nf3 $5 (2. Nc3)) 2. Qh5 $6\n\
             {[%eval 0.1] [%emt 1]} {rest} 2... Ke7 1-0\n\n"
        );
        // What was written is written again without a change.
        assert_eq!(export(&all, ExportFormat::default()), all);
        let bare = ExportFormat {
            no_comments: true,
            no_variations: true,
            no_nags: true,
            roster_only: true,
            add_ply_count: true,
            ..ExportFormat::default()
        };
        let bare = export(GAME, bare);
        assert!(
            bare.ends_with("[Result \"1-0\"]\n[PlyCount \"4\"]\n\n1. e4 e5 2. Qh5 Ke7 1-0\n\n"),
            "{bare}"
        );
        let times = ExportFormat {
            no_clocks: true,
            no_evals: true,
            ..ExportFormat::default()
        };
        let times = export(GAME, times);
        assert!(times.contains("{a b}") && !times.contains('%'), "{times}");
    }

    #[test]
    fn lines_are_short_and_moves_stay_the_same() {
        let word = "word ".repeat(60);
        let game = format!(
            "1. e4 {{{word}}} e5 (1... d5 2. -- d4 (2... c5)) (1... Ke7 2. d4 Ke3) 2. Nf3 1-0"
        );
        let written = export(&game, ExportFormat::default());
        assert!(written.lines().all(|line| line.len() < 80), "{written}");
        assert_eq!(export(&written, ExportFormat::default()), written);
        let joined = written.replace('\n', " ");
        assert!(
            joined.contains("(1... d5 2. -- d4 (2... c5))")
                || joined.contains("(1... d5 -- d4 (c5))"),
            "{written}"
        );
    }
}
