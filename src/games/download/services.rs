//! The requests that each service offers, and what their answers mean. They are documented at
//! <https://lichess.org/api> and <https://www.chess.com/news/view/published-data-api>.

use serde_json::Value;
use ureq::http::HeaderMap;

use super::{
    Account, Download,
    client::{PGN, ServiceClient},
    collection::{DAY, month_of, seconds_of},
    months::Marks,
};
use crate::{
    error::Result,
    games::{
        pgn::{Date, Speed},
        selection::RatedStatus,
    },
};

/// The earliest time that Lichess accepts as a limit, in seconds since 1 January 1970. Its first games are from this day.
const LICHESS_START: i64 = 1_356_998_401;

impl Download {
    /// Downloads the games of an account at Lichess. The oldest game comes first. If the number of games is limited, the
    /// newest game comes first instead.
    pub(super) fn lichess_games(
        &self,
        number: usize,
        account: &Account,
        mut client: ServiceClient<'_>,
    ) -> Result<()> {
        let (status, profile) = client.document(&format!("/api/user/{}", account.name()))?;
        if status != 200 {
            return Err(client.refusal("lichess.org has no account with this name"));
        }
        if profile["disabled"] == Value::Bool(true) {
            return Err(
                client.refusal("this account is closed, and lichess.org does not show its games")
            );
        }
        let known = self.expect_games(number, profile["count"]["all"].as_u64())?;
        let mut since = self.since(known);
        let mut last = None;
        loop {
            let path = self.lichess_path(account, since);
            let mut receive = |text: &[u8]| {
                let added = self.add(number, text)?;
                last = added.time.max(last);
                Ok(())
            };
            let before = self.received(number)?;
            let answer = client.get(&path, PGN, &[]);
            let outcome = answer.and_then(|answer| match answer.status().as_u16() {
                200 => client.games(answer, &mut receive),
                _ => Err(client
                    .refusal("lichess.org has no account with this name")
                    .into()),
            });
            let Err(failure) = outcome else {
                return Ok(());
            };
            if self.received(number)? > before {
                client.has_succeeded();
            }
            client.wait(failure)?;
            // The games that began in this second are sent again, and recognized by their addresses.
            if self.options.max.is_none() {
                since = last.or(since);
            }
        }
    }

    /// Returns the path and the query string that request the games of an account. `since` is the earliest starting time
    /// of the games, in seconds since 1 January 1970.
    fn lichess_path(&self, account: &Account, since: Option<i64>) -> String {
        let selection = &self.options.selection;
        let mut query = vec![("opening", "true".to_owned())];
        for (name, is_wanted) in [
            ("clocks", self.options.clocks),
            ("evals", self.options.evals),
        ] {
            query.push((name, is_wanted.to_string()));
        }
        let milliseconds = |seconds: i64| (seconds.max(LICHESS_START) * 1000).to_string();
        if let Some(since) = since {
            query.push(("since", milliseconds(since)));
        }
        if let Some(until) = selection.until.and_then(|date| seconds_of(date, true)) {
            query.push(("until", milliseconds(until)));
        }
        let rated = |status| {
            selection
                .rated
                .as_ref()
                .is_none_or(|wanted| wanted.contains(&status))
        };
        match (rated(RatedStatus::Rated), rated(RatedStatus::Casual)) {
            (true, false) => query.push(("rated", "true".to_owned())),
            (false, true) => query.push(("rated", "false".to_owned())),
            _ => {}
        }
        if let Some(speeds) = &selection.speed {
            let speeds: Vec<&str> = speeds.iter().copied().map(Speed::name).collect();
            query.push(("perfType", speeds.join(",")));
        }
        match self.options.max {
            Some(max) => query.push(("max", max.to_string())),
            None => query.push(("sort", "dateAsc".to_owned())),
        }
        let query: Vec<String> = query
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        format!("/api/games/user/{}?{}", account.name(), query.join("&"))
    }

    /// Downloads the games of an account at Chess.com, which sends the games of a month in one answer. The oldest month
    /// comes first. If the number of games is limited, the newest month comes first instead.
    pub(super) fn chess_com_games(
        &self,
        number: usize,
        account: &Account,
        mut client: ServiceClient<'_>,
    ) -> Result<()> {
        let name = account.name().to_ascii_lowercase();
        let (status, list) = client.document(&format!("/pub/player/{name}/games/archives"))?;
        match status {
            200 => {}
            410 => {
                return Err(
                    client.refusal("this account is closed, and Chess.com no longer has its games")
                );
            }
            _ => return Err(client.refusal("Chess.com has no account with this name")),
        }
        let known = self.expect_games(number, None)?;
        let first = self.since(known).map(month_of);
        let last = self
            .options
            .selection
            .until
            .and_then(|date| seconds_of(date, true));
        let last = last.map(|end| month_of(end - 1));
        // The addresses in the list may name any host, so only the months are used.
        let list = list["archives"].as_array().map(Vec::as_slice);
        let list = list.unwrap_or_default().iter().filter_map(Value::as_str);
        let mut months: Vec<(u16, u8)> = list.filter_map(month_of_address).collect();
        months.sort_unstable();
        months.retain(|month| {
            first.is_none_or(|first| first <= *month) && last.is_none_or(|last| *month <= last)
        });
        if self.options.max.is_some() {
            months.reverse();
        }
        for (year, month) in months {
            let received = self.received(number)? as u64;
            if self.options.max.is_some_and(|max| received >= max) {
                break;
            }
            self.month(number, account, &mut client, (year, month))?;
        }
        Ok(())
    }

    /// Downloads the games of a month. If the month was downloaded before, asks Chess.com to send the games only if a game
    /// has been added to the month since.
    fn month(
        &self,
        number: usize,
        account: &Account,
        client: &mut ServiceClient<'_>,
        (year, month): (u16, u8),
    ) -> Result<()> {
        let name = account.name().to_ascii_lowercase();
        let key = format!("{account} {}", self.options.selection.option_text());
        let key = key.trim_end().to_ascii_lowercase();
        let date = format!("{year:04}/{month:02}");
        let path = format!("/pub/player/{name}/games/{date}/pgn");
        let marks = self
            .collected
            .with(|games| Ok(games.months.get(&key, &date).cloned()))?;
        let marks = marks
            .filter(|_| self.options.max.is_none())
            .unwrap_or_default();
        let mut headers = Vec::new();
        headers.extend(marks.etag.as_deref().map(|etag| ("if-none-match", etag)));
        headers.extend(
            marks
                .last_modified
                .as_deref()
                .map(|date| ("if-modified-since", date)),
        );
        loop {
            let before = self.received(number)?;
            let mut new_marks = Marks::default();
            let mut receive = |text: &[u8]| self.add(number, text).map(drop);
            let outcome = client.get(&path, PGN, &headers).and_then(|answer| {
                match answer.status().as_u16() {
                    200 => {
                        new_marks = marks_of(answer.headers());
                        client.games(answer, &mut receive)
                    }
                    // The month is unchanged, or has no games any more.
                    _ => Ok(()),
                }
            });
            match outcome {
                Ok(()) => {
                    client.has_succeeded();
                    if new_marks != Marks::default() && self.options.max.is_none() {
                        self.collected.with(|games| {
                            games.months.set(&key, date, new_marks);
                            Ok(())
                        })?;
                    }
                    return Ok(());
                }
                Err(failure) => {
                    if self.received(number)? > before {
                        client.has_succeeded();
                    }
                    client.wait(failure)?;
                }
            }
        }
    }

    /// Returns the earliest starting time of the games to request, in seconds since 1 January 1970. This is the date that
    /// the user gave. Without such a date, it is a day before `newest`, the starting time of the newest game in the file:
    /// a long game that began within this day may have ended after the last download.
    fn since(&self, newest: Option<i64>) -> Option<i64> {
        let since: Option<Date> = self.options.selection.since;
        match (
            since.and_then(|date| seconds_of(date, false)),
            self.options.max,
        ) {
            (None, None) => newest.map(|newest| newest - DAY),
            (since, _) => since,
        }
    }

    /// Tells the meter how many games will be received, if this is known. `all` is the number of games of the account, or
    /// `None` if the service does not say it. Returns the starting time of the account's newest game in the file.
    fn expect_games(&self, number: usize, all: Option<u64>) -> Result<Option<i64>> {
        let (known, newest) = self.collected.with(|games| Ok(games.known(number)))?;
        let max = self.options.max.unwrap_or(u64::MAX);
        if let Some(all) = all.filter(|_| self.options.selection.is_empty()) {
            self.meter.add_total(all.saturating_sub(known).min(max));
        }
        Ok(newest)
    }

    fn received(&self, number: usize) -> Result<usize> {
        self.collected.with(|games| Ok(games.received(number)))
    }
}

/// Returns the month at the end of an address, such as `https://api.chess.com/pub/player/NAME/games/2024/05`.
fn month_of_address(address: &str) -> Option<(u16, u8)> {
    let mut parts = address.trim_end_matches('/').rsplit('/');
    let (month, year) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let is_month = (1..=12).contains(&month) && (1970..=9999).contains(&year);
    is_month.then_some((year, month))
}

fn marks_of(headers: &HeaderMap) -> Marks {
    let text = |name: &str| {
        let value = headers.get(name)?.to_str().ok();
        value.map(str::to_owned)
    };
    Marks {
        etag: text("etag"),
        last_modified: text("last-modified"),
    }
}
