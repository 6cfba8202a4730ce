//! Query strings: splitting them into parameters, and parsing the values of parameters.

use super::refusal::Refusal;

/// The known parameters of a request. Each name occurs at most once.
///
/// ```
/// use polybook::serve::Parameters;
///
/// let parameters = Parameters::parse("fen=8/8+w&moves=99999999999&speeds[]=blitz")?;
/// assert_eq!(parameters.text("fen"), Some("8/8 w"));
/// assert_eq!(parameters.number("moves")?, Some(u32::MAX));
/// assert!(Parameters::parse("moves=1&moves=2").is_err());
/// # Ok::<(), polybook::serve::Refusal>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// The parameters of lists of games. Those before `moves` select a position and filter games.
    pub const OF_GAMES: [&str; 23] = [
        "variant",
        "fen",
        "play",
        "source",
        "since",
        "until",
        "speeds",
        "ratings",
        "modes",
        "player",
        "color",
        "opponent",
        "result",
        "eco",
        "opening",
        "event",
        "minPly",
        "duplicates",
        "moves",
        "skip",
        "limit",
        "sort",
        "fold",
    ];

    /// The parameters that lists of games do not have, but other routes do.
    pub const OF_OTHERS: [&str; 7] = [
        "topGames",
        "recentGames",
        "history",
        "text",
        "transpositions",
        "clocks",
        "legal",
    ];

    /// Parses a query string. Unknown parameters are ignored.
    ///
    /// # Errors
    ///
    /// Returns a refusal if a known parameter is given twice.
    pub fn parse(query: &str) -> Result<Parameters, Refusal> {
        let (of_games, of_others) = (Parameters::OF_GAMES, Parameters::OF_OTHERS);
        let is_known = |name: &str| of_games.contains(&name) || of_others.contains(&name);
        Ok(Parameters::split(query, is_known)?.0)
    }

    /// Parses a query string that may contain only the parameters in `own`.
    ///
    /// ```
    /// use polybook::serve::Parameters;
    ///
    /// let refusal = Parameters::parse_only("skip=7&limits=9", &["skip", "limit"]).unwrap_err();
    /// assert_eq!(refusal.text(), "limits: unknown parameter; this address has the parameters skip, limit");
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a refusal if another parameter is given, or if a parameter is given twice.
    pub fn parse_only(query: &str, own: &[&str]) -> Result<Parameters, Refusal> {
        let (found, others) = Parameters::split(query, |name| own.contains(&name))?;
        if others.is_empty() {
            return Ok(found);
        }
        let own = match own {
            [] => "no parameters".to_owned(),
            own => format!("the parameters {}", own.join(", ")),
        };
        let others = others.join(", ");
        let problem = format!("{others}: unknown parameter; this address has {own}");
        Err(Refusal::bad(problem))
    }

    /// Returns the known parameters, and the names of the others.
    fn split(
        query: &str,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<(Parameters, Vec<String>), Refusal> {
        let (mut found, mut others) = (Parameters::default(), Vec::new());
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if !is_known(&name) {
                others.push(name.into_owned());
            } else if found.text(&name).is_some() {
                return Err(Refusal::bad(format!("{name}: given twice")));
            } else {
                found.0.push((name.into_owned(), value.into_owned()));
            }
        }
        Ok((found, others))
    }

    /// Returns a copy without the parameter `name`.
    pub(super) fn without(&self, name: &str) -> Parameters {
        let others = self.0.iter().filter(|(known, _)| known != name);
        Parameters(others.cloned().collect())
    }

    /// Returns the text of a parameter, or `None` if it is not given.
    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    /// Returns the text of a parameter that must not be empty, or `None` if it is not given.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the text is empty.
    pub fn filled(&self, name: &str) -> Result<Option<&str>, Refusal> {
        match self.text(name) {
            Some("") => Err(Refusal::bad(format!("{name}: empty"))),
            text => Ok(text),
        }
    }

    /// Returns the number that a parameter contains, or `None` if it is not given. A number that is too large for `u32`
    /// becomes the largest one; routes have lower limits anyway.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the text does not consist of digits.
    pub fn number(&self, name: &str) -> Result<Option<u32>, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            let problem = format!("{name}: not a number from 0: \"{text}\"");
            return Err(Refusal::bad(problem));
        }
        Ok(Some(text.parse().unwrap_or(u32::MAX)))
    }

    /// Returns the boolean that a parameter contains, or `None` if it is not given. The words are `true`, `1`, `on`, `yes`
    /// and their opposites.
    ///
    /// # Errors
    ///
    /// Returns a refusal for any other text.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        self.choice(name, |text| match &*text.to_ascii_lowercase() {
            "true" | "1" | "on" | "yes" => Some(true),
            "false" | "0" | "off" | "no" => Some(false),
            _ => None,
        })
    }

    /// Returns the value that `parse` makes of a parameter's text, or `None` if the parameter is not given.
    ///
    /// # Errors
    ///
    /// Returns a refusal if `parse` returns `None`.
    pub fn choice<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let text = self.text(name);
        text.map(|text| known(name, text, parse)).transpose()
    }

    /// Returns the values of a list that is separated by commas, each converted by `parse`. Returns `None` if the parameter
    /// is not given, and an empty list for an empty text.
    ///
    /// # Errors
    ///
    /// Returns a refusal if `parse` returns `None` for a value.
    pub fn list<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<Vec<T>>, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let values = text.split(',').filter(|value| !value.is_empty());
        values
            .map(|value| known(name, value, &parse))
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

/// Parses a value of a parameter, or returns a refusal that names both.
fn known<T>(name: &str, text: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, Refusal> {
    parse(text).ok_or_else(|| Refusal::bad(format!("{name}: unknown value \"{text}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(query: &str) -> Parameters {
        Parameters::parse(query).unwrap()
    }

    #[test]
    fn unknown_parameters_are_ignored_and_known_ones_occur_once() {
        assert_eq!(
            parsed("speeds[]=blitz&speeds[]=rapid&x"),
            Parameters::default()
        );
        let err = Parameters::parse("fen=a&fen=a").unwrap_err();
        assert_eq!((err.status(), err.text()), (400, "fen: given twice"));
    }

    #[test]
    fn numbers_are_bounded_but_not_negative() {
        assert_eq!(parsed("moves=007").number("moves"), Ok(Some(7)));
        assert_eq!(
            parsed("moves=99999999999").number("moves"),
            Ok(Some(u32::MAX))
        );
        for query in [
            "moves=-1",
            "moves=",
            "moves=1e3",
            "moves=+1",
            "moves=%D9%A1",
        ] {
            assert_eq!(
                parsed(query).number("moves").unwrap_err().status(),
                400,
                "{query}"
            );
        }
    }

    #[test]
    fn flags_and_lists_are_parsed() {
        for (text, expected) in [("True", true), ("on", true), ("0", false), ("No", false)] {
            let query = format!("history={text}");
            assert_eq!(parsed(&query).flag("history"), Ok(Some(expected)));
        }
        assert!(parsed("history=maybe").flag("history").is_err());
        let digit = |text: &str| text.parse::<u8>().ok();
        assert_eq!(
            parsed("ratings=1,2").list("ratings", digit),
            Ok(Some(vec![1, 2]))
        );
        assert_eq!(parsed("ratings=").list("ratings", digit), Ok(Some(vec![])));
        assert_eq!(parsed("").list("ratings", digit), Ok(None));
        assert!(parsed("ratings=1,x").list("ratings", digit).is_err());
    }
}
