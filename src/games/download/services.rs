//! The requests for games that each website supports, and the meaning of the answers. They are documented at
//! <https://lichess.org/api> and <https://www.chess.com/news/view/published-data-api>.

use serde_json::Value;
use ureq::http::HeaderMap;

use super::{
    Account, Download,
    client::{PGN, RequestFailure, ServiceClient},
    collection::{Arrival, DAY, month_of, seconds_of},
    completed::Marks,
};
use crate::{
    error::Result,
    games::{pgn::Speed, selection::RatedStatus},
};

/// The earliest time that Lichess accepts as a limit for games, in seconds since 1 January 1970. The first games at
/// Lichess were played on this day.
const LICHESS_START: i64 = 1_356_998_401;

/// The games that are requested from Lichess.
struct LichessGames {
    /// The earliest starting time, in seconds since 1 January 1970.
    since: Option<i64>,
    speeds: Option<Vec<Speed>>,
    arrival: Arrival,
}

impl Download {
    /// Downloads the games of `account`, which is `accounts[number]`, from Lichess. The oldest game comes first. If the number of games is limited, the
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
        self.expect_games(number, profile["count"]["all"].as_u64())?;
        let selection = &self.options.selection;
        let since = selection.since.and_then(|date| seconds_of(date, false));
        let until = self.completed_until(number)?;
        let (arrival, since) = match (self.options.max, since, until) {
            (Some(_), since, _) => (Arrival::NewestFirst, since),
            // Within this day, a long game may have ended after the last download.
            (None, None, Some(until)) => (Arrival::Complete, Some(until - DAY)),
            (None, since, _) => (Arrival::Complete, since),
        };
        let wanted = LichessGames {
            since,
            speeds: selection.speed.clone(),
            arrival,
        };
        self.lichess_stream(number, account, &mut client, wanted)?;
        let speeds = selection
            .speed
            .as_deref()
            .unwrap_or(&[Speed::Correspondence]);
        if arrival == Arrival::Complete
            && until.is_some()
            && speeds.contains(&Speed::Correspondence)
        {
            // Games by correspondence may have begun years before they ended.
            let wanted = LichessGames {
                since: None,
                speeds: Some(vec![Speed::Correspondence]),
                arrival: Arrival::OldestFirst,
            };
            self.lichess_stream(number, account, &mut client, wanted)?;
        }
        Ok(())
    }

    /// Downloads the games of a Lichess account that `wanted` describes. If the connection breaks, repeats the request
    /// as long as each answer contains further games.
    fn lichess_stream(
        &self,
        number: usize,
        account: &Account,
        client: &mut ServiceClient<'_>,
        wanted: LichessGames,
    ) -> Result<()> {
        // The starting time of the last received game.
        let mut last = None;
        loop {
            let path = self.lichess_path(account, &wanted, last);
            let mut receive = |text: &[u8]| {
                let added = self.add(number, text, wanted.arrival)?;
                last = added.time.or(last);
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
                client.has_sent_games_before(&failure);
            }
            client.wait(failure)?;
        }
    }

    /// Returns the path and the query string of a request for the games of an account. `last` is the starting time of
    /// the last game received, in seconds since 1 January 1970. Games that started at this time are sent again, and are
    /// recognized by their URLs.
    fn lichess_path(&self, account: &Account, wanted: &LichessGames, last: Option<i64>) -> String {
        let selection = &self.options.selection;
        let mut query = vec![("opening", "true".to_owned())];
        for (name, is_wanted) in [
            ("clocks", self.options.clocks),
            ("evals", self.options.evals),
        ] {
            query.push((name, is_wanted.to_string()));
        }
        let milliseconds = |seconds: i64| (seconds.max(LICHESS_START) * 1000).to_string();
        let is_backwards = wanted.arrival == Arrival::NewestFirst;
        let since = last.filter(|_| !is_backwards).or(wanted.since);
        if let Some(since) = since {
            query.push(("since", milliseconds(since)));
        }
        let until = selection.until.and_then(|date| seconds_of(date, true));
        if let Some(until) = last.filter(|_| is_backwards).or(until) {
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
        if let Some(speeds) = &wanted.speeds {
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

    /// Downloads the games of `account`, which is `accounts[number]`, from Chess.com, month by month. Each answer
    /// contains the games of one month. The oldest month comes first. If the number of games is limited, the newest
    /// month comes first instead.
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
        self.expect_games(number, None)?;
        let since = self.options.selection.since;
        let first = since.and_then(|date| seconds_of(date, false)).map(month_of);
        let completed = self
            .collected
            .with(|games| Ok(games.completed(number).clone()))?;
        // The addresses in the list may name any host, so only the months are used.
        let list = list["archives"].as_array().map(Vec::as_slice);
        let list = list.unwrap_or_default().iter().filter_map(Value::as_str);
        let mut months: Vec<(u16, u8)> = list.filter_map(month_of_address).collect();
        months.sort_unstable();
        // A month contains the games that ended in it, which may have begun long before.
        months.retain(|month| first.is_none_or(|first| first <= *month));
        if self.options.max.is_none() {
            // Only the newest of the received months can have further games.
            let newest = completed.months.keys().next_back().cloned();
            months.retain(|month| {
                let month = month_name(*month);
                newest.as_ref() == Some(&month) || !completed.months.contains_key(&month)
            });
        }
        if self.options.max.is_some() {
            months.reverse();
        }
        for month in months {
            let received = self.received(number)? as u64;
            if self.options.max.is_some_and(|max| received >= max) {
                break;
            }
            self.month(number, account, &mut client, month)?;
        }
        Ok(())
    }

    /// Downloads the games that `account`, which is `accounts[number]`, played in a month. If this month was downloaded
    /// before, asks Chess.com to send the games only if the month has changed since.
    fn month(
        &self,
        number: usize,
        account: &Account,
        client: &mut ServiceClient<'_>,
        month: (u16, u8),
    ) -> Result<()> {
        let name = account.name().to_ascii_lowercase();
        let date = month_name(month);
        let path = format!("/pub/player/{name}/games/{date}/pgn");
        let marks = self
            .collected
            .with(|games| Ok(games.completed(number).months.get(&date).cloned()))?;
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
            let mut receive = |text: &[u8]| self.add(number, text, Arrival::OldestFirst).map(drop);
            let outcome = client.get(&path, PGN, &headers).and_then(|answer| {
                match answer.status().as_u16() {
                    200 => {
                        new_marks = marks_of(answer.headers());
                        client.games(answer, &mut receive)
                    }
                    304 if !headers.is_empty() => {
                        new_marks = marks.clone();
                        Ok(())
                    }
                    status => Err(RequestFailure::Broken(format!(
                        "Chess.com lists the month {date}, but answered with the status {status}"
                    ))),
                }
            });
            match outcome {
                Ok(()) => {
                    client.has_succeeded();
                    if new_marks != marks && self.options.max.is_none() {
                        self.collected.with(|games| {
                            games.complete_month(number, date, new_marks);
                            Ok(())
                        })?;
                    }
                    return Ok(());
                }
                Err(failure) => {
                    if self.received(number)? > before {
                        client.has_sent_games_before(&failure);
                    }
                    client.wait(failure)?;
                }
            }
        }
    }

    /// Tells the progress meter how many games of `accounts[number]` will be received, if this is known. `all` is the
    /// number of all games of the account, or `None` if it is unknown.
    fn expect_games(&self, number: usize, all: Option<u64>) -> Result<()> {
        let old = self.collected.with(|games| Ok(games.old_games(number)))?;
        let max = self.options.max.unwrap_or(u64::MAX);
        if let Some(all) = all.filter(|_| self.options.selection.is_empty()) {
            self.meter.add_total(all.saturating_sub(old).min(max));
        }
        Ok(())
    }

    fn completed_until(&self, number: usize) -> Result<Option<i64>> {
        self.collected
            .with(|games| Ok(games.completed(number).until))
    }

    fn received(&self, number: usize) -> Result<usize> {
        self.collected.with(|games| Ok(games.received(number)))
    }
}

/// Returns a month as it is written in the URLs of Chess.com, such as `2024/05`.
fn month_name((year, month): (u16, u8)) -> String {
    format!("{year:04}/{month:02}")
}

/// Returns the month at the end of a URL, such as `https://api.chess.com/pub/player/NAME/games/2024/05`.
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
