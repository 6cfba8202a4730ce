# Reads a PGN file into a database of Scid: read_games.tcl DATABASE FILE GAMES. Checks that every game is there with
# its variations, and that Scid reports no errors.
lassign $argv database file expected
set base [sc_base create $database]
lassign [sc_base import $base $file] games problems
if {$games != $expected || $problems ne ""} {
    puts stderr "$games games, expected $expected: $problems"
    exit 1
}
set variations 0
for {set game 1} {$game <= $games} {incr game} {
    sc_game load $game
    incr variations [regexp -all {\(} [sc_game pgn -comments 1 -variations 1]]
}
sc_base close $base
puts $variations
