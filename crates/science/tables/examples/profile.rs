//! Profiles a data set in one pass, for `bench/data/` and for trying: `profile PATH [--label COLUMN] [--read-only]
//! [--json FILE]`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::path::Path;

use trackway_tables::DataSpec;
use trackway_tables::ReadContext;
use trackway_tables::pass::{Pass, UNWATCHED, scan};
use trackway_tables::profile::Profile;
use trackway_tables::read::{Chunk, Source};

/// Counts rows, to measure reading alone.
struct Count(u64);

impl Pass for Count {
    fn observe(&mut self, chunk: &Chunk) {
        self.0 += chunk.batch.num_rows() as u64;
    }

    fn merge(&mut self, later: Self) {
        self.0 += later.0;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().ok_or("usage: profile PATH [--label COLUMN] [--read-only] [--json FILE]")?;
    let value_of =
        |flag: &str| arguments.iter().position(|it| it == flag).and_then(|at| arguments.get(at + 1));
    let spec = DataSpec { path: path.clone(), ..DataSpec::default() };
    let mut source = Source::open(Path::new(""), "data", &spec, &ReadContext::default())?;
    if arguments.iter().any(|it| it == "--read-only") {
        let (count, coverage) = scan(&mut source, &|_| Count(0), &UNWATCHED)?;
        println!("{} rows, {} rejected", count.0, coverage.rows_rejected);
        return Ok(());
    }
    let (profile, coverage) = Profile::of(&mut source, value_of("--label").map(String::as_str), &UNWATCHED)?;
    println!("{} rows, {} rejected", profile.rows, coverage.rows_rejected);
    for column in profile.columns.iter().map(|column| column.summary()) {
        let top: Vec<_> =
            column.top_values.iter().take(3).map(|it| format!("{}×{}", it.value, it.count)).collect();
        println!(
            "{:16} {:10} null {:8} distinct {:9} mean {:?} {:?} label {:?} top {}",
            column.name,
            format!("{:?}", column.kind),
            column.null_count,
            column.distinct_estimate,
            column.mean,
            column.stddev,
            column.label_association.map(|it| it.value),
            top.join(" ")
        );
    }
    if let Some(file) = value_of("--json") {
        std::fs::write(file, serde_json::to_string(&profile)?)?;
    }
    Ok(())
}
