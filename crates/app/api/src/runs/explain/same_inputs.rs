//! Other runs with the same inputs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::RunId;
use trackway_core::text::counted;
use trackway_ledger::RunState;

use crate::runs::changes::InputKind;

/// Another run with the same config, data and seed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SameInputsRun {
    pub run_id: RunId,
    pub state: RunState,
    /// Metrics whose last value differs, at the same step: name, value there, value here.
    pub differing_metrics: Vec<(String, f64, f64)>,
    /// How many metrics were compared: those of both runs that end at the same step.
    #[serde(default)]
    pub compared_count: u64,
    /// Why the results cannot be compared; null if some metrics were.
    #[serde(default)]
    pub not_comparable: Option<String>,
    /// What the attempts started from beside config, data and seed, and what differs in it: `script`, `file`, `package` …
    #[serde(default)]
    pub other_inputs: Vec<InputKind>,
}

impl SameInputsRun {
    /// Whether it is not known to have started from other code, settings or data in files.
    #[must_use]
    pub fn has_same_files(&self) -> bool {
        let is_file = |kind: &InputKind| {
            use InputKind::{Code, Commit, File, Script, Uncommitted};
            matches!(kind, Script | File | Commit | Code | Uncommitted)
        };
        !self.other_inputs.iter().any(is_file)
    }

    /// `same result in 2 metrics at step 10`, and never more than was compared.
    #[must_use]
    pub fn sentence(&self) -> String {
        let metrics = counted(self.compared_count, "metric");
        let result = match (&self.not_comparable, self.differing_metrics.as_slice()) {
            (Some(why), _) => format!("not comparable: {why}"),
            (None, []) => format!("same last value of {metrics}"),
            (None, differing) => {
                let one =
                    |(name, there, here): &(String, f64, f64)| format!("{name} {there} there, {here} here");
                let list: Vec<String> = differing.iter().map(one).collect();
                format!("another result: {}", list.join("; "))
            }
        };
        let kinds: Vec<&str> = self.other_inputs.iter().map(|kind| kind.as_str()).collect();
        let other =
            if kinds.is_empty() { String::new() } else { format!("; it had another {}", kinds.join(", ")) };
        format!("{result}{other}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a run with the same inputs is said to have the same result only in what was compared, and that what
    /// else differed is named.
    #[test]
    fn the_same_result_is_of_what_was_compared() {
        let run = |differing_metrics: Vec<(String, f64, f64)>,
                   not_comparable: Option<&str>,
                   other_inputs: Vec<InputKind>| SameInputsRun {
            run_id: "run_00000000000000000000000001".parse().unwrap(),
            state: RunState::Completed,
            differing_metrics,
            compared_count: 2,
            not_comparable: not_comparable.map(str::to_owned),
            other_inputs,
        };
        let same = run(Vec::new(), None, Vec::new());
        assert_eq!(same.sentence(), "same last value of 2 metrics");
        let other = run(vec![("loss".into(), 0.5, 0.25)], None, vec![InputKind::Package]);
        assert_eq!(other.sentence(), "another result: loss 0.5 there, 0.25 here; it had another package");
        assert!(same.has_same_files() && other.has_same_files());
        let unknown = run(Vec::new(), Some("they end at other steps"), vec![InputKind::Script]);
        assert_eq!(unknown.sentence(), "not comparable: they end at other steps; it had another script");
        assert!(!unknown.has_same_files());
    }
}
