//! Query strings for every route of the explorer's server, answered from a few games.

use std::sync::LazyLock;

use polybook::{
    MakeBook,
    explorer::Explorer,
    pgn::Input,
    position::VariantChoice,
    serve::{Parameters, Request, Route},
};

use super::{Room, choice};

const GAMES: &str = r#"
[Event "Casual"]
[Site "https://lichess.org/abcdefgh"]
[Date "2024.05.06"]
[White "Ann"]
[Black "Bob"]
[Result "1-0"]
[WhiteElo "1500"]
[TimeControl "180+2"]

1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O 1-0

[White "Bob"]
[Black "Ann"]
[Date "1858.??.??"]
[ECO "B20"]
[Result "1/2-1/2"]

1. Nf3 Nf6 2. Ng1 Ng8 3. e4 c5 1/2-1/2

[Variant "Crazyhouse"]
[Result "*"]

1. e4 d5 2. exd5 Qxd5 3. Nc3 P@d4 *
"#;

static EXPLORER: LazyLock<(Room, Explorer)> = LazyLock::new(|| {
    let room = Room::new();
    let (pgn, index) = (room.file("games.pgn", GAMES.as_bytes()), room.path("index"));
    let run = MakeBook::new([Input::file(pgn)]).variant(VariantChoice::Auto);
    run.explorer(&index)
        .run()
        .expect("the games are well-formed");
    let explorer = Explorer::open([("games".to_owned(), index)]).expect("it has just been made");
    (room, explorer)
});

const ROUTES: [Route; 5] = [
    Route::Lichess,
    Route::Masters,
    Route::Player,
    Route::Games,
    Route::Book,
];

pub fn run(data: &[u8]) {
    let (kind, rest) = choice(data);
    let route = ROUTES[usize::from(kind) % ROUTES.len()];
    let text = String::from_utf8_lossy(rest);
    let request = match Request::parse(route, &text) {
        Ok(request) => request,
        Err(refusal) => {
            assert_eq!(refusal.status(), 400);
            assert!(!refusal.text().contains(['\n', '\r']));
            return;
        }
    };
    assert!(Parameters::parse(&text).is_ok());
    assert!(request.query.line.moves().len() <= 600 && request.page.limit <= 200);
    let explorer = &EXPLORER.1;
    match explorer.answer(&request.query) {
        Ok(answer) => {
            let listed: u64 = answer.moves.iter().map(|mv| mv.results.games()).sum();
            assert!(listed <= answer.results.games() && answer.results.games() <= 3);
        }
        // The server accepts only existing sources, so an unknown source may be an error here.
        Err(err) => assert!(request.query.filters.source.is_some(), "{err}"),
    }
    if request.query.filters.source.is_none() {
        let list = explorer
            .games(&request.query, &request.page)
            .expect("the index is whole");
        assert!(list.games.len() <= request.page.limit && list.total <= 3);
    }
}
