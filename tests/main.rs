//! The tests that run the binary. They form one program, because linking the library into a program for each file took
//! most of the time.

#[macro_use]
mod common;

mod advice;
#[cfg(feature = "serve")]
mod api_page;
mod architecture;
mod books;
mod classes;
mod clocks;
mod command_line;
mod counted_index;
mod counts;
mod damaged;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(unix)]
mod docs;
#[cfg(feature = "serve")]
mod doors;
#[cfg(feature = "download")]
mod download;
mod editing;
mod engine;
mod eval_weights;
mod evals;
#[cfg(feature = "serve")]
mod examples;
mod explorer;
mod extracted;
#[cfg(target_os = "linux")]
mod faults;
mod filter;
mod index;
mod inputs;
mod interop_book;
#[cfg(unix)]
mod interrupts;
mod json_names;
mod kinds;
mod make_book;
#[cfg(target_os = "linux")]
mod memory;
mod minimax;
mod obs;
mod obs_foreign;
mod obs_merge;
#[cfg(feature = "serve")]
mod openapi;
mod openings;
mod outputs;
#[cfg(all(unix, feature = "serve"))]
mod page;
mod pgn_as_found;
mod pgn_as_index;
mod pgn_as_written;
#[cfg(feature = "serve")]
mod positions;
#[cfg(target_os = "linux")]
mod power_cuts;
mod prepare;
#[cfg(unix)]
mod progress;
mod questions;
#[cfg(unix)]
mod readers;
mod refusals;
mod repertoire;
#[cfg(unix)]
mod scale;
mod search;
mod selections;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod serve_hostile;
#[cfg(feature = "serve")]
mod serve_page;
#[cfg(feature = "serve")]
mod statistics;
mod suite_report;
mod suites;
mod tables;
mod tree;
mod variants;
mod variations;
#[cfg(windows)]
mod windows;
