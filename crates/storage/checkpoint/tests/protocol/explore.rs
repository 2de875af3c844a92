//! Runs a model, and returns what was found.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, Expectation, HasDiscoveries, Model, Path};

/// Environment variable: of what the models are given one more than in CI: `saves`, `faults` or `saves,faults`. Each
/// alone multiplies the states by ten or so, both by more than some configurations end with.
const MODEL_BOUND: &str = "TRACKWAY_MODEL_BOUND";

/// A model whose states can be compared and shown.
pub trait Finite:
    Model<
        State: Debug + Clone + Hash + PartialEq + Send + Sync + 'static,
        Action: Debug + Clone + PartialEq + Send + Sync + 'static,
    > + Send
    + Sync
    + 'static
{
}

impl<M> Finite for M where
    M: Model<
            State: Debug + Clone + Hash + PartialEq + Send + Sync + 'static,
            Action: Debug + Clone + PartialEq + Send + Sync + 'static,
        > + Send
        + Sync
        + 'static
{
}

/// The most steps that are looked at in an enlarged model. Those are the ones nearest to its beginning, and the report
/// states that there are more.
const MAX_STEPS: usize = 20_000_000;

/// How much larger the models are made: not at all by default.
#[derive(Debug, Clone, Copy)]
pub struct Extra {
    pub saves: u8,
    /// Kills, power cuts, crashes of a node.
    pub faults: u8,
}

impl Extra {
    pub fn asked_for() -> Self {
        let asked = std::env::var(MODEL_BOUND).unwrap_or_default();
        let one_more = |what| u8::from(asked.split(',').any(|word| word == what));
        Self { saves: one_more("saves"), faults: one_more("faults") }
    }
}

/// Explores every reachable state: each `always` property holds in all of them, each `sometimes` property in one.
pub fn assert_holds(name: &str, model: impl Finite) {
    let extra = Extra::asked_for();
    let larger = extra.saves + extra.faults > 0;
    let limit = if larger { MAX_STEPS } else { usize::MAX };
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).target_state_count(limit);
    let found = checker.spawn_bfs().join();
    let whole = found.state_count() < limit;
    let more = if whole { "" } else { ", and there are more" };
    println!("model {name}: {} states, depth {}{more}", found.unique_state_count(), found.max_depth());
    if let Some((property, path)) = failure(&found) {
        panic!("{name}: `{property}` does not hold:\n{}", trace(path.into_actions()));
    }
    if whole {
        found.assert_properties();
    }
}

/// Asserts that some `always` property fails: a property that cannot fail proves nothing.
pub fn assert_fails(name: &str, model: impl Finite, expected: &str) {
    let found = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let states = found.unique_state_count();
    let Some((property, path)) = failure(&found) else {
        panic!("{name}: nothing failed in {states} states");
    };
    let actions = path.into_actions();
    println!("mutation {name}: `{property}` fails after {} steps, {states} states", actions.len());
    if std::env::var_os("TRACKWAY_MODEL_TRACES").is_some() {
        println!("{}", trace(actions));
    }
    assert_eq!(property, expected, "{name} breaks something else than it should");
}

/// A property and the way to a state where it does not hold.
type Failure<M> = (&'static str, Path<<M as Model>::State, <M as Model>::Action>);

fn failure<M: Finite>(checker: &impl Checker<M>) -> Option<Failure<M>> {
    let model = checker.model();
    let is_failure = |name: &&'static str| model.property(name).expectation == Expectation::Always;
    checker.discoveries().into_iter().filter(|(name, _)| is_failure(name)).min_by_key(|(name, _)| *name)
}

fn trace<A: Debug>(actions: Vec<A>) -> String {
    actions.iter().enumerate().map(|(index, action)| format!("  {:2}. {action:?}\n", index + 1)).collect()
}
