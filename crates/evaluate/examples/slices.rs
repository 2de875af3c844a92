//! Searches blind spots, for `bench/evaluate/` and for trying: `slices TABLE --error COLUMN [--top K] [--max-level L]
//! [--alpha A] [--min-support N] [--holdout SHARE] [--seed N] [--since FILE]`. Without `--holdout` all rows are searched. Prints the answer as
//! JSON, and the seconds of the search alone on stderr.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "an example prints and measures"
)]

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use trackway_data::DataSpec;
use trackway_data::model::Frame;
use trackway_data::pass::UNWATCHED;
use trackway_data::read::Source;
use trackway_evaluate::search::{ErrorSource, Roles, Settings, Watch, find};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(table) = arguments.first() else { return Err("usage: slices TABLE --error COLUMN".into()) };
    let text = |flag: &str| arguments.iter().position(|it| it == flag).and_then(|at| arguments.get(at + 1));
    let number = |flag: &str| text(flag).map(|text| text.parse::<f64>()).transpose();
    let usual = Settings::default();
    let settings = Settings {
        top: number("--top")?.map_or(usual.top, |it| it as usize),
        max_level: number("--max-level")?.map_or(usual.max_level, |it| it as usize),
        alpha: number("--alpha")?.unwrap_or(usual.alpha),
        min_support: number("--min-support")?.map(|it| it as u32),
        holdout: number("--holdout")?,
        seed: number("--seed")?.map_or(usual.seed, |it| it as u64),
        ..usual
    };
    let roles = Roles {
        error: ErrorSource::Column(text("--error").cloned().unwrap_or_else(|| "error".to_owned())),
        baseline: None,
        group: None,
        features: Vec::new(),
        skip: Vec::new(),
        categorical: Vec::new(),
    };
    let earlier = match text("--since") {
        Some(path) => Some(serde_json::from_str(&std::fs::read_to_string(path)?)?),
        None => None,
    };
    let spec = DataSpec { path: table.clone(), ..DataSpec::default() };
    let mut source = Source::open(Path::new(""), "table", &spec)?;
    let (frame, _) = Frame::sample(&mut source, None, (usize::MAX, 0), &UNWATCHED)?;
    let began = Instant::now();
    let cancelled = AtomicBool::new(false);
    let watch = Watch { progress: &|_, _, _| {}, cancelled: &cancelled };
    let answer = find(frame, &roles, &settings, earlier.as_ref(), &watch)?;
    eprintln!("search_seconds {}", began.elapsed().as_secs_f64());
    println!("{}", serde_json::to_string_pretty(&answer)?);
    Ok(())
}
