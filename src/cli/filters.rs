//! The options that filter games: one set for commands that read PGN, and one for commands that query an index.

use std::{
    marker::PhantomData,
    path::{Path, PathBuf},
};

use anyhow::bail;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches};
use polybook::{
    explorer::{Explorer, Line, MatchedNames, OtherStarts, Page, Query, Sort},
    index::Index,
    make_book::Totals,
    pgn::ConditionError,
    position::Variant,
    selection::{Duplicates, Evaluator, Field, Form, Selection, Spelling},
    storage::output::repeated,
};
use serde_json::{Value, json};
use shakmaty::{Color, variant::VariantPosition};

use super::{Context, index_cache::index_of, input::may_have_games, plural, usage::Usage};

/// The id of the clap group that contains the options for names of players and events. `--exact` can be given only
/// together with one of these options.
const NAMES: &str = "names";

/// The heading of the options that filter games, in the help of a command.
pub const GAMES: &str = "Which games count";

/// The set of conditions on games that a command offers as options.
pub trait Offered {
    fn offers(condition: &str) -> bool;

    /// Returns `true` if the command refuses an offered condition, with an error message that gives the reason. The help
    /// does not list this condition.
    fn refuses(_condition: &str) -> bool {
        false
    }
}

/// All conditions on games.
#[derive(Clone, Debug)]
pub struct AllConditions;

/// All conditions, for a command that reads games one by one and therefore refuses the condition on duplicates.
#[derive(Clone, Debug)]
pub struct OfEachGame;

/// All conditions except the color, for a command with an option of its own that names a color.
#[derive(Clone, Debug)]
pub struct WithoutColor;

/// All conditions except the colors and the names by color, for a command that reads games one by one and has options of
/// its own with these names.
#[derive(Clone, Debug)]
pub struct WithoutSides;

impl Offered for AllConditions {
    fn offers(condition: &str) -> bool {
        // No command chooses one of its sources.
        condition != "source"
    }
}

impl Offered for OfEachGame {
    fn offers(condition: &str) -> bool {
        AllConditions::offers(condition)
    }

    fn refuses(condition: &str) -> bool {
        condition == "duplicates"
    }
}

impl Offered for WithoutColor {
    fn offers(condition: &str) -> bool {
        AllConditions::offers(condition) && condition != "color"
    }
}

impl Offered for WithoutSides {
    fn offers(condition: &str) -> bool {
        WithoutColor::offers(condition) && !["white", "black"].contains(&condition)
    }

    fn refuses(condition: &str) -> bool {
        OfEachGame::refuses(condition)
    }
}

/// The options that say which games count.
#[derive(Clone, Debug)]
pub struct SelectionArgs<S = AllConditions> {
    given: Selection,
    offered: PhantomData<S>,
}

/// Creates the option for a condition.
fn option(field: &Field<'_>) -> Arg {
    let name = field.name;
    let parse = move |text: &str| match Selection::default().set(name, text) {
        Ok(()) => Ok(text.to_owned()),
        Err(err) if name == "position" => Err(format!("{err} (docs/search.md describes queries)")),
        Err(err) => Err(err.to_string()),
    };
    let arg = Arg::new(name)
        .long(name)
        .help(field.help)
        .help_heading(GAMES);
    if field.form == Form::Switch {
        let arg = arg.action(ArgAction::SetTrue);
        return if name == "exact" {
            arg.requires(NAMES)
        } else {
            arg
        };
    }
    let arg = arg
        .value_name(field.value_name)
        .value_parser(parse)
        // A range may begin with its upper bound, as in `-60`.
        .allow_hyphen_values(matches!(field.value_name, "LOW-HIGH" | "MIN-MAX"));
    match field.form {
        Form::List(default) => {
            let arg = arg.action(ArgAction::Append).value_delimiter(',');
            match default {
                Some(default) => arg
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value(default),
                None => arg,
            }
        }
        Form::Name => arg.group(NAMES),
        Form::Names => arg.group(NAMES).action(ArgAction::Append),
        form if form.is_repeated() => arg.action(ArgAction::Append),
        _ => arg,
    }
}

impl<S: Offered> Args for SelectionArgs<S> {
    fn augment_args(command: Command) -> Command {
        let mut selection = Selection::default();
        let fields = selection.fields();
        let fields = fields.iter().filter(|field| S::offers(field.name));
        let command = command.group(ArgGroup::new(NAMES).multiple(true));
        command.args(fields.map(|field| option(field).hide(S::refuses(field.name))))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Offered> FromArgMatches for SelectionArgs<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Selection::default();
        for field in Selection::default().fields() {
            let name = field.name;
            if !S::offers(name) {
                continue;
            }
            let values: Vec<String> = if field.form == Form::Switch {
                Vec::from_iter(matches.get_flag(name).then(|| "true".to_owned()))
            } else {
                matches
                    .get_many(name)
                    .into_iter()
                    .flatten()
                    .cloned()
                    .collect()
            };
            for value in values {
                given
                    .set(name, &value)
                    .expect("the value was parsed before");
            }
        }
        Ok(SelectionArgs {
            given,
            offered: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Converts the error about contradictory conditions to one that names the options of the command line.
fn contradiction(err: &ConditionError) -> Usage {
    Usage(match err {
        ConditionError::NeedsPlayer {
            condition: "result",
        } => "--result win or loss needs --player".to_owned(),
        ConditionError::NeedsPlayer { condition } => format!("--{condition} needs --player"),
        err => err.to_string(),
    })
}

impl<S> SelectionArgs<S> {
    /// Returns the filter for games that the options describe. Returns an error if the options contradict each other,
    /// because no game could pass them.
    pub fn selection(&self) -> Result<Selection, Usage> {
        self.given.check().map_err(|err| contradiction(&err))?;
        Ok(self.given.clone())
    }

    /// Returns the filter for games that the options describe, or `None` if the user gave none of them. In the games,
    /// the player of `--player` has the color `color`, and the player of `--opponent` the other color. Returns an error
    /// if the options contradict each other.
    pub fn for_side(&self, color: Color) -> Result<Option<Selection>, Usage> {
        let given = &self.given;
        if given.is_empty() {
            return Ok(None);
        }
        let (names, others, whose) = if given.player.is_empty() {
            (
                &given.opponent,
                color.fold_wb(&given.black, &given.white),
                "opponent",
            )
        } else {
            (
                &given.player,
                color.fold_wb(&given.white, &given.black),
                "player",
            )
        };
        if !names.is_empty() && !others.is_empty() {
            let side = if given.player.is_empty() {
                !color
            } else {
                color
            };
            return Err(Usage(format!(
                "--{whose} and --{side} both give the name of the {whose}: give all names with the same option"
            )));
        }
        let selection = given.for_side(color);
        selection.check().map_err(|err| contradiction(&err))?;
        Ok(Some(selection))
    }
}

impl<S> SelectionArgs<S> {
    /// Returns the filter for games that the options describe, for a query to an index. Returns an error if the options
    /// contradict each other, or if an index cannot apply one of them.
    pub fn for_index(&self) -> Result<Selection, Usage> {
        let selection = self.selection()?;
        let checked = selection.check_for_index();
        checked.map_err(|err| contradiction(&err))?;
        match selection.unanswerable(Evaluator::Index) {
            Some(unanswerable) => Err(Usage(format!(
                "{} does not apply to an index, which contains no {}: select the games with this option of make-book \
                 when you make an index or a book of PGN",
                Spelling::Option.of(unanswerable.condition),
                unanswerable.lacking
            ))),
            None => Ok(selection),
        }
    }

    /// Returns the filter for games that the options describe, for PGN games that are read one by one. Returns an error
    /// if the options contradict each other, or if one of them cannot be applied to such games.
    pub fn for_each_game(&self) -> Result<Selection, Usage> {
        let selection = self.selection()?;
        match selection.unanswerable(Evaluator::EachGame) {
            Some(unanswerable) => Err(Usage(format!(
                "{} does not apply to {}, which contain no {}",
                Spelling::Option.of(unanswerable.condition),
                unanswerable.by,
                unanswerable.lacking
            ))),
            None => Ok(selection),
        }
    }

    /// Returns the names that the user gave with `--player`.
    pub fn players(&self) -> &[String] {
        &self.given.player
    }

    /// Returns `true` if the user gave no option that selects games.
    pub fn are_none(&self) -> bool {
        self.given.is_empty()
    }

    /// Returns `true` if the user gave `--result`. The scores in the remaining games then say nothing about a player.
    pub fn select_by_result(&self) -> bool {
        !self.given.result.is_empty()
    }

    /// Returns `true` if the user gave `--player`.
    pub fn name_player(&self) -> bool {
        !self.given.player.is_empty()
    }

    /// Returns `true` if the user gave `--opponent`.
    pub fn name_opponent(&self) -> bool {
        !self.given.opponent.is_empty()
    }
}

/// Parses the name of a player or event. Returns an error if the text is blank, because a blank name would match
/// every name.
#[cfg(feature = "serve")]
pub fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("give at least one letter of the name".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Finds the games of `explorer` that match the query about the board in `filters`, if there is one. This replays the
/// games; a progress bar is shown.
pub fn search_board(
    explorer: &Explorer,
    filters: &Selection,
    context: Context,
) -> polybook::Result<()> {
    if filters.board_query().is_none() {
        return Ok(());
    }
    context.show_progress("replaying games", |meter| {
        explorer.search_board_while(filters, meter, &|| true)
    })
}

/// Reports the names in `filters` that occur in no game of `explorer`. Returns the names that match the filters.
/// `has_games` is `true` if at least one game passes the filters.
///
/// If no game passes, and none of the names in the filter by player, opponent or event occurs in a game, returns an
/// error that lists all unknown names. Otherwise, if the filter by player or by opponent contains several names, prints
/// a warning for each unknown name. Also prints a note if a name matches several players, or if names that may be other
/// spellings have more games.
pub fn check_names(
    explorer: &Explorer,
    filters: &Selection,
    has_games: bool,
    context: Context,
) -> anyhow::Result<MatchedNames> {
    if !has_games && explorer.unknown_name(filters)?.is_some() {
        let unknown = explorer.unknown_names(filters)?;
        let unknown: Vec<String> = unknown.iter().map(ToString::to_string).collect();
        return Err(anyhow::anyhow!("{}", unknown.join("; ")));
    }
    if filters.player.len() > 1 || filters.opponent.len() > 1 {
        for unknown in explorer.unknown_names(filters)? {
            context.say(&format!("warning: {unknown}\n"));
        }
    }
    let matched = explorer.matched_names(filters)?;
    context.warn(&matched.notes);
    Ok(matched)
}

/// The largest number of games in which [`say_duplicates`] searches for copies. The search compares all games, in parts of
/// this size, so it takes less than a second.
const MAX_COMPARED_GAMES: u64 = 1 << 19;

/// Prints how many of the games that answer `query` are copies of others, if the query names a player and counts each
/// copy. Prints nothing if there are more than [`MAX_COMPARED_GAMES`] games.
pub fn say_duplicates(
    explorer: &Explorer,
    query: &Query,
    context: Context,
) -> polybook::Result<()> {
    let filters = &query.filters;
    let is_large = explorer.game_count() > MAX_COMPARED_GAMES;
    if !filters.has_names() || is_large || filters.duplicates.is_some() || context.quiet {
        return Ok(());
    }
    let mut once = query.clone();
    once.filters.duplicates = Some(Duplicates::Once);
    let games = number_of_games(explorer, query)?;
    let copies = games - number_of_games(explorer, &once)?;
    if copies > 0 {
        context.say(&format!(
            "{copies} of these {} {} of others: count each game once with --duplicates once\n",
            plural(games, "game"),
            if copies == 1 {
                "is a copy"
            } else {
                "are copies"
            },
        ));
    }
    Ok(())
}

/// Returns the number of games that answer `query`.
fn number_of_games(explorer: &Explorer, query: &Query) -> polybook::Result<u64> {
    let page = Page {
        skip: 0,
        limit: 0,
        sort: Sort::Id,
        fold_matches: false,
    };
    explorer.game_numbers(query, &page).map(|(games, _)| games)
}

/// Adds the names of players that match the filters to a JSON document. Adds no field for a filter that the user did
/// not give.
pub fn add_matched(document: &mut Value, matched: &MatchedNames) {
    if !matched.players.is_empty() {
        document["matched_players"] = json!(matched.players);
    }
    if !matched.opponents.is_empty() {
        document["matched_opponents"] = json!(matched.opponents);
    }
}

/// Prints how many games pass the filters but do not begin in the starting position of `line`, and how to see them. Also
/// prints how many games of [other variants](say_other_variants) pass. Returns the number of games of the variant of
/// `line` with another starting position.
pub fn say_other_starts(
    explorer: &Explorer,
    line: &Line,
    filters: &Selection,
    context: Context,
) -> anyhow::Result<u64> {
    say_other_variants(explorer, line.variant(), filters, context)?;
    let others = explorer.other_starts(line, filters)?;
    Ok(say_others(explorer, others, "--fen", context))
}

/// If `variant` is standard chess, prints how many games of other variants pass the filters, and how to see them. Chess960
/// is not counted, because its games also count in the positions of standard chess that they reach.
fn say_other_variants(
    explorer: &Explorer,
    variant: Variant,
    filters: &Selection,
    context: Context,
) -> polybook::Result<()> {
    let has_others = explorer.variant() != Some(variant);
    if variant != Variant::Standard || !has_others || context.quiet {
        return Ok(());
    }
    let others = explorer.variants(filters)?.into_iter().flatten();
    let is_other = |name: &str| {
        let variant = name.parse::<Variant>();
        !matches!(variant, Ok(Variant::Standard | Variant::Chess960))
    };
    let others: Vec<(&str, u64)> = others.filter(|(name, _)| is_other(name)).collect();
    if !others.is_empty() {
        let listed = others.iter().map(|(name, games)| format!("{name} {games}"));
        context.say(&format!(
            "the answer leaves out {} of other variants ({}): choose a variant with --variant\n",
            plural(others.iter().map(|(_, games)| games).sum(), "game"),
            listed.collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(())
}

/// Prints how many games begin in another position than the one that a command has answered about, and that `option`
/// sets the position. Prints nothing if `others` is `None`. Returns the number of games.
pub fn say_others(
    explorer: &Explorer,
    others: Option<OtherStarts>,
    option: &str,
    context: Context,
) -> u64 {
    let Some(others) = others else { return 0 };
    let (games, begin) = (
        plural(others.games, "game"),
        if others.games == 1 { "begins" } else { "begin" },
    );
    // The tag cannot be read if the PGN file is gone.
    let text = explorer.text(others.first).unwrap_or_default();
    let fen = tag_value(&text, "FEN").map_or_else(
        || "the FEN of such a position".to_owned(),
        |fen| format!("\"{fen}\""),
    );
    context.say(&format!(
        "{games} {begin} in another position and {} only in the positions that {}: give such a position, for example \
         with {option} {fen}\n",
        if others.games == 1 { "counts" } else { "count" },
        if others.games == 1 { "it reaches" } else { "they reach" },
    ));
    others.games
}

/// Tells the user where the index ends, if the answer contains no games or if `pos` is at or after the end of the
/// index.
pub fn say_lacking(
    explorer: &Explorer,
    (filters, has_games): (&Selection, bool),
    pos: &VariantPosition,
    context: Context,
) {
    let is_after_end = explorer.max_ply_before(filters, pos).is_some();
    if let Some(line) = explorer.lacking_line(filters)
        && (!has_games || is_after_end)
    {
        context.say(&line);
    }
}

/// Adds the field `max_ply` to a JSON document: the last half-move that is indexed. Adds nothing if games are indexed to
/// their end.
pub fn add_max_ply(document: &mut Value, explorer: &Explorer, filters: &Selection) {
    if let Some(max_ply) = explorer.max_ply(filters) {
        document["max_ply"] = json!(max_ply);
    }
}

/// Returns the value of a tag in the PGN text of a game, or `None` if the game has no such tag, or a value that no FEN
/// has.
fn tag_value(text: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let (_, rest) = text.split_once(&format!("[{name} \""))?;
    let (value, _) = rest.split_once('"')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " /-[]~+".contains(c);
    value.chars().all(is_plain).then(|| value.to_owned())
}

/// Adds the field `other_starts` to a JSON document: the number of games that do not begin in the initial position. Adds
/// nothing if the number is 0.
pub fn add_other_starts(document: &mut Value, games: u64) {
    if games > 0 {
        document["other_starts"] = json!(games);
    }
}

/// Returns warnings about games that pass a filter of `query` only because a value is unknown: games without a known
/// date pass filters by date, and games with an unknown rating pass filters by rating.
pub fn passed_unknown(explorer: &Explorer, query: &Query) -> polybook::Result<Vec<String>> {
    let passed = |require: fn(&mut Selection)| {
        let mut required = query.clone();
        require(&mut required.filters);
        // An index of counts cannot distinguish games without a date or a rating.
        let source = query.filters.source.as_deref();
        if required.filters == query.filters || explorer.needs_all_games(source, "").is_some() {
            return Ok(0);
        }
        polybook::Result::Ok(
            number_of_games(explorer, query)? - number_of_games(explorer, &required)?,
        )
    };
    let totals = Totals {
        undated: passed(|filters| {
            filters.require_date |= filters.since.is_some() || filters.until.is_some();
        })?,
        unrated: passed(|filters| {
            filters.require_elo |= filters.min_elo.is_some() || filters.max_elo.is_some();
        })?,
        ..Totals::default()
    };
    Ok(totals.warnings().collect())
}

/// Opens indexes as the sources of one explorer, which answers queries from all of them together. For a PGN file, opens
/// its index in the user's cache, and first builds this index if it does not exist. A source is named after its
/// directory or file, without the extension.
pub fn explorer_of(indexes: &[impl AsRef<Path>], context: Context) -> anyhow::Result<Explorer> {
    if let Some(path) = repeated(indexes.iter().map(AsRef::as_ref)).next() {
        bail!(
            "{}: this source is given twice, so its games would count twice: give it once",
            path.display()
        );
    }
    let source = |path: &Path| {
        let name = path.file_stem().unwrap_or(path.as_os_str());
        anyhow::Ok((
            name.to_string_lossy().into_owned(),
            index_of(path, context)?,
        ))
    };
    let sources: anyhow::Result<Vec<_>> =
        indexes.iter().map(|path| source(path.as_ref())).collect();
    Ok(Explorer::open(sources?)?)
}

/// Opens the index in `indexes` if it is the only one and was made with `make-book --leveldb`. Returns `None` if there
/// are several indexes, or if the only one is an explorer index or a PGN file.
///
/// Returns an error if the index was made with `--leveldb` and the user gave filters, because only explorer indexes can
/// be filtered.
pub fn plain_index(indexes: &[PathBuf], filters: &SelectionArgs) -> anyhow::Result<Option<Index>> {
    let [path] = indexes else {
        return Ok(None);
    };
    if may_have_games(path)? {
        return Ok(None);
    }
    let index = Index::open(path)?;
    if index.kind().is_of_explorer() {
        return Ok(None);
    }
    if !filters.are_none() {
        return Err(needs_explorer(path).into());
    }
    Ok(Some(index))
}

/// Creates the error for a query that the index at the path `index` cannot answer, because it is not an explorer index.
/// Such an index is made with `make-book --explorer`.
pub fn needs_explorer(index: &Path) -> Usage {
    Usage(format!(
        "{}: this index was made with --leveldb, but this command needs an explorer's index: make an explorer's index \
         from the games with make-book --explorer DIR",
        index.display()
    ))
}
