//! Shows the moves of a book or an OOBS database in a position, with their weights.

use std::{cmp::Reverse, path::Path};

use polybook::{
    Error, FileKind,
    book::{Book, Scaling, Weights, seems_sorted, shares},
    evals::Eval,
    obs::{self, Obs},
    position::{Variant, fen_of, read_move},
    results::{Results, Wdl},
    storage::table::{Column, ColumnType},
    tree::{MoveSource, only_color},
};
use serde::Serialize;
use serde_json::json;
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use super::{
    Args, EVAL_COLUMNS, RESULTING_COLUMNS,
    results::{resulting_cells, resulting_headings},
    write,
};
use crate::cli::{
    Context, evals, key,
    position::{Searched, of_database},
    terminal::AnswerForm,
    usage::Usage,
};

/// A position with its moves in a book or database. If there are none, the text says why.
type PositionMoves = (VariantPosition, Vec<ShownMove>, &'static str);

/// Returns the text that `show` prints for the position `pos`, which has no moves in `source`. `variant` is the variant of
/// the position.
fn without_moves(
    source: &impl MoveSource,
    pos: &VariantPosition,
    variant: Variant,
) -> polybook::Result<&'static str> {
    let other = only_color(source, variant.start())?.filter(|color| *color != pos.turn());
    Ok(match other {
        Some(Color::White) => {
            "The book has no move here. It seems to contain only moves of White.\n"
        }
        Some(Color::Black) => {
            "The book has no move here. It seems to contain only moves of Black.\n"
        }
        None => "The book has no move here.\n",
    })
}

#[derive(Serialize)]
struct ShownMove {
    uci: String,
    /// The move in SAN, or `None` if the move is not legal in the position.
    san: Option<String>,
    weight: u16,
    /// The probability that a program which follows the weights plays the move, in percent. `None` if the move is
    /// illegal.
    probability: Option<f64>,
    learn: u32,
    #[serde(flatten)]
    games: Option<ShownGames>,
    /// The evaluation of the position after the move.
    #[serde(skip_serializing_if = "Option::is_none")]
    eval: Option<Eval>,
    /// The sum of the results of all moves of the position after the move, if the user asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    resulting: Option<Results>,
}

/// The results of the games in which a move was played, and whether a book may play the move. A [`ShownMove`] has this
/// value only if it comes from an OOBS database, because a book contains no results.
#[derive(Serialize)]
struct ShownGames {
    #[serde(flatten)]
    stats: Wdl,
    active: bool,
}

/// Prints the moves of a book or an OOBS database in a position. `argument` is the path that the user gave, and `file`
/// is the path from which it can be read.
pub fn run(
    args: &Args,
    form: AnswerForm,
    (argument, file): (&Path, &Path),
    context: Context,
) -> anyhow::Result<()> {
    let kind = FileKind::of(file)?;
    let (pos, mut moves, reason) = match kind {
        FileKind::Sqlite => in_database(args, argument, file)?,
        _ => in_book(args, argument, file)?,
    };
    let key = match key::book_key(&pos) {
        Ok(key) => Some(key),
        // A database identifies positions by their EPD, so the position needs no Polyglot key.
        Err(_) if kind == FileKind::Sqlite => None,
        Err(err) => return Err(err),
    };
    let legal = |mv: &ShownMove| mv.san.is_some().then_some(mv.weight.into());
    let weights: Vec<_> = moves.iter().map(legal).collect();
    for (mv, share) in moves.iter_mut().zip(shares(&weights)) {
        mv.probability = share;
    }
    let evals = args.evals.open()?;
    let mut eval = None;
    if let Some(evals) = &evals {
        eval = evals.of_position(&pos)?;
        for mv in &mut moves {
            if let Ok(legal) = read_move(&pos, mv.uci.as_bytes()) {
                mv.eval = evals.after(&pos, legal)?;
            }
        }
    }
    let mut document = json!({ "key": key, "fen": fen_of(&pos), "moves": moves });
    if let Some(eval) = eval {
        document["eval"] = json!(eval);
    }
    let mut columns = COLUMNS.to_vec();
    if kind == FileKind::Sqlite {
        columns.extend(RESULT_COLUMNS);
    }
    if evals.is_some() {
        columns.extend(EVAL_COLUMNS);
    }
    if args.resulting {
        columns.extend(RESULTING_COLUMNS);
    }
    let text = || {
        if moves.is_empty() {
            evals::line(eval) + reason
        } else {
            evals::line(eval) + &table(&moves, evals.is_some(), args.resulting)
        }
    };
    write(args, form, &document, columns, text, context)
}

/// The columns of a table of the moves of a book.
const COLUMNS: [Column; 5] = [
    Column::new("san", ColumnType::Text),
    Column::new("uci", ColumnType::Text),
    Column::new("weight", ColumnType::Integer),
    Column::new("probability", ColumnType::Number),
    Column::new("learn", ColumnType::Integer),
];

/// The additional columns for the moves of a database.
const RESULT_COLUMNS: [Column; 4] = [
    Column::new("wins", ColumnType::Integer),
    Column::new("draws", ColumnType::Integer),
    Column::new("losses", ColumnType::Integer),
    Column::new("active", ColumnType::Flag),
];

fn in_book(args: &Args, argument: &Path, file: &Path) -> anyhow::Result<PositionMoves> {
    Usage::refuse(
        args.resulting.then_some("--resulting"),
        "needs the results of games, but a book contains only weights: show an index, counts, an OOBS database or a PGN file",
    )?;
    let book = Book::open(file)?;
    // Looking up a position is a binary search, which does not find records that are out of order.
    if !seems_sorted(file)? {
        let problem = "this is not a Polyglot book, or the book is damaged: the keys are not in order; polybook verify \
                       lists the faults";
        return Err(Error::file(file, problem).into());
    }
    let variant = args.source.position.variant_of(book.variant()?);
    let mut own = book.variants()?;
    if own.is_empty() {
        own.push(Variant::Standard.name().to_owned());
    }
    variant.check_file(argument, &own)?;
    let searched = Searched {
        file: argument,
        only: book.variant()?.or(Some(Variant::Standard)),
    };
    let pos = args.source.position.position_in(variant, &searched)?;
    let moves = book.moves_of(&pos)?.into_iter().map(|entry| ShownMove {
        uci: entry.mv.uci(&pos),
        san: entry.mv.san(&pos),
        weight: entry.weight,
        probability: None,
        learn: entry.learn,
        games: None,
        eval: None,
        resulting: None,
    });
    let moves: Vec<ShownMove> = moves.collect();
    let reason = match moves[..] {
        [] if book.is_empty() => "The file is empty.\n",
        [] => without_moves(&book, &pos, variant)?,
        _ => "",
    };
    Ok((pos, moves, reason))
}

/// Returns the position that the options describe, and its moves in `file`, an SQLite database of opening moves. Each
/// move has the weight that it would have in a book made from the whole database. The list of moves is empty if the
/// database does not contain the position.
fn in_database(args: &Args, argument: &Path, file: &Path) -> anyhow::Result<PositionMoves> {
    let obs = Obs::open(file)?;
    let variant = of_database(argument, &obs, args.source.position.options.variant)?;
    let searched = Searched {
        file: argument,
        only: obs.info().variant.parse().ok(),
    };
    let pos = args.source.position.position_in(variant, &searched)?;
    let rows = obs.moves(&pos)?;
    let weights = Weights::default();
    let scaling = Scaling::new(obs.largest_weight(weights.factors)?);
    let moves = rows.into_iter().map(|row| {
        let weight = weights.weight(row.stats);
        // No book contains an inactive row, so its weight is not shown.
        let is_weighed = weight > 0 && row.is_active();
        let legal = obs::legal_move(&pos, &row.mv);
        let after = legal
            .and_then(|mv| mv.to_move(&pos))
            .filter(|_| args.resulting);
        let resulting = after.map(|mv| results_after(&obs, &pos, mv)).transpose()?;
        Ok(ShownMove {
            san: legal.and_then(|mv| mv.san(&pos)),
            weight: if is_weighed { scaling.apply(weight) } else { 0 },
            probability: None,
            learn: 0,
            games: Some(ShownGames {
                stats: row.stats,
                active: row.is_active(),
            }),
            // Databases of other programs spell castling in several ways.
            uci: legal.map_or(row.mv, |mv| mv.uci(&pos)),
            eval: None,
            resulting,
        })
    });
    let mut moves: Vec<ShownMove> = moves.collect::<polybook::Result<_>>()?;
    moves.sort_by_key(|mv| Reverse(mv.weight));
    let reason = match moves[..] {
        [] => without_moves(&obs, &pos, variant)?,
        _ => "",
    };
    Ok((pos, moves, reason))
}

/// Returns the sum of the results of all moves that the database contains in the position after the move `mv` in `pos`.
fn results_after(obs: &Obs, pos: &VariantPosition, mv: Move) -> polybook::Result<Results> {
    let mut after = pos.clone();
    after.play_unchecked(mv);
    let mut sum = Results::default();
    for row in obs.moves(&after)? {
        if obs::legal_move(&after, &row.mv).is_some() {
            sum += Results::from_side(after.turn(), row.stats);
        }
    }
    Ok(sum)
}

fn table(moves: &[ShownMove], with_evals: bool, with_resulting: bool) -> String {
    let has_results = moves.iter().any(|mv| mv.games.is_some());
    let mut text = String::from(match has_results {
        true => "move     uci      wins    draws   losses  weight  percent",
        false => "move     uci    weight  percent  learn",
    });
    text.push_str(if with_evals { "     eval" } else { "" });
    if with_resulting {
        text += &resulting_headings();
    }
    text.push('\n');
    for mv in moves {
        let (uci, weight) = (&mv.uci, mv.weight);
        let percent = mv.probability.map(|share| format!("{share:.2}%"));
        let percent = percent.as_deref().unwrap_or("-");
        let san = mv.san.as_deref().unwrap_or("illegal");
        let eval = if with_evals {
            format!("  {:>7}", evals::cell(mv.eval))
        } else {
            String::new()
        };
        let resulting = with_resulting.then(|| resulting_cells(mv.resulting));
        text += &match &mv.games {
            Some(games) => format!(
                "{san:<8} {uci:<6} {:>6} {:>8} {:>8} {weight:>7} {percent:>8}{eval}{}{}\n",
                games.stats.wins,
                games.stats.draws,
                games.stats.losses,
                resulting.unwrap_or_default(),
                if games.active { "" } else { "  not active" }
            ),
            None => format!(
                "{san:<8} {uci:<6} {weight:>6} {percent:>8} {:>6}{eval}\n",
                mv.learn
            ),
        };
    }
    text
}
