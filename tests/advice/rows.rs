//! Messages with advice, and what follows the advice. The first line of an entry is the command or request that causes
//! the message. `!` begins a part of the message, and `>` begins what the advice says to do. `&&` separates steps.

/// Advice about variants and games.
pub const GAMES: &str = r#"
make-book frc.pgn --min-game 1 --bin a.bin
  ! give the variant fischerandom
  > make-book frc.pgn --min-game 1 --bin a.bin --variant fischerandom
key --fen 'nbrkqrbn/pppppppp/8/8/8/8/PPPPPPPP/NBRKQRBN w FCfc - 0 1'
  ! give the variant fischerandom
  > key --fen 'nbrkqrbn/pppppppp/8/8/8/8/PPPPPPPP/NBRKQRBN w FCfc - 0 1' --variant fischerandom
key --fen 'rnb1kbnr/ppp1pppp/8/3q4/8/8/PPPP1PPP/RNBQKBNR[Pp] w KQkq - 0 3'
  ! the pieces in hand in FEN "rnb1kbnr/ppp1pppp/8/3q4/8/8/PPPP1PPP/RNBQKBNR[Pp] w KQkq - 0 3" are those of crazyhouse: give the variant crazyhouse
  > key --fen 'rnb1kbnr/ppp1pppp/8/3q4/8/8/PPPP1PPP/RNBQKBNR[Pp] w KQkq - 0 3' --variant crazyhouse
key --fen '4k3/8/8/8/8/8/4P3/4K3 w - - 3+3 0 1'
  ! are those of three-check: give the variant 3check
  > key --fen '4k3/8/8/8/8/8/4P3/4K3 w - - 3+3 0 1' --variant 3check
suite-report frc.epd frc.pgn
  ! give the variant fischerandom
  > suite-report frc.epd frc.pgn --variant fischerandom
make-book frc.pgn --suite a.epd --plies 1 --min-game 1 --from frc.epd
  ! give the variant fischerandom
  > make-book frc.pgn --suite a.epd --plies 1 --min-game 1 --from frc.epd --variant fischerandom
make-book en.pgn --min-game 1 --untagged-variant atomic --bin b.bin
  ! the variant atomic counts these games
  > make-book en.pgn --min-game 1 --untagged-variant atomic --bin b.bin --variant atomic
show s.bin --variant atomic
  ! give --variant with a variant of the file
  > show s.bin --variant normal
# The tag is removed in plain.pgn.
make-book wild.pgn --min-game 1 --bin c.bin
  ! 1 game of the unknown variant "wild/0" left out; if these games are standard chess, remove the tag Variant
  > make-book plain.pgn --min-game 1 --bin c.bin
make-book drops.pgn --min-game 1 --bin b2.bin
  ! give crazyhouse as the variant, also of untagged games
  > make-book drops.pgn --min-game 1 --bin b2.bin --variant crazyhouse --untagged-variant crazyhouse
repertoire build drops.pgn --color white --out b3.pgn --min-game 1
  ! give crazyhouse as the variant, also of untagged games
  > repertoire build drops.pgn --color white --out b3.pgn --min-game 1 --variant crazyhouse --untagged-variant crazyhouse
# Games. The moves of old.pgn and ru.pgn are converted in en.pgn and nf3.pgn.
make-book old.pgn --min-game 1 --bin b4.bin
  ! the move is in descriptive notation: convert the game to moves such as e4 and Nf3
  > make-book en.pgn --min-game 1 --bin b4.bin
make-book ru.pgn --min-game 1 --bin b5.bin
  ! use K, Q, R, B and N for the pieces
  > make-book nf3.pgn --min-game 1 --bin b5.bin
make-book rest.pgn --min-game 1 --bin b7.bin
  ! the game begins at move 12, but no FEN tag says in which position: add this tag or the moves before
  > make-book nf3.pgn --min-game 1 --bin b7.bin
make-book open.pgn --min-game 1 --bin b6.bin
  ! 1 game without a result counted as a draw: --unfinished skip leaves these games out
  > make-book open.pgn en.pgn --min-game 1 --bin b6.bin --unfinished skip
make-book de.pgn --min-game 1 --bin d.bin
  ! the move is legal with the piece letters de
  > make-book --piece-letters de de.pgn --min-game 1 --bin d.bin
repertoire build de.pgn --color white --out a.pgn
  ! the move is legal with the piece letters de
  > make-book --piece-letters de de.pgn --explorer de.idx
repertoire build de.pgn --color white --out a.pgn
  ! legal with the piece letters
  > repertoire build de.idx --color white --out a.pgn
make-book mixed.pgn --strict --min-game 1 --bin e.bin
  ! without --strict, polybook drops the game
  > make-book mixed.pgn --min-game 1 --bin e.bin
make-book en.pgn --bin f.bin
  ! --min-game 1 keeps the moves that were played less often
  > make-book en.pgn --bin f.bin --min-game 1
make-book en.pgn --bin g.bin
  ! --allow-empty writes empty outputs
  > make-book en.pgn --bin g.bin --allow-empty
make-book en.pgn --since 2020 --min-game 1 --bin h.bin
  ! the condition require-date drops this game
  > make-book en.pgn --since 2020 --min-game 1 --bin h.bin --require-date --allow-empty
make-book en.pgn --min-elo 2000 --min-game 1 --bin i.bin
  ! the condition require-elo drops this game
  > make-book en.pgn --min-elo 2000 --min-game 1 --bin i.bin --require-elo --allow-empty
make-book en.pgn 3 --minimax --bin j.bin --min-game 1
  ! did you mean --minimax=3?
  > make-book en.pgn --minimax=3 --bin j.bin --min-game 1
"#;

/// Advice about files that exist, files of another kind, and suites that would be empty.
pub const FILES: &str = r#"
# Files that exist.
make-book en.pgn --min-game 1 --obs s.obs.db3
  ! replace it with --force
  > make-book en.pgn --min-game 1 --obs s.obs.db3 --force
make-book en.pgn --min-game 1 --bin notes.txt
  ! notes.txt exists: remove it, or replace it with --force
  > make-book en.pgn --min-game 1 --bin notes.txt --force
make-book en.pgn --counts month.counts --by month
  ! replace it with --force
  > make-book en.pgn --counts month.counts --by month --force
convert s.obs.db3 old.epd --min-game 1 --plies 1
  ! replace it with --force
  > convert s.obs.db3 old.epd --min-game 1 --plies 1 --force
tree s.bin --out old.epd
  ! replace it with --force
  > tree s.bin --out old.epd --force
dump-book s.bin --color white --out old.epd
  ! replace it with --force
  > dump-book s.bin --color white --out old.epd --force
repertoire build en.pgn --color white --out mine.pgn
  ! replace it with --force
  > repertoire build en.pgn --color white --out mine.pgn --force
show plain.idx --min-elo 20
  ! make an explorer's index from the games with make-book --explorer DIR
  > make-book en.pgn --explorer added.idx
edit s.bin --set e4=7
  ! no output: name a file for the changed book with --out, or change this book itself with --in-place
  > edit s.bin --set e4=7 --in-place
# Files of another kind.
info-book --bin en.pgn
  ! polybook make-book makes a book from games
  > make-book en.pgn --bin k.bin --min-game 1
dump-book s.obs.db3 --color white
  ! polybook convert makes a book from an OOBS database
  > convert s.obs.db3 l.bin --min-game 1
convert s.bin m.bin
  ! with polybook filter or polybook merge-book
  > filter s.bin --best 1 --out m.bin
convert s.obs.db3 n
  ! give --format, or use a name that ends in .bin
  > convert s.obs.db3 n --format csv
# Suites that would be empty.
convert s.bin e1.epd --plies 9
  ! the longest line has only 1 half-move, but lines of 9 are requested: use a smaller --plies
  > convert s.bin e1.epd --plies 1
convert s.bin e2.epd --plies 1 --from once.epd
  ! no move is kept in the starting position: give other starting positions with --from
  > convert s.bin e2.epd --plies 1 --from start.epd
convert s.obs.db3 e3.epd --plies 1
  ! no move is kept in the starting position: give other starting positions with --from, or use a smaller --min-game
  > convert s.obs.db3 e3.epd --plies 1 --min-game 1
convert s.obs.db3 e4.epd --plies 9 --min-game 1
  ! use a smaller --plies
  > convert s.obs.db3 e4.epd --plies 2 --min-game 1
make-book en.pgn --suite e5.epd --plies 1
  ! in at least 3 games, and the most frequent one in only 1: use a smaller --min-game
  > make-book en.pgn --suite e5.epd --plies 1 --min-game 1
make-book en.pgn --suite o --plies 1 --min-game 1
  ! the name must end in .pgn for lines, or in .epd for positions
  > make-book en.pgn --suite o.pgn --plies 1 --min-game 1
repertoire build s.bin --color white --by score --out p.pgn
  ! choose the moves with --by weight
  > repertoire build s.bin --color white --by weight --out p.pgn
make-book month.counts --explorer q.idx
  ! count the games with --by speed,rating,month
  > make-book en.pgn --counts q.counts --by speed,rating,month
make-book month.counts --leveldb r.idx
  ! give the PGN files
  > make-book en.pgn --leveldb r.idx
"#;

/// Advice about options, and several kinds of files.
pub const OPTIONS: &str = r#"
edit s.bin --out e1.bin
  ! use --set, --remove, --remove-position or --script
  > edit s.bin --out e1.bin --set e4=5
edit s.bin --out e2.bin --set e4
  ! give a move and its weight, such as Nf3=100 or Nf3=25%
  > edit s.bin --out e2.bin --set e4=100
convert s.obs.db3 w.epd --plies 1 --min-game 1 --win-factor 3
  ! only with --weighted: also give --weighted
  > convert s.obs.db3 w.epd --plies 1 --min-game 1 --win-factor 3 --weighted
convert s.bin w2.epd --plies 1 --min-game 1
  ! polybook filter
  > filter s.bin --best 1 --out w2.bin
convert s.bin w3.epd --plies 1 --balance 40-60
  ! make the suite from a database, or leave --balance out
  > convert s.obs.db3 w3.epd --plies 1 --min-game 1 --balance 0-100 && convert s.bin w3.pgn --plies 1
make-book en.pgn --counts x1.counts --uniform
  ! give this option when you make a book from the counts
  > make-book none.counts --uniform --bin x1.bin --min-game 1
make-book none.counts --explorer x2.idx --min-game 2
  ! then make the index from these counts
  > make-book none.counts --counts x2.counts --min-game 1
make-book
  ! give the files to read, or - for standard input
  > make-book en.pgn --min-game 1 --bin x3.bin
merge-book
  ! give the books to merge
  > merge-book s.bin s.bin --out x4.bin
pgheader
  ! give the file
  > pgheader -s s.bin
repertoire check mine.pgn --contradictions
  ! give one repertoire with --color, or two with --white and --black
  > repertoire check mine.pgn --contradictions --color white
make-book en.pgn --memory 5 --min-game 1 --bin x5.bin
  ! use a number with its unit, such as 512MiB
  > make-book en.pgn --memory 512MiB --min-game 1 --bin x5.bin
make-book en.pgn --memory x --min-game 1 --bin x5.bin
  ! use a size such as 64MiB or 4GiB
  > make-book en.pgn --memory 64MiB --min-game 1 --bin x5.bin
tree s.bin --min-game 2
  ! for a Polyglot book, use --min-weight
  > tree s.bin --min-weight 1
make-book tagged.pgn --since x --min-game 1 --bin x6.bin
  ! use a date of the form YYYY, YYYY.MM or YYYY.MM.DD
  > make-book tagged.pgn --since 2019.01 --min-game 1 --bin x6.bin
make-book tagged.pgn --since 2021 --until 2019 --min-game 1 --bin x6.bin
  ! exchange the two dates
  > make-book tagged.pgn --since 2019 --until 2021 --min-game 1 --bin x6.bin
make-book tagged.pgn --min-elo 2100 --max-elo 1900 --min-game 1 --bin x6.bin
  ! exchange the two ratings
  > make-book tagged.pgn --min-elo 1900 --max-elo 2100 --min-game 1 --bin x6.bin
make-book tagged.pgn --time-control 5 --min-game 1 --bin x6.bin
  ! such as 180-480, 600- or -60
  > make-book tagged.pgn --time-control 180-480 --min-game 1 --bin x6.bin
make-book tagged.pgn --eco X1 --min-game 1 --bin x6.bin
  ! such as B20-B99, B2 for B20-B29, or B
  > make-book tagged.pgn --eco C2 --min-game 1 --bin x6.bin
make-book tagged.pgn --tag x --min-game 1 --bin x6.bin
  ! give a tag and a text, such as Event=blitz
  > make-book tagged.pgn --tag Event=x --min-game 1 --bin x6.bin
make-book tagged.pgn --piece-letters xx --min-game 1 --bin x6.bin
  ! use en, de, nl, fr, es or it
  > make-book tagged.pgn --piece-letters es --min-game 1 --bin x6.bin
make-book tagged.pgn --variant xx --min-game 1 --bin x6.bin
  ! this variant is unknown: use standard, fischerandom, crazyhouse, suicide,
  > make-book tagged.pgn --variant standard --min-game 1 --bin x6.bin
make-book tagged.pgn --result xx --min-game 1 --bin x6.bin
  ! use 1-0, 0-1, 1/2-1/2 or *
  > make-book tagged.pgn --result 1-0 --min-game 1 --bin x6.bin
make-book tagged.pgn --white= --min-game 1 --bin x6.bin
  ! give at least one letter
  > make-book tagged.pgn --white=a --min-game 1 --bin x6.bin
make-book tagged.pgn --opening xx --min-game 1 --bin x6.bin
  ! give a part of an English name, such as Najdorf, or ECO codes, such as B20-B99
  > make-book tagged.pgn --opening C20-C99 --min-game 1 --bin x6.bin
make-book pgns --min-game 1 --bin x7.bin
  ! give the PGN files in the directory
  > make-book pgns/en.pgn --min-game 1 --bin x7.bin
make-book en.pgn --counts x9 --by x
  ! use one or more of speed, rating and month, separated by commas, or none
  > make-book en.pgn --counts x9 --by speed,month
verify s.obs.db3 --fix x.bin
  ! --fix applies only to Polyglot books: make a damaged file of another format again, or use an intact copy
  > verify s.bin --fix x10.bin
merge-book s.bin s.obs.db3 --out m.bin
  ! (polybook convert makes a book from a database)
  > convert s.obs.db3 s2.bin --min-game 1
merge-book s.bin s.obs.db3 --out m.bin
  ! merge only books or only databases
  > merge-book s.bin s2.bin --out m.bin
make-book en.pgn --min-game 1 --bin x11.bin --obs x11.bin
  ! this name is given for two outputs: choose another file
  > make-book en.pgn --min-game 1 --bin x11.bin --obs x11.obs.db3
make-book en.pgn --min-game 1 --bin en.pgn
  ! this file is both an input and an output: choose another output
  > make-book en.pgn --min-game 1 --bin x12.bin
make-book en.pgn --min-game 1 --bin full.idx
  ! this is a directory: give the name of a file
  > make-book en.pgn --min-game 1 --bin x13.bin
make-book en.pgn --explorer papers --force
  ! choose another directory
  > make-book en.pgn --explorer x14.idx --force
make-book en.pgn --counts papers
  ! choose another
  > make-book en.pgn --counts x15.counts
make-book month.counts --min-game 1 --bin x16.bin --since 2020
  ! give the PGN files
  > make-book tagged.pgn --min-game 1 --bin x16.bin --since 2020
make-book month.counts none.counts --counts x17.counts
  ! none.counts: these counts are not divided, but other inputs are divided by month: give --by with those
  > make-book month.counts none.counts --counts x17.counts --by none
make-book month.counts none.counts --counts x17b.counts --by month
  ! give fewer of speed, rating and month with --by
  > make-book month.counts none.counts --counts x17b.counts --by none
make-book none.counts --counts x18.counts --by speed
  ! count the games again with --by speed
  > make-book en.pgn --counts x18.counts --by speed
make-book month.counts --counts x19.counts --by speed
  ! count the games again with --by speed
  > make-book en.pgn --counts x19.counts --by speed
tree plain.idx
  ! make an index with polybook make-book --index-stats
  > make-book en.pgn --leveldb plain2.idx --index-stats
tree plain.idx
  ! or make an index with polybook make-book --explorer
  > tree full.idx
show plain.idx --speed blitz
  ! make an explorer's index from the games with make-book --explorer
  > show full.idx --speed blitz
suite-report s.bin en.pgn
  ! polybook convert makes a suite from a book
  > convert s.bin x20.epd --plies 1
show full.idx --clocks 5
  ! write the number after =, as in --clocks=5000
  > show full.idx --clocks=5
make-book en.pgn --max-ply -1 --min-game 1 --bin x22.bin
  ! use a whole number, 0 or larger
  > make-book en.pgn --max-ply 1 --min-game 1 --bin x22.bin
filter s.bin --out x23.bin --min-share 200
  ! use a number from 0 to 100
  > filter s.bin --out x23.bin --min-share 100
convert s.obs.db3 x24.epd --plies 1 --balance x --min-game 1
  ! use a range of
  > convert s.obs.db3 x24.epd --plies 1 --balance 0-100 --min-game 1
convert s.obs.db3 x25.epd --plies 1 --balance 60-40 --min-game 1
  ! put the lower number first
  > convert s.obs.db3 x25.epd --plies 1 --balance 40-100 --min-game 1
make-book en.pgn --leveldb - --min-game 1
  ! give a directory
  > make-book en.pgn --leveldb x29.idx
make-book full.idx --bin x30.bin
  ! this is an index: give the PGN files from which the index was made
  > make-book en.pgn --bin x30.bin --min-game 1
info-book full.idx
  ! give a book or a database
  > info-book s.bin
edit s.bin --out a1.bin --script no_change.txt
  ! write a position, a semicolon and a change, such as 1. e4 c5; set Nf3=100
  > edit s.bin --out a1.bin --script change.txt
verify junk.bin --fix a2.bin
  ! use an intact copy, or make the book again
  > verify s.bin --fix a2.bin && make-book en.pgn --min-game 1 --bin a2b.bin
merge-book bad.bin s.bin --out a3.bin
  ! use an intact copy, or write a copy without the checksum with polybook verify --fix
  > verify bad.bin --fix a3b.bin && merge-book a3b.bin s.bin --out a3.bin
edit - --in-place --set e4=1
  ! give a file for the changed book with --out
  > edit s.bin --out a4.bin --set e4=1
tree s.bin --out a5.pgn.gz
  ! choose a name without .gz
  > tree s.bin --out a5.pgn
tree s.bin --json --out -
  ! give a file for the output
  > tree s.bin --json --out a6.pgn
prepare duel.idx --player Ann --opponent Bob
  ! give --color white or --color black
  > prepare duel.idx --player Ann --opponent Bob --color white
prepare duel.idx --opponent Bob --color white
  ! who are you? give your name with --player
  > prepare duel.idx --player Ann --opponent Bob --color white
prepare duel.idx --player Ann --color white
  ! who is the opponent? give the opponent's name with --opponent
  > prepare duel.idx --player Ann --opponent Bob --color white
prepare duel.idx --player Ann --opponent Bob --color white --repertoire mine.pgn --lines 0 --out a7.pgn
  ! remove one of the two options
  > prepare duel.idx --player Ann --opponent Bob --color white --repertoire mine.pgn --lines 0 && prepare duel.idx --player Ann --opponent Bob --color white --repertoire mine.pgn --min-game 1 --out a7.pgn
prepare duel.idx --player Ann --opponent Bob --color white --repertoire mine.pgn --out -
  ! give a file with --out
  > prepare duel.idx --player Ann --opponent Bob --color white --repertoire mine.pgn --min-game 1 --out a8.pgn
repertoire build duel.pgn --color white --player Ann --white Bob --out a9.pgn --min-game 1
  ! give all names with the same option
  > repertoire build duel.pgn --color white --player Ann --player Bob --out a9.pgn --min-game 1
repertoire new duel.pgn --reference duel.pgn
  ! --earlier compares each game only with earlier games
  > repertoire new duel.pgn --reference duel.pgn --earlier
convert s.bin a10.epd --from none.epd --plies 1
  ! write a FEN or an EPD on each line
  > convert s.bin a10.epd --from start.epd --plies 1
make-book en.pgn --limit 3 --bin a11.bin
  ! --min-game drops rare moves from a book
  > make-book en.pgn --min-game 1 --bin a11.bin
make-book en.pgn --plies 3 --bin a11.bin
  ! the lines of a book end at --max-ply
  > make-book en.pgn --min-game 1 --max-ply 3 --bin a11.bin
verify twice.epd
  ! remove these entries
  > verify once.epd
serve li.idx --unfinished skip
  ! make the counts again with polybook make-book --unfinished skip, and serve their index with unfinished games
  > make-book en.pgn --counts a12.counts --by speed,rating,month --unfinished skip && make-book a12.counts --explorer a12.idx && show a12.idx
show full.idx --player A --opponent-rating x
  ! such as 2000-2199, 2000- or -2199
  > show full.idx --player A --opponent-rating -2199
show li.idx --player A
  ! li.idx: this index contains only counts, but games are needed for the filter player: use an index
  > show full.idx --player A
show big.idx --clocks
  ! unpack the file and make the index again
  > make-book big.pgn --explorer big2.idx && show big2.idx --clocks
make-book a.7z --bin a15.bin
  ! unpack the archive and give the files in it
  > make-book en.pgn --min-game 1 --bin a15.bin
make-book none.counts atomic.counts --counts a16.counts
  ! add up only counts of one variant
  > make-book none.counts none.counts --counts a16.counts
make-book en.pgn atomic.pgn --variant auto --min-game 1 --obs a17.obs.db3
  ! choose one
  > make-book en.pgn atomic.pgn --variant standard --min-game 1 --obs a17.obs.db3
merge-book s.obs.db3 atomic.obs.db3 --out a18.obs.db3
  ! merge only databases of one variant
  > merge-book s.obs.db3 s.obs.db3 --out a18.obs.db3
evals eval.pgn --out old.evals
  ! use that version, or make the store again with --force
  > evals eval.pgn --out old.evals --force
make-book locked.zip --min-game 1 --bin a21.bin
  ! unpack the archive with its password
  > make-book en.pgn --min-game 1 --bin a21.bin
make-book names.zip --min-game 1 --bin a22.bin
  ! unpack each file under a name of its own, and give the files
  > make-book en.pgn two.pgn --min-game 1 --bin a22.bin
make-book wide.pgn.zst --min-game 1 --bin a23.bin --memory 64MiB
  ! use at least --memory 256MiB, or unpack the file first
  > make-book wide.pgn.zst --min-game 1 --bin a23.bin --memory 256MiB && make-book en.pgn --min-game 1 --bin a23.bin --memory 64MiB
make-book late.pgn.zst --min-game 1 --bin a24.bin
  ! MiB of memory: unpack the file first
  > make-book en.pgn --min-game 1 --bin a24.bin
make-book en.pgn --suite a25.epd --plies 1 --min-game 1 --from text.epd
  ! remove the text after the position
  > make-book en.pgn --suite a25.epd --plies 1 --min-game 1 --from start.epd
make-book cut.pgn.gz --min-game 1 --bin a19.bin
  ! unpack or download the file again
  > make-book en.pgn.gz --min-game 1 --bin a19.bin
repertoire check mine.pgn notes.txt --color white
  ! give a PGN file
  > repertoire check mine.pgn en.pgn --color white
repertoire gaps mine.pgn --color white --against en.pgn --white Zed
  ! change the filters, or choose another source
  > repertoire gaps mine.pgn --color white --against en.pgn --white A && repertoire gaps mine.pgn --color white --against duel.pgn --white Ann
make-book mate.pgn --suite a20.epd --plies 4 --min-game 1
  ! use a smaller --plies
  > make-book mate.pgn --suite a20.epd --plies 3 --min-game 1
prepare li.idx --player A --opponent B --color white
  ! use an index that make-book made from games
  > prepare duel.idx --player Ann --opponent Bob --color white
openings li.idx --player A
  ! use an index that make-book made from games
  > openings full.idx --player A
games li.idx
  ! use an index that make-book made from games
  > games full.idx
show li.idx --unfinished skip
  ! use an index that make-book made from games
  > show full.idx --unfinished skip
openings li.counts
  ! make an index from the PGN files of the games with polybook make-book --explorer DIR
  > openings full.idx
convert li.counts a21.parquet
  ! make a database of all moves with polybook make-book li.counts --min-game 1 --obs FILE.obs.db3, and convert the database
  > make-book li.counts --min-game 1 --obs a21.obs.db3 && convert a21.obs.db3 a21.parquet
show full.idx --rating 2600
  ! 2600 is in the rating group 2500: use 2500
  > show full.idx --rating 2500 --rating unknown
convert s.bin a30.bin
  ! make another book from s.bin with polybook filter or polybook merge-book
  > filter s.bin --best 1 --out a30.bin && merge-book s.bin two.bin --out a31.bin
convert s.bin a32.obs.db3
  ! convert cannot make an OOBS database: use make-book --obs to make one from games, or merge-book to merge several
  > make-book en.pgn --min-game 1 --obs a32.obs.db3 && merge-book a32.obs.db3 s.obs.db3 --out a33.obs.db3
convert s.bin a34.pgn --min-score 50 --plies 1
  ! contains only weights: use polybook filter --min-weight instead
  > filter s.bin --min-weight 1 --out a34.bin
make-book en.pgn --min-game 2 --explorer a35.idx
  ! write counts with --counts, --by speed,rating,month and --min-game, then make the index from these counts
  > make-book dup.pgn --counts a36.counts --by speed,rating,month --min-game 2 && make-book a36.counts --explorer a35.idx
pgheader
  ! no book is given: give the file (-h lists the options)
  > pgheader s.bin && pgheader -h
merge-book s.bin --out a37.pgn
  ! the output is a Polyglot book, not PGN: choose a name that ends in .bin
  > merge-book s.bin --out a37.bin
diff li.counts s.bin
  ! this is a directory of counts: make a book or an index from the counts with polybook make-book
  > make-book li.counts --min-game 1 --bin a38.bin && diff a38.bin s.bin
make-book en.pgn atomic.pgn --variant auto --min-game 1 --obs a39.obs.db3
  ! but the games are of normal and atomic: choose one of the two with --variant
  > make-book en.pgn atomic.pgn --variant atomic --min-game 1 --obs a39.obs.db3
tree s.bin --out notes.txt --format pgn
  ! notes.txt exists: remove it, or replace it with --force
  > cp notes.txt a40.pgn && tree s.bin --out a40.pgn --format pgn --force
show full.idx --player A --opponent-rating x
  ! use a range of ratings such as 2000-2199, 2000- or -2199
  > show full.idx --player A --opponent-rating 2000-2199
edit s.bin --out a41.bin --script long.txt --memory 64KiB
  ! that --memory allows: increase --memory to 32 times the size of the file
  > edit s.bin --out a41.bin --script long.txt --memory 8MiB
prepare both.pgn --player Ann --opponent Bob --color white
  ! both match "Bob Ann": give more of the names, or the whole names with --exact
  > prepare both.pgn --player 'Ann X' --opponent Bob --color white
engine s.bin --min-games 2
  ! give an index, counts, an OOBS database or a PGN file, or make the book with make-book --min-score and --min-game
  > engine full.idx --min-games 2 && make-book en.pgn --min-score 10 --min-game 1 --bin a44.bin && engine a44.bin
"#;

/// Advice about books.
pub const BOOKS: &str = r#"
make-book en.pgn --min-game 1 --bin months/y.bin
  ! the directory months does not exist: create the directory first
  > cp papers months && make-book en.pgn --min-game 1 --bin months/y.bin
filter s.bin --out old.bin
  ! old.bin exists: remove it, or replace it with --force
  > filter s.bin --out old.bin --force
prepare duel.idx --player Ann --opponent Bob --color white --result win
  ! leave --result out
  > prepare duel.idx --player Ann --opponent Bob --color white
convert s.obs.db3 y.epd --plies 1 --balance 0.4-0.6 --min-game 1
  ! use percentages, such as
  > convert s.obs.db3 y.epd --plies 1 --balance 0-100 --min-game 1
make-book en.pgn --min-score 0.45 --min-game 1 --bin y45.bin
  ! use a percentage, such as 45
  > make-book en.pgn --min-score 45 --min-game 1 --bin y45.bin
show full.idx --rating x
  ! use 0, 1000, 1200, 1400
  > show full.idx --rating unknown
verify bad.evals
  ! make the store again, or use an intact copy of the store
  > evals eval.pgn --out y46.evals && verify y46.evals && verify e.evals
convert s.bin y47.epd --plies 1 --evals en.pgn --eval -400..400
  ! make a store with polybook evals
  > evals eval.pgn --out y47.evals && convert s.bin y47.epd --plies 1 --evals y47.evals --eval -400..400
make-book li.counts --explorer by1.idx --counts by1.counts --by month
  ! leave --by out, or give --by speed,rating,month
  > make-book li.counts --explorer by1.idx && make-book li.counts --explorer by2.idx --counts by2.counts --by speed,rating,month
verify twice.epd
  ! correct or remove these entries
  > verify once.epd
verify faulty.pgn
  ! correct these games
  > verify varied.pgn
show --help
  ! use polybook verify for this
  > verify s.bin
edit --help
  ! 1. e4 c5; remove f4; set Nf3=70%; set Nc3=20%
  > make-book lines.pgn --min-game 1 --uniform --bin lines.bin && edit lines.bin --out y0.bin --script lines.txt
make-book --help
  ! add up, and keep the positions in which at least five moves were counted
  > make-book li.counts li.counts --min-game 5 --counts y0.counts --allow-empty
pgheader two.bin -v nope
  ! -l lists the known variants, -f accepts any variant
  > pgheader -l && pgheader two.bin -v nope -f
edit s.bin --out y1.bin --set e4=0%
  ! use a percentage greater than 0% and at most 100%
  > edit s.bin --out y1.bin --set e4=100%
edit s.bin --out y1.bin --set e4=70000
  ! use a weight from 0 to 65535
  > edit s.bin --out y1.bin --set e4=65535
edit s.bin --out y1.bin --script bad.txt
  ! use set MOVE=WEIGHT, remove MOVE or remove-position
  > edit s.bin --out y1.bin --script change.txt
edit two.bin --out y1.bin --set e4=100%
  ! give lower percentages, or remove the other moves
  > edit two.bin --out y2.bin --set e4=99% && edit two.bin --out y3.bin --set e4=100% --remove d4
edit s.bin --out s.bin --set e4=1
  ! or change the book with --in-place
  > edit s.bin --in-place --set e4=1
pgheader two.bin -f -v é
  ! use only lower-case letters, digits and signs, without spaces
  > pgheader two.bin -f -v ab
show cut.bin
  ! use an intact copy
  > show s.bin
show many.bin
  ! use an intact copy
  > show s.bin
convert few.obs.db3 y4a.epd --plies 1 --min-game 2
  ! make the database again with --min-game 1
  > make-book en.pgn --min-game 1 --obs y4.obs.db3 && convert y4.obs.db3 y4.epd --plies 1 --min-game 1
verify bad.bin
  ! use an intact copy; verify --fix OUT sorts this book, but keeps changed moves and weights
  > verify s.bin && verify bad.bin --fix v1.bin
cp mine.pgn v10.pgn && cut v10.pgn 15 && verify v10.pgn
  ! the result after the moves is missing: add *
  > verify mine.pgn
verify unsorted.bin
  ! polybook verify --fix OUT writes a copy without these faults
  > verify unsorted.bin --fix v2.bin && verify v2.bin
verify s.bin two.bin --fix v4.bin
  ! writes a copy of one book: give only one book
  > verify s.bin --fix v4.bin
evals cut.evals --out v5.evals
  ! make the store again
  > evals eval.pgn --out v5.evals
verify full.idx --fix v6.bin
  ! this is a directory, but --fix applies only to Polyglot books
  > verify s.bin --fix v6.bin
"#;

/// Advice about names of commands, files, players and openings.
pub const NAMES: &str = r#"
serve
  ! no games are given; see polybook serve --help
  > serve --help
s.bin
  ! to show the moves of a book, run polybook show s.bin
  > show s.bin
en.pgn
  ! to make a book, run polybook make-book en.pgn
  > make-book en.pgn --min-game 1 --bin y5.bin
games --index en.pgn
  ! name the source without an option
  > games en.pgn
games en.pgn ./en.pgn
  ! give it once
  > games en.pgn
tree s.bin --max-plies 3
  ! (did you mean '--max-ply'?)
  > tree s.bin --max-ply 3
make-book en.pgn --output y6.bin --min-game 1
  ! (did you mean '--bin'?)
  > make-book en.pgn --bin y6.bin --min-game 1
shwo s.bin
  ! (did you mean 'show'?)
  > show s.bin
convert s.bin y7a.epd --plies 1 --limit 0
  ! use 1 or more
  > convert s.bin y7a.epd --plies 1 --limit 1
filter s.bin --out y7.bin --min-share x
  ! use a number
  > filter s.bin --out y7.bin --min-share 1
tree s.bin --frob
  ! see polybook tree --help
  > tree --help
make-book en.pgn --explorer
  ! --explorer DIR writes the explorer's index, and --leveldb DIR writes an index for front-ends
  > make-book en.pgn --explorer y8.idx --leveldb y9.idx
engine s.bin --min-elo 2000
  ! give an explorer's index or a PGN file
  > engine full.idx --min-elo 2000 && engine en.pgn --min-elo 2000
engine -
  ! so - cannot be a source: give a file
  > engine s.bin
evals eval.pgn --out y10.evals --engine x --positions start.epd --option Hash
  ! give the name of an option and its value, such as Hash=64
  > evals eval.pgn --out y10.evals
convert s.obs.db3 y11.epd --plies 1 --min-game 1 --evals e.evals
  ! also give --max-loss or, for a suite, --eval or --eval-abs
  > convert s.obs.db3 y11.epd --plies 1 --min-game 1 --evals e.evals --eval -900..900 && convert s.obs.db3 y11.bin --min-game 1 --evals e.evals --max-loss 300
evals eval.pgn --out y12.epd --engine nobody --positions start.epd
  ! give the name of a store with --out, and convert the store afterwards
  > evals eval.pgn --out y12.evals && evals y12.evals --out y12.epd
filter s.bin --out y13.bin --best 1 --variant standard
  ! --variant applies only with --reachable, --max-ply or --max-loss: also give one of these options
  > filter s.bin --out y13.bin --best 1 --variant standard --reachable
games site.idx --id https://lichess.org/12345678 --pgn
  ! use the number of the game from the list that polybook games prints
  > games site.idx && games site.idx --id 0 --pgn
games site.idx --id x --pgn
  ! use the number of a game, 0 or larger, or the address of a game at lichess.org
  > games site.idx --id 0 --pgn && games site.idx --id https://lichess.org/abcdefgh --pgn
games site.idx --id https://lichess.org/abcdefgx --pgn
  ! find the number of the game with polybook games site.idx
  > games site.idx && games site.idx --id 0 --pgn
games site.idx --id 0 --player A
  ! a position and conditions on games do not apply: leave them out, or leave --id out
  > games site.idx --id 0 && games site.idx --player A
games site.idx --id 7 --pgn
  ! use an id from 0 to 0
  > games site.idx --id 0 --pgn
verify - -
  ! - is given twice, but there is only one standard input: use a file for one of them
  > verify s.bin s.bin
make-book - --from - --suite y.epd --plies 1
  ! there is only one standard input
  > make-book en.pgn --from start.epd --suite y14.epd --plies 1 --min-game 1
suite-report - -
  ! there is only one standard input
  > suite-report mine.pgn duel.pgn
make-book en.pgn --suite y15.epd --max-ply 1 --plies 2 --min-game 1
  ! use a larger --max-ply, or use a smaller --plies
  > make-book en.pgn --suite y15.epd --max-ply 2 --plies 2 --min-game 1 && make-book en.pgn --suite y16.epd --max-ply 1 --plies 1 --min-game 1
make-book en.pgn --suite y17.epd --plies 1 --only-white --min-game 1
  ! applies only to books
  > make-book en.pgn --bin y17.bin --only-white --min-game 1
merge-book s.obs.db3 s.obs.db3 --policy first --out y18.obs.db3
  ! --policy first applies only to Polyglot books
  > merge-book s.bin s.bin --policy first --out y18.bin
show duel.idx --player Ann --color white --result win --sort score
  ! --sort score needs games with all results: leave out --result, or use --sort games
  > show duel.idx --player Ann --color white --sort score && show duel.idx --player Ann --color white --result win --sort games
show plain.idx --clocks
  ! needs an explorer's index: make one with make-book --explorer
  > make-book en.pgn --explorer y19.idx && show y19.idx --clocks
show stats.idx
  ! an explorer's index (make-book --explorer) counts only the games in which the move was played in this position
  > make-book en.pgn --explorer y20.idx && show y20.idx
show duel.idx --player Ann
  ! --color white or --color black shows the games with one color
  > show duel.idx --player Ann --color white && show duel.idx --player Ann --color black
show big.idx --clocks
  ! make the index again
  > make-book big.pgn --explorer y21.idx && show y21.idx --clocks
openings duel.idx --min-games 50
  ! no opening was played in at least 50 games: use a lower --min-games
  > openings duel.idx --min-games 1
openings duel.idx --player Ann --result win --sort score
  ! needs games with all results: leave out --result, or use --sort games
  > openings duel.idx --player Ann --sort score && openings duel.idx --player Ann --result win --sort games
openings duel.idx --limit 1
  ! more: --limit
  > openings duel.idx --limit 4
show mix.idx
  ! make an explorer's index, which distinguishes variants
  > show mixfull.idx
prepare mixfull.idx --variant atomic --player A --opponent B --color white --repertoire mine.pgn
  ! give --variant with a variant of the repertoire
  > prepare mixfull.idx --variant standard --player A --opponent A --color white --repertoire mine.pgn
"#;

/// Advice about repertoires.
pub const REPERTOIRES: &str = r#"
games frc2.pgn
  ! give such a position, for example with --fen "4k3/8/8/8/8/8/8/4K2R w K - 0 1"
  > games frc2.pgn --fen '4k3/8/8/8/8/8/8/4K2R w K - 0 1'
show frc2.pgn
  ! give such a position, for example with --fen "4k3/8/8/8/8/8/8/4K2R w K - 0 1"
  > show frc2.pgn --fen '4k3/8/8/8/8/8/8/4K2R w K - 0 1'
openings frc2.pgn
  ! give such a position, for example with --fen "4k3/8/8/8/8/8/8/4K2R w K - 0 1"
  > openings frc2.pgn --fen '4k3/8/8/8/8/8/8/4K2R w K - 0 1'
repertoire check mine.pgn --contradictions --color white --since 2020
  ! --contradictions checks no games, so conditions on games do not apply: leave them out
  > repertoire check mine.pgn --contradictions --color white
repertoire check duel.pgn mine.pgn --color white
  ! give the repertoire before the games, or use --white duel.pgn if duel.pgn is the repertoire
  > repertoire check mine.pgn duel.pgn --color white && repertoire check --white duel.pgn mine.pgn
repertoire check mine.pgn duel.pgn --color white --limit 1
  ! lists all
  > repertoire check mine.pgn duel.pgn --color white --limit 9
repertoire gaps mine.pgn --color white --against full.idx --white A
  ! give the PGN file of the games, or use polybook prepare, which filters an index
  > repertoire gaps mine.pgn --color white --against en.pgn --white A && prepare full.idx --player A --opponent A --color black --repertoire mine.pgn
repertoire gaps mine.pgn --color white --against duel.pgn --min-game 1 --reach 1
  ! --reach 1e9 lists all gaps
  > repertoire gaps mine.pgn --color white --against duel.pgn --reach 1e9
repertoire gaps mine.pgn --color white --against frc2.pgn
  ! give games that reach this position
  > repertoire gaps mine.pgn --color white --against duel.pgn
repertoire build en.pgn --color white --out y22.pgn --reach 0
  ! use a number of games, 1 or larger
  > repertoire build en.pgn --color white --out y22.pgn --reach 1
repertoire build frc2.pgn --color white --out y23.pgn --min-game 1
  ! give a position of the games with --from
  > repertoire build frc2.pgn --color white --out y23.pgn --min-game 1 --from '4k3/8/8/8/8/8/8/4K2R w K - 0 1'
repertoire build en.pgn --color white --out y24.pgn --min-game 1 --from '1. c4'
  ! give another position
  > repertoire build en.pgn --color white --out y24.pgn --min-game 1 --from '1. e4'
repertoire gaps mine.pgn --color white --against duel.pgn --add 1 --out y25.bin
  ! end the name of the output in .pgn
  > repertoire gaps mine.pgn --color white --against duel.pgn --add 1 --out y25.pgn
repertoire gaps papers --color white --against duel.pgn
  ! a repertoire is a PGN file, a book (.bin) or an OOBS database: give a file
  > repertoire gaps mine.pgn --color white --against duel.pgn
repertoire build plain.idx --color white --out y26.pgn
  ! make an index with polybook make-book --explorer
  > make-book en.pgn --explorer y26.idx && repertoire build y26.idx --color white --out y26.pgn --min-game 1
repertoire build s.bin --color white --out y27.pgn --player A
  ! remove the filters, or give the PGN file of the games
  > repertoire build s.bin --color white --out y27.pgn --by weight && repertoire build en.pgn --color white --out y27b.pgn --player A
"#;

/// Advice about indexes and counts.
pub const COUNTS: &str = r#"
make-book few.counts none.counts --counts z1.counts
  ! use complete counts, which are made without --min-game 2
  > make-book dup.pgn --counts z1a.counts && make-book z1a.counts none.counts --counts z1.counts
make-book none.counts tagged.pgn --min-elo 2000 --counts z2.counts
  ! use the options of the counts, or first make counts of the games, and then add up both
  > make-book none.counts tagged.pgn --counts z2.counts && make-book tagged.pgn --min-elo 2000 --counts z2a.counts && make-book none.counts z2a.counts --counts z2b.counts
make-book month.counts none.counts --counts z3.counts
  ! give --by with those that all inputs have in common, or give --by none
  > make-book month.counts none.counts --counts z3.counts --by none
make-book none.counts --counts z4.counts --by month
  ! or give fewer of speed, rating and month with --by
  > make-book month.counts --counts z4.counts --by none
make-book en.pgn atomic.pgn --variant atomic --min-game 1 --obs z5a.obs.db3
  ! the variant normal counts these games
  > make-book en.pgn --variant normal --min-game 1 --obs z5.obs.db3
make-book en.pgn atomic.pgn --variant atomic --min-game 1 --obs z6a.obs.db3
  ! name it as the variant of untagged games
  > make-book en.pgn atomic.pgn --variant atomic --untagged-variant atomic --min-game 1 --obs z6.obs.db3
make-book atomic.pgn --min-game 1 --obs z7.obs.db3
  ! the variant atomic counts these games
  > make-book atomic.pgn --min-game 1 --obs z7.obs.db3 --variant atomic
make-book rk.pgn --variant racingkings --min-game 1 --bin z8.bin
  ! make an index or a database
  > make-book rk.pgn --variant racingkings --min-game 1 --obs z8.obs.db3 --explorer z8.idx
make-book month.counts --leveldb z9.idx
  ! only an explorer's index can be made from counts
  > make-book li.counts --explorer z9.idx
make-book loss.pgn --min-game 1 --bin z10a.bin --evals loss.evals --max-loss 0
  ! allow a larger loss
  > make-book loss.pgn --min-game 1 --bin z10.bin --evals loss.evals --max-loss 300
info-book --bin empty
  ! this is a directory
  > info-book --bin s.bin
show empty
  ! give an index that make-book made
  > show full.idx
show papers
  ! this directory is not an index: give an index that make-book made
  > show full.idx
games s.bin
  ! make an index with polybook make-book
  > make-book en.pgn --explorer z11.idx && games z11.idx
show li.counts full.idx
  ! make an index with polybook make-book --explorer li.idx li.counts
  > make-book li.counts --explorer li.idx --force && show li.idx
show s.bin full.idx
  ! show it alone, or combine books with polybook merge-book
  > show s.bin && merge-book s.bin s.bin --out z13.bin
games li.idx
  ! use an index that make-book made from games
  > games full.idx
show full.idx --player B
  ! no player's name contains "B"
  > show full.idx --player A
show duel.idx --player Annn
  ! did you mean "Ann"?
  > show duel.idx --player Ann
cp en.pgn moved.pgn && make-book moved.pgn --explorer c1.idx && mv moved.pgn away.pgn && games c1.idx --id 0 --pgn
  ! put the file back, or make the index again
  > mv away.pgn moved.pgn && games c1.idx --id 0 --pgn && make-book moved.pgn --explorer c1.idx --force && games c1.idx --id 0 --pgn
cp en.pgn changed.pgn && make-book changed.pgn --explorer c2.idx && cp tagged.pgn changed.pgn && games c2.idx --id 0 --pgn
  ! make the index again
  > make-book changed.pgn --explorer c2.idx --force && games c2.idx --id 0 --pgn
make-book en.pgn --explorer c4.idx && cp notes.txt c4.idx/notes.txt && make-book en.pgn --explorer c4.idx --force
  ! move that file away, or choose another directory
  > make-book en.pgn --explorer c4b.idx && mv c4.idx/notes.txt n.txt && make-book en.pgn --explorer c4.idx --force
make-book en.pgn --counts c5.counts && cp notes.txt c5.counts/notes.parquet && make-book en.pgn --counts c5.counts --force
  ! move that file away, or choose another directory
  > make-book en.pgn --counts c5b.counts && mv c5.counts/notes.parquet n.txt && make-book en.pgn --counts c5.counts --force
make-book en.pgn --counts c6.counts && rm c6.counts/part-000.parquet && make-book c6.counts --bin c6.bin
  ! copy or make the file again
  > make-book en.pgn --counts c6.counts --force && make-book c6.counts --min-game 1 --bin c6.bin
make-book en.pgn --counts c7.counts && cut c7.counts/part-000.parquet 300 && make-book c7.counts --bin c7.bin
  ! copy or make the file again
  > cp none.counts/part-000.parquet c7.counts/part-000.parquet && make-book c7.counts --min-game 1 --bin c7.bin
make-book en.pgn --counts c8.counts && cp month.counts/part-000.parquet c8.counts/part-001.parquet && make-book c8.counts --bin c8.bin
  ! remove the file, or make the counts again
  > rm c8.counts/part-001.parquet && make-book c8.counts --min-game 1 --bin c8.bin && make-book en.pgn --counts c8.counts --force && make-book c8.counts --min-game 1 --bin c8b.bin
"#;

/// Advice about inputs, suites and filters.
pub const INPUTS: &str = r#"
make-book twice.pgn.gz --min-game 1 --bin w1.bin
  ! unpack the file once
  > make-book en.pgn.gz --min-game 1 --bin w1.bin
make-book utf16.pgn --min-game 1 --bin w2.bin
  ! convert the file to UTF-8, for instance with iconv -f UTF-16 -t UTF-8
  > make-book en.pgn --min-game 1 --bin w2.bin
make-book s.bin --min-game 1 --bin w3.bin
  ! give the games from which the book was made
  > make-book en.pgn --min-game 1 --bin w3.bin
make-book blobs.pgn --min-game 1 --bin w4.bin
  ! give a PGN file, uncompressed or compressed with gzip, bzip2, zstd or zip
  > make-book en.pgn.gz --min-game 1 --bin w4.bin
make-book notes.txt --min-game 1 --bin w5.bin
  ! give a PGN file, uncompressed or compressed with gzip, bzip2, zstd or zip
  > make-book en.pgn --min-game 1 --bin w5.bin
make-book none.zip --min-game 1 --bin w6.bin
  ! give a file of games
  > make-book en.pgn --min-game 1 --bin w6.bin
make-book cut.zip --min-game 1 --bin w7.bin
  ! download or pack the archive again
  > make-book good.zip --min-game 1 --bin w7.bin
make-book e.evals --min-game 1 --bin w8.bin
  ! give the store as evaluations, or as an input of polybook evals
  > make-book en.pgn --evals e.evals --max-loss 300 --min-game 1 --bin w8.bin && evals e.evals --out w8.epd
make-book s.obs.db3 --min-game 1 --bin w9.bin
  ! if the file is an OOBS database, convert it to another format with polybook convert
  > convert s.obs.db3 w9.bin --min-game 1
evals e.parquet --out w10.evals
  ! give the store from which the file was made
  > evals e.evals --out w10.evals
make-book none.counts/part-000.parquet --min-game 1 --bin w11.bin
  ! or give the directory of counts to which this file belongs
  > make-book none.counts --min-game 1 --bin w11.bin
make-book base.si4 --bin w12.bin
  ! export the games as PGN
  > make-book en.pgn --min-game 1 --bin w12b.bin
make-book document.rtf --bin w12.bin
  ! save the document as plain text
  > make-book en.pgn --min-game 1 --bin w12c.bin
make-book games.rar --bin w12.bin
  ! unpack the archive and give the files in it
  > make-book en.pgn --min-game 1 --bin w12.bin
make-book page.html --bin w13.bin
  ! download the file to which the page links
  > make-book en.pgn --min-game 1 --bin w13.bin
show full.idx --speed slow
  ! use ultraBullet, bullet, blitz, rapid, classical or correspondence
  > show full.idx --speed blitz
make-book tagged.pgn --since 2020.02.31 --min-game 1 --bin w14.bin
  ! use a day from 1 to 29 for this month
  > make-book tagged.pgn --since 2019.02.28 --min-game 1 --bin w14.bin
convert s.bin w15.epd --plies 1 --from en.pgn
  ! --from needs a file with a FEN or an EPD on each line
  > convert s.bin w15.epd --plies 1 --from start.epd
convert s.obs.db3 w16.epd --plies 1 --balance x --min-game 1
  ! use a range of
  > convert s.obs.db3 w16.epd --plies 1 --balance 0-100 --min-game 1
convert s.bin w17.pgn --plies 1 --opcodes
  ! applies only to suites of positions: use a file name that ends in .epd
  > convert s.bin w17.epd --plies 1 --opcodes
convert s.bin w18.epd --plies 1 --evals e.evals --eval 300..400
  ! widen the range of --eval
  > convert s.bin w18.epd --plies 1 --evals e.evals --eval -400..400
suite-report once.epd duel.pgn
  ! no game begins in a position of the suite (2 games read): give games with the position in the tag FEN or with the comment {book}
  > suite-report once.epd frc2.pgn
suite-report once.epd duel.pgn
  ! or give the suite as lines in PGN
  > suite-report mine.pgn duel.pgn
suite-report mine.pgn en.pgn
  ! no game begins with a line of the suite (1 game read): give the games that were played with this suite
  > suite-report mine.pgn duel.pgn
suite-report start.epd duel.pgn --first C
  ! "C" played no game with an opening of the suite: give another name with --first
  > suite-report start.epd duel.pgn --first Ann
suite-report start.epd ones.pgn --drop-one-sided --out left.epd
  ! all its openings are one-sided: use a larger --min-pairs
  > suite-report start.epd ones.pgn --drop-one-sided --min-pairs 2 --out left.epd
show papers/notes.txt
  ! this file contains no game: give a PGN file
  > show en.pgn
info-book papers/notes.txt
  ! this is text, not a Polyglot book: choose another file
  > info-book s.bin
filter s.bin --out f1.bin --min-weight 65535
  ! s.bin: no move is kept with --min-weight 65535, so the new book would be empty: use less strict options
  > filter s.bin --out f1.bin --min-weight 1
convert s.obs.db3 f2.bin
  ! s.obs.db3: no move of this database passes --min-game 3 and has a weight above 0, so the book would be empty: use less strict options
  > convert s.obs.db3 f2.bin --min-game 1
convert s.obs.db3 f3.bin --min-game 1 --win-factor 0
  ! no move of this database has a weight above 0, so the book would be empty: use --uniform, or other factors
  > convert s.obs.db3 f3.bin --min-game 1 --uniform && convert s.obs.db3 f4.bin --min-game 1 --loss-factor 1
suite-report start.epd duel.pgn --drop-one-sided --out half.pgn
  ! the output contains positions (EPD), as the suite does: choose a name that ends in .epd
  > suite-report start.epd duel.pgn --drop-one-sided --out half.epd
suite-report mine.pgn duel.pgn --drop-one-sided --out halfb.epd
  ! the output contains lines (PGN), as the suite does: choose a name that ends in .pgn
  > suite-report mine.pgn duel.pgn --drop-one-sided --out halfb.pgn
suite-report none.epd duel.pgn
  ! this suite contains no lines and no positions: choose another file
  > suite-report start.epd duel.pgn
make-book frc2.pgn --suite s1.epd --plies 1 --min-game 1
  ! no game contains 1 half-move after the starting position: give other starting positions with --from
  > make-book frc2.pgn --suite s1.epd --plies 1 --min-game 1 --from once.epd
make-book frc2.pgn --suite s2.epd --plies 2 --min-game 1
  ! use a smaller --plies, or give other starting positions with --from
  > make-book frc2.pgn --suite s2.epd --plies 2 --min-game 1 --from once.epd
make-book mate.pgn --suite s3.epd --plies 1 --min-game 1 --from last.epd
  ! give other starting positions with --from
  > make-book mate.pgn --suite s3.epd --plies 1 --min-game 1 --from start.epd
make-book en.pgn --suite s4.epd --plies 1
  ! the most frequent one in only 1: use a smaller --min-game
  > make-book en.pgn --suite s4.epd --plies 1 --min-game 1
"#;

/// Advice about databases, changed files, and memory budgets.
pub const DATABASES: &str = r#"
cp s.obs.db3 d1.obs.db3 && sql d1.obs.db3 'UPDATE Book SET Win = 7' && verify d1.obs.db3
  ! make the database again, or use an intact copy of the database
  > make-book en.pgn --min-game 1 --obs d1.obs.db3 --force && verify d1.obs.db3 && verify s.obs.db3
cp s.obs.db3 d2.obs.db3 && sql d2.obs.db3 'UPDATE Book SET Win = 7' && merge-book d2.obs.db3 s.obs.db3 --out d2b.obs.db3
  ! remove the checksum with DELETE FROM Info WHERE Name = 'Checksum'
  > sql d2.obs.db3 'DELETE FROM Info WHERE Name = "Checksum"' && merge-book d2.obs.db3 s.obs.db3 --out d2b.obs.db3
cp s.obs.db3 d3.obs.db3 && sql d3.obs.db3 'UPDATE Book SET Win = -7; DELETE FROM Info' && convert d3.obs.db3 d3.bin
  ! correct or delete the row
  > sql d3.obs.db3 'UPDATE Book SET Win = 7' && convert d3.obs.db3 d3.bin --min-game 1
cp s.obs.db3 d4.obs.db3 && sql d4.obs.db3 'INSERT OR REPLACE INTO Info VALUES ("Variant", "xiangqi"); DELETE FROM Info WHERE Name = "Checksum"' && convert d4.obs.db3 d4.bin
  ! give the variant with --variant
  > convert d4.obs.db3 d4.bin --min-game 1 --variant standard
tree d4.obs.db3
  ! this file is for the unknown variant "xiangqi": give the variant with --variant
  > tree d4.obs.db3 --variant standard
repertoire build d4.obs.db3 --color white --min-game 1 --out d4.pgn
  ! this file is for the unknown variant "xiangqi": give the variant with --variant
  > repertoire build d4.obs.db3 --color white --min-game 1 --out d4.pgn --variant standard
sql other.db3 'CREATE TABLE x(y)' && show other.db3
  ! give an OOBS database
  > show s.obs.db3
cp s.obs.db3 d6.obs.db3 && sql d6.obs.db3 'UPDATE Book SET Move = "e2e5"; DELETE FROM Info' && verify d6.obs.db3
  ! correct or delete these rows
  > sql d6.obs.db3 'DELETE FROM Book' && verify d6.obs.db3
cp e.evals d9.evals && cut d9.evals 70 && verify d9.evals
  ! make the store again
  > evals eval.pgn --out d9.evals --force && verify d9.evals
cp zh.counts c9.counts && rm c9.counts/counts.json && make-book c9.counts --bin c9.bin
  ! so it contains counts of a variant: name the variant
  > make-book c9.counts --bin c9.bin --variant crazyhouse --min-game 1
cp s.obs.db3 d5.obs.db3 && sql d5.obs.db3 'INSERT OR REPLACE INTO Info VALUES ("Games", "many"); DELETE FROM Info WHERE Name = "Checksum"' && convert d5.obs.db3 d5.bin
  ! correct this row
  > sql d5.obs.db3 'DELETE FROM Info WHERE Name = "Games"' && convert d5.obs.db3 d5.bin --min-game 1
cp s.obs.db3 d7.obs.db3 && sql d7.obs.db3 'UPDATE Book SET Win = "x"; DELETE FROM Info' && verify d7.obs.db3
  ! correct or delete these rows
  > sql d7.obs.db3 'UPDATE Book SET Win = 1' && verify d7.obs.db3
cp stats.idx e1.idx && rm e1.idx/CURRENT && show e1.idx
  ! give an index that make-book made
  > show stats.idx
cp stats.idx e2.idx && cut e2.idx/CURRENT 3 && show e2.idx
  ! make the index again
  > make-book en.pgn --leveldb e2b.idx --index-stats && show e2b.idx
evals eval.pgn --out e4.evals --engine nobody --positions start.epd --nodes 0
  ! use 1 or more
  > evals eval.pgn --out e4.evals
make-book en.pgn --min-game 1 --bin e5.bin --temp-dir notes.txt
  ! choose another directory
  > make-book en.pgn --min-game 1 --bin e5.bin --temp-dir papers
repertoire new duel.pgn --reference papers
  ! give
  > repertoire new duel.pgn --reference en.pgn
repertoire new duel.pgn --reference li.idx --earlier
  ! give a PGN file, or give an index made with polybook make-book --explorer
  > repertoire new duel.pgn --reference duel.idx --earlier && repertoire new duel.pgn --reference duel.pgn --earlier
repertoire gaps mine.pgn --color white --against duel.pgn --add 1 --out -
  ! give a file
  > repertoire gaps mine.pgn --color white --against duel.pgn --add 1 --out e7.pgn
pgheader - -c x
  ! give the file
  > pgheader two.bin -c x
convert s.bin e8.obs.db3
  ! use make-book --obs to make one from games, or merge-book to merge several
  > make-book en.pgn --min-game 1 --obs e8.obs.db3 && merge-book s.obs.db3 s.obs.db3 --out e8b.obs.db3
repertoire check mine.pgn duel.pgn
  ! give --color white or --color black
  > repertoire check mine.pgn duel.pgn --color white && repertoire check mine.pgn duel.pgn --color black
repertoire check mine.pgn --color white
  ! give the file of the repertoire, then the files of games
  > repertoire check mine.pgn duel.pgn --color white
show duel.idx --sort score --max-elo x
  ! use a whole number, 0 or larger
  > show duel.idx --sort score --max-elo 3000
convert s.obs.db3 f1.epd --plies 1 --min-game 1 --eval 80 --evals e.evals
  ! use a range of centipawns with the lower number first, such as 80..120
  > convert s.obs.db3 f1.epd --plies 1 --min-game 1 --eval 10..120 --evals e.evals
make-book badtag.pgn --min-game 1 --bin f4.bin
  ! use 1-0, 0-1, 1/2-1/2 or *
  > make-book en.pgn --min-game 1 --bin f4b.bin
make-book en.pgn --min-game 1 --bin f5.bin --force --replace
  ! see polybook make-book --help
  > make-book --help
openings full.idx --sort points
  ! needs --player
  > openings full.idx --sort points --player A
openings full.idx --sort score --result 1-0
  ! use --sort games
  > openings full.idx --sort games --result 1-0
show full.idx --result win
  ! needs --player
  > show full.idx --result win --player A --color white
make-book big.pgn --suite g1.epd --plies 1 --from long.epd --memory 64KiB --min-game 1
  ! times the size of the file
  > make-book big.pgn --suite g1.epd --plies 1 --from long.epd --memory 64MiB --min-game 1
suite-report start.epd big.pgn --memory 64KiB
  ! use a larger --memory
  > suite-report start.epd big.pgn --memory 64MiB
make-book sample.pgn --min-game 1 --bin g2.bin --minimax --memory 64KiB
  ! use a larger --memory, or use a larger --min-game
  > make-book sample.pgn --min-game 1 --bin g2.bin --minimax --memory 64MiB && make-book sample.pgn --min-game 2 --bin g2b.bin --minimax --memory 64KiB
repertoire build sample.pgn --color white --out g3.pgn --reach 1e9 --memory 64KiB
  ! use a larger --memory, or use a smaller --max-ply
  > repertoire build sample.pgn --color white --out g3.pgn --reach 1e9 --memory 64MiB
repertoire gaps sample.pgn --color white --against sample.pgn --memory 64KiB
  ! use a larger --memory, or use a smaller --max-ply
  > repertoire gaps sample.pgn --color white --against sample.pgn --memory 64MiB
make-book classes.counts classes.counts --counts g4.counts --memory 64KiB
  ! use a larger --memory
  > make-book classes.counts classes.counts --counts g4.counts --memory 64MiB
convert sample.bin g6.epd --plies 40 --limit 5
  ! use a smaller --plies
  > convert sample.bin g6.epd --plies 4 --limit 5
"#;

/// Advice about requests to the server.
pub const SERVER: &str = r#"
/games?requireDate=maybe&source=duel
  ! use true or false
  > /games?requireDate=true&source=duel
/games?rated=maybe&source=duel
  ! use rated, unknown or casual
  > /games?rated=rated,unknown&source=duel
/book.bin?source=duel
  ! minGame=1 keeps the moves
  > /book.bin?minGame=1&source=duel
/prepare?player=Ann&me=Bob&color=white&edits=e2e4&source=duel
  ! give the repertoire with the parameter repertoire
  > /prepare?player=Bob&me=Ann&color=black&edits=e2e4&repertoire=mine&source=duel
/scores
  ! use by=rating
  > /scores?by=rating
/player?player=Ann
  ! the parameter color is missing: use white, black or both
  > /player?player=Ann&color=both&source=duel
/lichess?opponentRating=2000-&source=duel
  ! add the parameter player
  > /lichess?opponentRating=2000-&player=Ann&source=duel
/lichess?result=win&source=duel
  ! add the parameter player
  > /lichess?result=win&player=Ann&source=duel
/lichess?color=white&opponent=Bob&source=duel
  ! add the parameter player, or remove color
  > /lichess?color=white&opponent=Bob&player=Ann&source=duel
/lichess?player=
  ! give at least one letter of the name
  > /lichess?player=Ann&source=duel
/lichess?since=x
  ! use a date of the form YYYY-MM or YYYY
  > /lichess?since=2020-01
/lichess?player=Ann
  ! use an index that make-book made from games
  > /lichess?player=Ann&source=duel
/games?source=li
  ! use an index that make-book made from games
  > /games?source=duel
/suggest
  ! the parameter field is missing: use player, event or opening
  > /suggest?field=player
/gaps?side=white&source=duel
  ! the parameter repertoire is missing: for white, use one of mine
  > /gaps?side=white&repertoire=mine&source=duel
/gaps?side=white&repertoire=x&source=duel
  ! no repertoire for white is called "x": use one of mine
  > /gaps?side=white&repertoire=mine&source=duel
/gaps?repertoire=mine&source=duel
  ! the parameter side is missing: use white or black
  > /gaps?side=white&repertoire=mine&source=duel
/gaps?side=white&repertoire=mine&frob=1
  ! this address accepts only the parameters variant, minElo,
  > /gaps?side=white&repertoire=mine&source=duel
/suggest?field=event&duplicates=once&source=duel
  ! apply only to players: use field=player
  > /suggest?field=player&duplicates=once&source=duel
/suggest?field=player&duplicates=x
  ! use once or all
  > /suggest?field=player&duplicates=all&source=duel
/lichess?source=x
  ! see the address /about
  > /about
/book.bin?minGame=1&depth=9999&source=duel
  ! use a number from 1 to 600
  > /book.bin?minGame=1&depth=600&source=duel
/games?limit=x&source=duel
  ! use a number from 0 to 200
  > /games?limit=200&source=duel
/games?skip=10001&source=duel
  ! use filters to reduce the number of games
  > /games?player=Ann&source=duel
/lichess?play=e2e4&play=d2d4
  ! is given twice: give the parameter once
  > /lichess?play=e2e4
/prepare?player=Bob&color=black&source=duel
  ! the parameter me is missing: give the name of the player who prepares
  > /prepare?player=Bob&color=black&me=Ann&source=duel
/prepare?player=Bob&me=Ann&color=both&source=duel
  ! the parameter color must be white or black, the color of the opponent
  > /prepare?player=Bob&me=Ann&color=white&source=duel
/lichess?since=2020-01&until=2019-01&source=duel
  ! exchange the two dates
  > /lichess?since=2019-01&until=2020-01&source=duel
/lichess?ratings=x
  ! use ratings from 0 to 4000, or unknown
  > /lichess?ratings=unknown
/book.bin?minGame=1&source=li
  ! use an index that make-book made from games
  > /book.bin?minGame=1&source=duel
/game/99?source=duel
  ! no game has this id: the address /games lists the games with their ids
  > /games?source=duel
/lichess?play=e2e4&source=
  ! the parameter source is empty: give a value
  > /lichess?play=e2e4&source=duel
/book.bin?minGame=1&variant=kingOfTheHill&source=duel
  ! request another variant
  > /book.bin?minGame=1&variant=standard&source=duel
/gaps?side=white&repertoire=mine&source=duel&variant=atomic
  ! the repertoire mine contains no games of atomic: request another variant
  > /gaps?side=white&repertoire=mine&source=duel&variant=standard
/prepare?player=Bob&me=Ann&color=black&repertoire=mine&source=duel&variant=atomic
  ! the repertoire mine contains no games of atomic: request another variant
  > /prepare?player=Bob&me=Ann&color=black&repertoire=mine&source=duel
/games?sort=x&source=duel
  ! use recent, rating or id
  > /games?sort=recent&source=duel
/frob
  ! the page of the explorer is at /
  > /
"#;

/// Advice that a test in another file follows: a part of the message, the file, and the test. The test contains this
/// part.
pub const FOLLOWED_ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "save it as a file",
        "src/explore/repertoire/move_source.rs",
        "a_pipe_or_a_device_is_no_repertoire",
    ),
    (
        "copy the data that you need to a file",
        "src/cli/input.rs",
        "a_device_without_an_end_is_refused",
    ),
    (
        "save the book as a file, and give that file",
        "src/formats/book/reader.rs",
        "a_device_without_an_end_is_no_book",
    ),
    (
        "choose fewer of these with",
        "src/formats/counts/classed.rs",
        "a_move_of_too_many_classes_is_an_error",
    ),
    (
        "make the counts with fewer of speed, rating and month",
        "src/formats/explorer_index/count_pages.rs",
        "a_position_has_a_limited_number_of_rows",
    ),
    (
        "choose fewer of speed, rating and month with",
        "src/formats/counts/writer.rs",
        "the_number_of_buffered_rows_of_a_key_is_limited",
    ),
    (
        "count fewer files at a time",
        "src/formats/counts/sidecar.rs",
        "a_sidecar_that_is_too_large_is_not_written",
    ),
    (
        "add fewer inputs at a time",
        "src/formats/evals/maker.rs",
        "stores_of_too_many_origins_are_not_added_up",
    ),
    (
        "write the file with larger row groups",
        "tests/counts.rs",
        "metadata_that_are_too_long_are_refused",
    ),
    (
        "make several indexes",
        "src/make_book/sinks/index.rs",
        "games_that_no_list_can_hold_are_refused_when_they_come",
    ),
    (
        "make several indexes",
        "src/formats/explorer_index/games.rs",
        "an_index_has_a_limited_number_of_names",
    ),
    (
        "copy its rows to an ordinary table",
        "tests/damaged.rs",
        "databases_whose_tables_are_not_plain_are_refused",
    ),
    (
        "write counts instead of a database, or distribute the games over several databases",
        "tests/counts.rs",
        "counts_of_more_games_than_a_database_can_contain",
    ),
    (
        "choose a directory with more space",
        "src/make_book/run.rs",
        "a_shortage_is_reported_with_needed_and_free_space",
    ),
    (
        "free some space, or give a file on another disk",
        "tests/faults.rs",
        "a_database_for_a_full_disk_goes_to_another_disk",
    ),
    (
        "make the index again with",
        "tests/index.rs",
        "an_index_of_another_version_is_named",
    ),
    (
        "run the command again when no other program is writing",
        "src/explore/repertoire/move_source.rs",
        "a_repertoire_that_changes_between_two_readings_is_an_error",
    ),
    (
        "run the command again when no other program is writing",
        "src/formats/obs/rows.rs",
        "a_change_during_the_reading_is_an_error",
    ),
    (
        "run the command again when no other program is writing",
        "src/games/pgn/input/mod.rs",
        "read_while_it_changes",
    ),
    (
        "was replaced while it was read: run the command again",
        "tests/outputs.rs",
        "a_part_of_counts_that_were_replaced_is_not_called_damaged",
    ),
    (
        "while it was open: open the index again",
        "src/formats/leveldb/database.rs",
        "held_tables_go_on_answering_and_others_are_refused",
    ),
    (
        "while it was open: open the database again",
        "tests/obs_foreign.rs",
        "a_database_that_is_replaced_goes_on_answering",
    ),
    (
        "check the disk, or use another directory",
        "tests/faults.rs",
        "temporary_files_that_change_are_an_error",
    ),
    (
        "close that program and rename the finished output",
        "tests/windows.rs",
        "a_book_that_another_program_opens_meanwhile_is_kept_beside_the_new_one",
    ),
    (
        "try again later",
        "tests/serve_hostile.rs",
        "games_that_are_read_do_not_hold_up_counts",
    ),
    (
        "request fewer games, or serve an uncompressed PGN file",
        "tests/serve_hostile.rs",
        "games_that_take_long_to_read_are_given_up",
    ),
    (
        "save the edited repertoire, and start the server with",
        "tests/serve_page.rs",
        "moves_that_a_user_adds_belong_to_the_repertoire",
    ),
    (
        "or choose the rows of a class with DuckDB",
        "tests/scale.rs",
        "the_queries_of_docs_scale_return_results_in_order",
    ),
    (
        "add --no-cache to make the index",
        "tests/serve.rs",
        "advice_about_an_unwritable_cache_works",
    ),
    (
        "add w or b, and KQkq or -, after the board",
        "src/chess/position/line.rs",
        "advice_about_missing_and_superfluous_fields_works",
    ),
    (
        "add KQkq or - after the side to move",
        "src/chess/position/line.rs",
        "advice_about_missing_and_superfluous_fields_works",
    ),
    (
        "cast the column",
        "tests/counts.rs",
        "an_error_about_an_impossible_row_names_its_part",
    ),
    (
        "cast the column to signed numbers of 64 bits",
        "tests/counts.rs",
        "an_error_about_an_impossible_row_by_class_names_its_part",
    ),
    (
        "correct the row",
        "tests/counts.rs",
        "an_error_about_an_impossible_row_names_its_part",
    ),
    (
        "correct the rows",
        "tests/counts.rs",
        "an_error_about_an_impossible_row_names_its_part",
    ),
    (
        "write a value in every row",
        "tests/counts.rs",
        "an_error_about_an_impossible_row_names_its_part",
    ),
    (
        "keep only one of the columns",
        "tests/counts.rs",
        "an_error_about_an_impossible_row_names_its_part",
    ),
    (
        "correct one of the two rows",
        "tests/counts.rs",
        "an_error_about_an_impossible_row_by_class_names_its_part",
    ),
    (
        "sort the rows by key, move and identity",
        "tests/counts.rs",
        "an_error_about_an_impossible_row_by_class_names_its_part",
    ),
    (
        "count all games by the same properties",
        "tests/counts.rs",
        "an_error_about_an_impossible_row_by_class_names_its_part",
    ),
    (
        "keep these rows in all counts",
        "tests/counts.rs",
        "counts_without_games_that_end_in_a_position_are_not_added_to_others",
    ),
    (
        "sort the rows, or write the file without sorting_columns",
        "tests/counts.rs",
        "rows_that_are_not_in_the_order_that_they_tell_are_an_error",
    ),
    (
        "use lichess:NAME or chesscom:NAME",
        "tests/download.rs",
        "mistakes_in_the_command_line_are_explained",
    ),
    (
        "use the name of the account",
        "tests/download.rs",
        "mistakes_in_the_command_line_are_explained",
    ),
    (
        "download this account without a condition on that",
        "tests/download.rs",
        "mistakes_in_the_command_line_are_explained",
    ),
    (
        "make a new one at https://lichess.org/account/oauth/token",
        "tests/download.rs",
        "tokens_are_sent_to_lichess_and_never_printed",
    ),
    (
        "choose one source",
        "tests/kinds.rs",
        "a_download_reads_the_games_as_the_index_did",
    ),
    (
        "close the output in that program",
        "tests/windows.rs",
        "a_book_that_another_program_holds_open_is_refused_before_games_are_read",
    ),
    (
        "correct the counts",
        "src/formats/counts/record.rs",
        "the_number_of_frequent_moves_is_limited",
    ),
    (
        "write the Parquet files with larger row groups",
        "tests/memory.rs",
        "counts_of_thousands_of_row_groups",
    ),
    (
        "give a directory inside it",
        "tests/outputs.rs",
        "an_output_that_is_a_mount_point_is_refused_before_games_are_read",
    ),
    (
        "remove the directory first, or choose another directory",
        "tests/outputs.rs",
        "a_directory_of_a_lower_layer_is_refused_before_games_are_read",
    ),
    (
        "make the file writable, or choose another output",
        "tests/outputs.rs",
        "a_replaced_output_keeps_its_rights_and_a_read_only_one_is_refused",
    ),
    (
        "open and close the database with that program, or run sqlite3",
        "tests/damaged.rs",
        "reading_a_database_in_wal_mode_leaves_nothing_beside_it",
    ),
    (
        "open and close the database with that program, or choose another file",
        "tests/damaged.rs",
        "a_journal_of_an_interrupted_program_is_named_and_the_advice_works",
    ),
    (
        "read these answers first",
        "src/serve/client.rs",
        "large_answers_hold_permits_until_they_are_sent",
    ),
    (
        "remove it, or choose another output",
        "tests/evals.rs",
        "a_journal_can_always_be_named_and_removed",
    ),
    (
        "start the server again when no program writes the file",
        "tests/serve_page.rs",
        "a_repertoire_that_became_a_pipe_is_refused_and_a_renamed_one_is_read",
    ),
    (
        "use polybook make-book, or start the server with a larger --book-games",
        "tests/serve_page.rs",
        "an_operator_limits_the_games_of_books",
    ),
    (
        "shorten the comment",
        "tests/make_book.rs",
        "a_comment_that_is_too_long_leaves_no_output_at_all",
    ),
    (
        "shorten its comment with pgheader -c",
        "tests/editing.rs",
        "an_edit_says_if_the_header_cannot_mention_it",
    ),
    (
        "repeat the command to continue",
        "tests/interrupts.rs",
        "an_engine_at_work",
    ),
    (
        "wait until that run ends",
        "tests/interrupts.rs",
        "an_engine_at_work",
    ),
    (
        "wait until that run ends, or choose another output",
        "tests/interrupts.rs",
        "two_edits_of_one_book",
    ),
    (
        "repeat that run, or remove the file",
        "tests/evals.rs",
        "a_run_that_was_killed_goes_on",
    ),
    (
        "move the journal away, or remove it to evaluate the positions again",
        "src/formats/evals/journal.rs",
        "whatever_was_written_last_is_whole_or_gone",
    ),
    (
        "wait until that program has finished",
        "src/formats/obs/error.rs",
        "what_another_program_has_not_finished_is_named_with_its_file",
    ),
    (
        "wait until that program has finished, or run sqlite3 FILE",
        "tests/damaged.rs",
        "a_journal_of_an_interrupted_program_is_named_and_the_advice_works",
    ),
    (
        "send at most",
        "tests/serve_page.rs",
        "edits_that_are_too_long_for_an_address_are_sent_as_a_form",
    ),
    (
        "send it as",
        "tests/serve_page.rs",
        "edits_that_are_too_long_for_an_address_are_sent_as_a_form",
    ),
    (
        "restart the server when no other program is writing the file",
        "tests/serve_page.rs",
        "a_book_of_files_that_have_changed_is_refused",
    ),
    (
        "mount its directory instead, or choose another output",
        "tests/outputs.rs",
        "an_output_that_is_a_mount_point_is_refused_before_games_are_read",
    ),
    (
        "paste the moves, the FEN or the PGN of the game",
        "src/serve/board.rs",
        "pasted_text_is_recognized_by_its_form",
    ),
    (
        "--keep-one keeps the best move of each position",
        "tests/evals.rs",
        "a_position_can_lose_all_its_moves",
    ),
    (
        "allow this with --allow-pgn",
        "tests/index.rs",
        "a_server_refuses_pgn_files_elsewhere",
    ),
    (
        "give a variant of the repertoire with the argument variant",
        "python/tests/test_polybook.py",
        "test_a_preparation_is_that_of_the_command",
    ),
    (
        "add up some of the directories first",
        "tests/memory.rs",
        "counts_by_class_of_many_directories",
    ),
    (
        "keep only the most played lines with",
        "src/formats/suite/source.rs",
        "a_stopped_search_says_whether_it_found_lines",
    ),
    (
        "leave rare moves out of the book",
        "src/formats/suite/source.rs",
        "a_stopped_search_says_whether_it_found_lines",
    ),
    (
        "name at least one file",
        "python/tests/test_polybook.py",
        "test_sources_are_a_text_a_path_or_a_list_of_them",
    ),
    (
        "install one of them, for example with pip install pandas",
        "python/tests/test_polybook.py",
        "test_half_moves_become_a_data_frame",
    ),
    (
        "leave result out",
        "python/tests/test_polybook.py",
        "test_a_preparation_is_that_of_the_command",
    ),
    (
        "also give the name of a player",
        "python/tests/test_polybook.py",
        "test_openings_are_those_of_the_command",
    ),
    (
        "remove it, or pass force=True to replace it",
        "python/tests/test_polybook.py",
        "test_index_database_and_explorer",
    ),
    (
        "give only one of them",
        "python/tests/test_polybook.py",
        "test_index_database_and_explorer",
    ),
    (
        "open it with Explorer::open, and use tree::Explored",
        "src/explore/tree.rs",
        "an_explorers_index_says_how_to_get_its_moves",
    ),
];
