//! Looks for leakage between two data sets, for `bench/data/` and for trying: `leakage TRAIN TEST [--label COLUMN]
//! [--group COLUMN] [--time COLUMN] [--only NAMES]`. Prints one JSON line per check.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::path::Path;

use trackway_data::leakage::{Roles, examine};
use trackway_tables::DataSpec;
use trackway_tables::ReadContext;
use trackway_tables::pass::UNWATCHED;
use trackway_tables::read::Source;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [train, test, ..] = arguments.as_slice() else { return Err("usage: leakage TRAIN TEST".into()) };
    let value_of =
        |flag: &str| arguments.iter().position(|it| it == flag).and_then(|at| arguments.get(at + 1)).cloned();
    let open = |set: &str, path: &String| {
        Source::open(
            Path::new(""),
            set,
            &DataSpec { path: path.clone(), ..DataSpec::default() },
            &ReadContext::default(),
        )
    };
    let (mut train, mut test) = (open("train", train)?, open("test", test)?);
    let roles = Roles {
        label: value_of("--label"),
        group: value_of("--group"),
        time: value_of("--time"),
        ..Roles::default()
    };
    let only: Vec<String> =
        value_of("--only").map_or_else(Vec::new, |names| names.split(',').map(str::to_owned).collect());
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|it| format!("leakage.{it}") == name);
    let leakage = examine(&mut train, &mut test, &roles, &is_wanted, &UNWATCHED)?;
    for result in leakage.results(&roles, &train, &test) {
        println!("{}", serde_json::to_string(&result)?);
    }
    if let Some(near) = &leakage.near {
        println!("{}", serde_json::to_string(near)?);
    }
    Ok(())
}
