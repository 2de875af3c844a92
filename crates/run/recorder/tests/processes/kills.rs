//! SIGKILL at random times: what a call has returned for is in the record.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use trackway_core::{Rng as _, SplitMix64};
use trackway_formats::frames::DamageKind;
use trackway_recorder::Recorder;

use crate::{Attempt, ROLE_ARGUMENTS, numbers_until, say, segments_in, steps_of};

/// How many kills by default; `TRACKWAY_KILLS` sets it, and `TRACKWAY_SEED` the random times.
const KILLS: u64 = 50;
const RANKS: u64 = 8;
const THREADS: u64 = 4;
/// Steps of a thread are this far from those of the next.
const APART: u64 = 1 << 32;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

pub fn log_forever() {
    let run = Recorder::attach();
    for step in 1.. {
        run.log(step, &[("loss", 1.0 / step as f64), ("rate", 0.5)]);
        if step % 16 == 0 {
            say(step);
        }
    }
}

/// Proves that SIGKILL, at any time, loses nothing that was logged before it, and that a frame it cut in two is the
/// only thing a reader skips.
#[test]
fn sigkill_loses_nothing_that_was_logged() {
    let (kills, seed) = (number("TRACKWAY_KILLS", KILLS), number("TRACKWAY_SEED", 1));
    let mut random = SplitMix64::new(seed);
    let mut points = 0;
    for kill in 0..kills {
        let attempt = Attempt::new();
        let mut child = attempt.start("log_forever");
        let target = 1 + random.next_u64() % 3_000;
        let reported = numbers_until(&mut child, |step| step >= target);
        std::thread::sleep(Duration::from_micros(random.next_u64() % 2_000));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let segments = segments_in(&attempt.records());
        let steps: BTreeSet<_> = steps_of(&segments).into_iter().collect();
        let missing = (1..=reported).find(|step| !steps.contains(step));
        assert_eq!(missing, None, "kill {kill} of seed {seed}, told up to {reported}");
        assert_eq!((segments.len(), segments[0].close), (1, None));
        assert!(segments[0].damage.iter().all(|damage| damage.kind == DamageKind::TornTail));
        assert_eq!(segments[0].lost_frames, 0);
        points += 2 * reported;
    }
    println!("{kills} kills of a process that logs: of {points} points told, none lost");
}

pub fn log_in_threads() {
    let run = Recorder::attach();
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let run = run.clone();
            std::thread::spawn(move || {
                for step in 1..u64::from(u32::MAX) {
                    run.log(thread * APART + step, &[("loss", step as f64)]);
                    if step % 64 == 0 {
                        say(thread * APART + step);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Proves the same for eight ranks of four threads each that write into one folder and are killed together.
#[test]
fn ranks_and_threads_that_are_killed_lose_nothing() {
    let attempt = Attempt::new();
    let program = std::env::current_exe().unwrap();
    let start = |rank: u64| {
        let mut command = attempt.command(&program, "log_in_threads");
        command.args(ROLE_ARGUMENTS).env("RANK", rank.to_string()).env("WORLD_SIZE", RANKS.to_string());
        command.spawn().unwrap()
    };
    let mut children: Vec<_> = (0..RANKS).map(start).collect();
    // What each thread of each rank reported last: a pipe that is read up to here holds later lines too, so these are
    // few.
    let reported: Vec<_> =
        children.iter_mut().map(|child| numbers_until(child, |step| step % APART >= 1_000)).collect();
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let segments = segments_in(&attempt.records());
    assert_eq!(segments.len() as u64, RANKS);
    for (child, reported) in children.iter().zip(reported) {
        let own = segments.iter().find(|one| one.header.as_ref().unwrap().pid == child.id()).unwrap();
        let steps: BTreeSet<_> = own.metric_points().map(|point| point.step).collect();
        let first = reported / APART * APART;
        assert!(
            (first + 1..=reported).all(|step| steps.contains(&step)),
            "a step up to {reported} is missing"
        );
        assert_eq!(own.lost_frames, 0);
        assert!(own.damage.iter().all(|damage| damage.kind == DamageKind::TornTail));
    }
}
