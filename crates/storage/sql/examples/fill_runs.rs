//! Fills a ledger with sealed runs and their metrics: `fill_runs LOCATION RUNS METRICS NOW_SECONDS`. The newest run is
//! created at `NOW_SECONDS` since 1970.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for benchmarks")]

use trackway_core::Timestamp;
use trackway_ledger::Ledger;
use trackway_sql::conformance::fill_runs;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| arguments[place].parse::<u32>().unwrap();
    let now = Timestamp::from_micros(i64::from(number(3)) * 1_000_000);
    fill_runs(&Ledger::open(&arguments[0]).unwrap(), number(1), number(2), now).unwrap();
    println!("{} runs in {}", arguments[1], arguments[0]);
}
