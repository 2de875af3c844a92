//! Times resolving a data set whose files did not change, as a run does it before each launch: `resolve PATH CACHE [REPEATS]`.
//! Prints the milliseconds of each repetition, with the cache of hashes read before and written after, one per line.
#![allow(clippy::print_stdout, reason = "an example prints")]
#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::path::Path;
use std::time::Instant;

use trackway_core::{ManualClock, Timestamp};
use trackway_data::{HashCache, Resolver};
use trackway_tables::pass::UNWATCHED;
use trackway_tables::{DataSpec, ReadContext};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, cache_path, ..] = arguments.as_slice() else {
        return Err("usage: resolve PATH CACHE [REPEATS]".into());
    };
    let repeats: usize = arguments.get(2).map_or(Ok(15), |count| count.parse())?;
    // Later than the files, so that their time of change is not a fresh one.
    let clock = ManualClock::at(Timestamp::from_micros(i64::MAX / 2));
    let spec = DataSpec { path: path.clone(), ..DataSpec::default() };
    for _ in 0..repeats {
        let start = Instant::now();
        let cache = HashCache::load(Path::new(cache_path));
        let context = ReadContext::default();
        let resolver = Resolver {
            base: Path::new("."),
            context: &context,
            cache: Some(&cache),
            clock: &clock,
            watch: &UNWATCHED,
        };
        let manifest = resolver.resolve("train", &spec)?;
        cache.save()?;
        println!("{:.2} ms, {} files", start.elapsed().as_secs_f64() * 1e3, manifest.files.len());
    }
    Ok(())
}
