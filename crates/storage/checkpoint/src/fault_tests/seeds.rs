use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use trackway_store::testing::seeds;

/// Runs the seeds given in the environment, else the first `usual` ones, on all cores, and names the one that fails. A
/// single seed is shown.
pub(super) fn play_all<T: Debug>(what: &str, usual: u64, play: impl Fn(u64) -> T + Sync) {
    let seeds = seeds(usual);
    if seeds.end - seeds.start == 1 {
        println!("{:#?}", play(seeds.start));
        return;
    }
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let play_some = |worker: usize| {
        for seed in seeds.clone().skip(worker).step_by(workers) {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| play(seed))) {
                println!("seed {seed} of {what} fails; TRACKWAY_SEED={seed} plays it again");
                resume_unwind(panic);
            }
        }
    };
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let play_some = &play_some;
            scope.spawn(move || play_some(worker));
        }
    });
    println!("{} seeds of {what}", seeds.count());
}
