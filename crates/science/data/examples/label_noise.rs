//! The label noise check by itself, to be measured: `label_noise FILE LABEL [PROBABILITIES]`, suspects as JSON.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::path::Path;
use std::process::ExitCode;

use trackway_data::integrity::{label_noise, label_noise_from};
use trackway_tables::DataSpec;
use trackway_tables::ReadContext;
use trackway_tables::pass::UNWATCHED;
use trackway_tables::read::Source;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, label, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: label_noise FILE LABEL [PROBABILITIES]");
        return ExitCode::FAILURE;
    };
    let open = |path: &String| {
        Source::open(
            Path::new(""),
            "data",
            &DataSpec { path: path.clone(), ..DataSpec::default() },
            &ReadContext::default(),
        )
    };
    let answer = open(file).and_then(|mut source| match rest {
        [] => label_noise(&mut source, label, 0, &UNWATCHED),
        [path, ..] => label_noise_from(&mut source, &mut open(path)?, label, &UNWATCHED),
    });
    match answer {
        Ok((result, noise)) => {
            println!("{}", serde_json::json!({ "result": result, "noise": noise }));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
