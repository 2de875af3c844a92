//! Runs the planned steps: each as soon as those it needs have ended, a few at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};

use trackway_core::checks::CheckResult;

use super::plan::PlannedStep;

/// Steps at work at the same time. Each that reads data uses all cores and a bounded part of the memory; more of them
/// would add memory and no speed.
const STEPS_AT_ONCE: usize = 2;

struct State {
    waiting: Vec<usize>,
    ended: Vec<bool>,
    results: Vec<Vec<CheckResult>>,
}

/// The answers of every step, in the order of the plan. `run` is called once for each that is not answered already.
pub fn execute(
    planned: &[PlannedStep],
    run: &(dyn Fn(&PlannedStep) -> Vec<CheckResult> + Sync),
) -> Vec<Vec<CheckResult>> {
    let mut state = State {
        waiting: Vec::new(),
        ended: vec![false; planned.len()],
        results: vec![Vec::new(); planned.len()],
    };
    for (index, step) in planned.iter().enumerate() {
        match &step.answered {
            Some(results) => (state.results[index], state.ended[index]) = (results.clone(), true),
            None => state.waiting.push(index),
        }
    }
    let state = Mutex::new(state);
    let turn = Condvar::new();
    std::thread::scope(|scope| {
        for _ in 0..STEPS_AT_ONCE {
            scope.spawn(|| {
                while let Some(index) = next(planned, &state, &turn) {
                    let step = &planned[index];
                    // Threads that wait for a step must learn of its end, whatever its result.
                    let results =
                        catch_unwind(AssertUnwindSafe(|| run(step))).unwrap_or_else(|_| faulty(step));
                    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                    state.results[index] = results;
                    state.ended[index] = true;
                    turn.notify_all();
                }
            });
        }
    });
    state.into_inner().unwrap_or_else(PoisonError::into_inner).results
}

fn faulty(step: &PlannedStep) -> Vec<CheckResult> {
    let why = "internal error: see the message above; please report it";
    step.spec.checks.iter().map(|check| CheckResult::not_run(check, why)).collect()
}

/// The first step that may begin; waits while others must end before. `None`: nothing is left.
fn next(planned: &[PlannedStep], state: &Mutex<State>, turn: &Condvar) -> Option<usize> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let ready = |index: &usize| planned[*index].after.iter().all(|before| state.ended[*before]);
        if let Some(place) = state.waiting.iter().position(ready) {
            return Some(state.waiting.remove(place));
        }
        if state.waiting.is_empty() {
            return None;
        }
        state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}
