//! Whether a gate ever said `fail` of a bad model.

use std::collections::BTreeMap;

use trackway_core::registry::GateVerdict;
use trackway_ledger::GateTestRow;

/// A gate is verified when it says `fail` of a bad model, as it was last asked. Tests come newest first.
pub(crate) fn is_verified(tests: &[GateTestRow]) -> bool {
    let mut last: BTreeMap<&str, GateVerdict> = BTreeMap::new();
    tests.iter().rev().for_each(|test| {
        last.insert(&test.fixture_sha256, test.verdict);
    });
    last.values().any(|verdict| *verdict == GateVerdict::Fail)
}
