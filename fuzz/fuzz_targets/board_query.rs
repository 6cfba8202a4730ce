#![no_main]

use std::time::Duration;

use polybook_fuzz::board_query::{check, texts};
use rustix::time::{ClockId, clock_gettime};

/// The maximum time for refusing or compiling a query. A query takes a few hundredths of it.
const MAX_TIME: Duration = Duration::from_secs(1);

/// Returns the time for which the processor has run this thread. Other processes do not change it.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.try_into().expect("times are positive")
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| for text in texts(data) {
    let begin = thread_time();
    let parsed = text.parse();
    let time = thread_time() - begin;
    assert!(time < MAX_TIME, "{time:?} for {} bytes", text.len());
    check(&text, parsed);
});
