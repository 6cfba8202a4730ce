//! Advice that tests in other files follow.

/// Advice that a test in another file follows: a part of the message, the file, and the test. The test contains this
/// part.
pub const FOLLOWED_ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "put -- before it",
        "tests/engine.rs",
        "an_engine_among_the_sources_is_explained",
    ),
    (
        "choose a variant with --variant",
        "tests/variants.rs",
        "answers_say_how_many_games_of_other_variants_they_leave_out",
    ),
    (
        "give the file without the color",
        "tests/engine.rs",
        "only_moves_of_the_named_player_are_played",
    ),
    (
        "give --min-pairs 5",
        "tests/suite_report.rs",
        "openings_that_one_pair_makes_one_sided_are_named",
    ),
    (
        "remove them with --remove",
        "tests/editing.rs",
        "a_removed_position_takes_along_what_only_it_led_to",
    ),
    (
        "choose the other side, or another file",
        "tests/repertoire/sent.rs",
        "files_that_are_no_repertoires_are_refused",
    ),
    (
        "send an uncompressed PGN file, or a book (.bin)",
        "tests/repertoire/sent.rs",
        "files_that_are_no_repertoires_are_refused",
    ),
    (
        "request this variant",
        "tests/repertoire/sent.rs",
        "the_page_and_the_command_practise_the_same_repertoire",
    ),
    (
        "remove files that you do not need",
        "src/serve/uploads.rs",
        "stored_files_have_new_names_with_their_side",
    ),
    (
        "give the other side with --color",
        "tests/repertoire/practise.rs",
        "the_advice_about_files_of_results_works",
    ),
    (
        "try again when it has ended",
        "tests/repertoire/practise.rs",
        "an_answer_waits_until_another_program_has_recorded_its_own",
    ),
    (
        "save the repertoire as a file",
        "tests/repertoire/practise.rs",
        "what_cannot_be_practised_is_refused",
    ),
    (
        "rename it to begin anew",
        "tests/repertoire/practise.rs",
        "the_advice_about_files_of_results_works",
    ),
    (
        "rename it",
        "src/explore/practice/tests.rs",
        "other_files_are_no_schedules",
    ),
    (
        "use this version",
        "src/explore/practice/tests.rs",
        "other_files_are_no_schedules",
    ),
    (
        "move it away, or add its games yourself",
        "tests/download.rs",
        "games_that_cannot_be_added_are_kept_in_another_file",
    ),
    (
        "give each archive as a file",
        "tests/inputs.rs",
        "bytes_before_a_zip_archive_are_a_warning",
    ),
    (
        "leave out these options",
        "tests/make_book.rs",
        "the_summary_ends_with_commands_that_show_the_outputs",
    ),
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
        "send fewer positions, or request fewer moves and games",
        "tests/positions.rs",
        "answers_that_are_too_large_together_are_refused",
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
