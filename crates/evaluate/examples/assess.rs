//! Judges a table as `trackway metrics` does, without the rest of it: `assess TABLE [--fairness COLUMN] [--always-resample]
//! [--resamples N]`. Quick to build for a benchmark.
#![allow(clippy::print_stdout, reason = "this is its answer")]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use trackway_data::model::Frame;
use trackway_data::pass::{Watch, default_units_in_flight};
use trackway_data::read::Source;
use trackway_evaluate::{Spec, assess};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let table = arguments.next().ok_or("a table is needed")?;
    let mut spec = Spec::default();
    while let Some(option) = arguments.next() {
        match option.as_str() {
            "--always-resample" => spec.always_resample = true,
            "--fairness" => spec.fairness.extend(arguments.next()),
            "--resamples" => spec.resamples = arguments.next().ok_or("a number is needed")?.parse()?,
            other => return Err(format!("`{other}` is no option").into()),
        }
    }
    let mut source = Source::open_paths(Path::new(""), "predictions", &Default::default(), &[table])?;
    let watch = Watch {
        progress: &|_, _| {},
        cancelled: &AtomicBool::new(false),
        units_in_flight: default_units_in_flight(),
    };
    let (frame, _) = Frame::sample(&mut source, None, (usize::MAX, 0), &watch)?;
    println!("{}", serde_json::to_string_pretty(&assess(&frame, &spec, None)?)?);
    Ok(())
}
