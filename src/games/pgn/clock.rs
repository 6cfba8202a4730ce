//! Calculates the time that players take for their moves from the clock times in the comments of a game.

use memchr::memmem;
use shakmaty::Color;

use super::{Tags, values::millis};

/// The clocks of a game, from which the time of each move is calculated.
///
/// A comment after a move contains one of two times: the time that the move took, as in `[%emt 0:00:05]`, or the time
/// left on the clock, as in `[%clk 0:02:59.5]`. In the second case, the move took the time left before it, plus the
/// increment, minus the time left after it. This requires a `TimeControl` tag such as `180+2` or, with several periods,
/// `40/5400+30:1800+30`. At the end of a period, the time of the next period is added to the clock. If the tag does not
/// say after which move a period ends, it ends after the first move that leaves more time than before.
///
/// The time of a side's first move remains unknown in two cases. If all of the base time is left, the clock did not
/// run. If less than three quarters are left, the side did not begin with the base time. For example, a player on
/// Lichess who goes berserk begins with only half of the base time.
#[derive(Debug)]
pub(crate) struct Clocks {
    /// The periods of the time control. Empty if the time control is unknown.
    periods: Vec<ControlPeriod>,
    /// The index in `periods` of the period in which each side currently plays.
    period: [usize; 2],
    /// The increment of each side, in seconds per move.
    increments: [f64; 2],
    moves: [u32; 2],
    /// The time left on the clocks of White and Black in seconds, if it is known.
    left: [Option<f64>; 2],
}

/// A period of a time control, such as `40/5400+30`.
#[derive(Copy, Clone, Debug)]
struct ControlPeriod {
    /// The number of the last move of the period, or `None` if the time control does not state it.
    last_move: Option<u32>,
    /// The time that is added to the clock when the period begins, in seconds.
    base: f64,
    /// The time that is added to the clock after each move, in seconds.
    increment: f64,
}

/// The times in the comments after one move, in seconds: the time left on the clock, and the time that the move took.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct CommentTimes {
    pub left: Option<f64>,
    taken: Option<f64>,
}

impl CommentTimes {
    /// Reads the times in a comment, such as `[%clk 0:02:59]`, and stores them in `self`. Ignores a time that does not
    /// consist of hours, minutes and seconds.
    pub fn read(&mut self, comment: &[u8]) {
        self.left = time_after(comment, b"[%clk ").or(self.left);
        self.taken = time_after(comment, b"[%emt ").or(self.taken);
    }
}

impl Clocks {
    /// Creates the clocks of a game before its first move. Reads the base time and the increment from the
    /// `TimeControl` tag. Without a readable tag, the time of a move is known only if a comment states it directly.
    pub fn new(tags: &Tags<'_>) -> Clocks {
        let periods = tags.get(b"TimeControl").and_then(periods);
        let periods = periods.unwrap_or_default();
        let first = periods.first();
        Clocks {
            left: [first.map(|period| period.base); 2],
            increments: [first.map_or(0.0, |period| period.increment); 2],
            period: [0; 2],
            moves: [0; 2],
            periods,
        }
    }

    /// Updates the clock of `side` after the next move of this side. `stated` contains the times in the comments after
    /// the move. Returns the number of seconds that the move took, or `None` if this time is unknown.
    pub fn next(&mut self, side: Color, stated: CommentTimes) -> Option<f64> {
        let side = usize::from(side.is_black());
        let before = std::mem::replace(&mut self.left[side], stated.left);
        self.moves[side] += 1;
        let Some(&ControlPeriod { base, .. }) = self.periods.first() else {
            return stated.taken;
        };
        let is_first = self.moves[side] == 1;
        if is_first && stated.left.is_some_and(|left| left <= base / 2.0) {
            self.increments[side] = 0.0;
        }
        let taken = self.time_by_clock(side, before, stated.left);
        if stated.taken.is_some() {
            return stated.taken;
        }
        let did_run = !is_first || stated.left != before && stated.left? >= 0.75 * base;
        taken.filter(|_| did_run)
    }

    /// Returns the time that a move of `side` took, calculated from the times left on the clock before and after the
    /// move. Begins the next period of this side if the move ends the current one.
    fn time_by_clock(
        &mut self,
        side: usize,
        before: Option<f64>,
        left: Option<f64>,
    ) -> Option<f64> {
        let period = self.periods[self.period[side]];
        let next = self.periods.get(self.period[side] + 1).copied();
        let ends_by_number = period.last_move == Some(self.moves[side]);
        let taken = before
            .zip(left)
            .map(|(before, left)| before + self.increments[side] - left);
        // Allow for rounding errors, because tenths of a second are not exact in binary.
        let is_possible = |taken: &f64| *taken > -1e-6;
        let ends_by_clock =
            period.last_move.is_none() && taken.is_some_and(|taken| !is_possible(&taken));
        let added = match next {
            Some(next) if ends_by_number || ends_by_clock => {
                self.period[side] += 1;
                self.increments[side] = next.increment;
                next.base
            }
            _ => 0.0,
        };
        let taken = taken.map(|taken| taken + added);
        taken.filter(is_possible).map(|taken| taken.max(0.0))
    }
}

/// Parses the value of a `TimeControl` tag, such as `180+2` or `40/5400+30:1800+30`. Returns its periods, or `None` if
/// the value is unreadable.
fn periods(tag: &[u8]) -> Option<Vec<ControlPeriod>> {
    let text = std::str::from_utf8(tag).ok()?.trim();
    let mut moves = 0_u32;
    let period = |text: &str| {
        let (count, time) = match text.split_once('/') {
            Some((count, time)) => (
                Some(count.parse::<u32>().ok().filter(|count| *count > 0)?),
                time,
            ),
            None => (None, text),
        };
        let (base, increment) = time.split_once('+').unwrap_or((time, "0"));
        let seconds = |text| Some(millis(text)? as f64 / 1000.0);
        let last_move = match count {
            Some(count) => {
                moves = moves.checked_add(count)?;
                Some(moves)
            }
            None => None,
        };
        Some(ControlPeriod {
            last_move,
            base: seconds(base).filter(|base| *base > 0.0)?,
            increment: seconds(increment)?,
        })
    };
    text.split(':').map(period).collect()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Finds `command`, such as `[%clk `, in a comment, and parses the time after it. Returns the time in seconds.
/// Returns `None` if the comment does not contain the command, or if the time is malformed.
fn time_after(comment: &[u8], command: &[u8]) -> Option<f64> {
    let rest = &comment[memmem::find(comment, command)? + command.len()..];
    let end = memchr::memchr(b']', rest)?;
    seconds(std::str::from_utf8(&rest[..end]).ok()?.trim())
}

/// Parses a time of hours, minutes and seconds, such as `1:02:03.5`, and returns it in seconds. Returns `None` for
/// any other text. A time such as `2:03` is rejected because its unit is unclear.
fn seconds(text: &str) -> Option<f64> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, "0"));
    if ![hours, minutes, whole, part].into_iter().all(is_digits) || hours.len() > 4 {
        return None;
    }
    let [hours, minutes, seconds]: [f64; 3] = [
        hours.parse().ok()?,
        minutes.parse().ok()?,
        seconds.parse().ok()?,
    ];
    (minutes < 60.0 && seconds < 60.0).then_some(3600.0 * hours + 60.0 * minutes + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::games::pgn::GameReader;

    /// Returns the time of each move of a game with a time control and a comment after each move.
    fn taken(control: &str, comments: &[&str]) -> Vec<Option<f64>> {
        let text = format!("[TimeControl \"{control}\"]\n\n*");
        let mut game = GameReader::new(text.as_bytes());
        assert!(game.next_game());
        let mut clocks = Clocks::new(game.tags());
        let sides = [Color::White, Color::Black].into_iter().cycle();
        let next = |(comment, side): (&&str, _)| {
            let mut said = CommentTimes::default();
            said.read(comment.as_bytes());
            clocks.next(side, said)
        };
        comments.iter().zip(sides).map(next).collect()
    }

    #[test]
    fn clocks_give_the_times_of_moves() {
        let lichess = [
            "[%clk 0:03:00]",
            "[%clk 0:03:00]",
            "[%clk 0:02:59.5]",
            "[%eval 0.1] [%clk 0:02:30]",
        ];
        assert_eq!(
            taken("180+2", &lichess),
            [None, None, Some(2.5), Some(32.0)]
        );
        assert_eq!(taken("180", &lichess), [None, None, Some(0.5), Some(30.0)]);
        // Engines play with fractions of seconds.
        let engines = ["[%clk 0:00:07.9]", "", "[%clk 0:00:07.98]"];
        let found = taken("8.5+0.08", &engines);
        let hundredths = |seconds: &Option<f64>| seconds.map(|seconds| (seconds * 100.0).round());
        let found: Vec<_> = found.iter().map(hundredths).collect();
        assert_eq!(found, [Some(68.0), None, Some(0.0)]);
        let long = [
            "[%clk 1:29:30]",
            "[%clk 1:30:10]",
            "[%clk 1:00:00]",
            "no clock",
            "x",
            "[%clk 1:00:00]",
        ];
        assert_eq!(
            taken("5400+30", &long),
            [Some(60.0), Some(20.0), Some(1800.0), None, None, None]
        );
        let elapsed = ["[%emt 0:00:05]", "[%clk 0:00:09] [%emt 0:01:00.5]"];
        for control in [
            "-",
            "?",
            "40/7200:",
            "0/7200",
            "1/",
            "40/7200:-",
            "*60",
            "180+",
            "+2",
            "0+1",
            "180+2+1",
            "1e3",
        ] {
            assert_eq!(taken(control, &elapsed), [Some(5.0), Some(60.5)]);
            assert_eq!(taken(control, &lichess), [None; 4], "{control}");
        }
        // White goes berserk. Black begins with more than the base time.
        let odd = [
            "[%clk 0:01:30]",
            "[%clk 0:02:00]",
            "[%clk 0:01:25]",
            "[%clk 0:01:57]",
        ];
        assert_eq!(taken("180+2", &odd), [None, None, Some(5.0), Some(5.0)]);
        // Someone added time during the game, or the time control is wrong.
        assert_eq!(
            taken("60", &["[%clk 0:00:50]", "", "[%clk 0:01:10]"]),
            [Some(10.0), None, None]
        );
    }

    #[test]
    fn the_time_of_the_next_period_is_added() {
        let left = |times: &[&str]| {
            let comments: Vec<String> = times.iter().map(|time| format!("[%clk {time}]")).collect();
            // Black has no clock.
            comments
                .into_iter()
                .flat_map(|white| [white, String::new()])
                .collect::<Vec<_>>()
        };
        let white = |control: &str, times: &[&str]| {
            let comments = left(times);
            let comments: Vec<&str> = comments.iter().map(String::as_str).collect();
            taken(control, &comments)
                .into_iter()
                .step_by(2)
                .collect::<Vec<_>>()
        };
        // 30 minutes are added to the clock when it has run out, or at the time control.
        let times = ["1:29:30", "0:10:00", "0:38:00", "0:38:20", "1:08:40"];
        assert_eq!(
            white("5400+30:1800+30", &times),
            [Some(60.0), Some(4800.0), Some(150.0), Some(10.0), None]
        );
        assert_eq!(
            white("5400+30:1800+30:1800+40", &times),
            [
                Some(60.0),
                Some(4800.0),
                Some(150.0),
                Some(10.0),
                Some(10.0)
            ]
        );
        assert_eq!(
            white("3/5400+30:1800", &times),
            [Some(60.0), Some(4800.0), Some(150.0), None, None]
        );
        // The move that ends the period takes longer than the time that is added.
        assert_eq!(
            white(
                "2/7200:1/3600:900",
                &["1:50:00", "1:50:00", "1:00:00", "1:10:00"]
            ),
            [Some(600.0), Some(3600.0), Some(3900.0), None]
        );
        assert_eq!(
            white("1/86400", &["23:00:00", "22:00:00"]),
            [Some(3600.0), Some(3600.0)]
        );
    }

    #[test]
    fn malformed_times_are_ignored() {
        for (text, expected) in [
            ("0:03:00.5", 180.5),
            ("10:00:00", 36000.0),
            ("00:00:09", 9.0),
        ] {
            assert_eq!(seconds(text), Some(expected));
        }
        for text in [
            "3:00",
            "180",
            "0:60:00",
            "0:00:60",
            "-0:00:01",
            "0:1e1:00",
            "0::1",
            "0:00:0x",
            "99999:00:00",
            "0:00:.5",
            "0:00:5.",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
        for comment in [
            "[%clk 0:00:01",
            "[%clk0:00:01]",
            "[%clock 0:00:01]",
            "clk 0:00:01",
        ] {
            assert_eq!(time_after(comment.as_bytes(), b"[%clk "), None, "{comment}");
        }
    }
}
