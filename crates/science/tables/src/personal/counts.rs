//! What a column holds of personal data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trackway_statistics::wilson;

use super::PersonalKind;
use super::kind::{PersonalMatch, random_match_fraction};
use super::scan::{mask, scan_text};

/// The confidence with which more strings pass the check than random ones would.
const CONFIDENCE: f64 = 0.999;

/// How many times more often than random strings pass the check.
const RANDOM_MATCHES_FACTOR: f64 = 2.0;

/// Personal data of one column, gathered value by value; those of two halves merge into those of the whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PersonalCounts {
    values: u64,
    kinds: BTreeMap<PersonalKind, KindCounts>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct KindCounts {
    candidates: u64,
    valid: u64,
    masked_example: Option<String>,
}

/// A kind of personal data that a column holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonalFinding {
    pub kind: PersonalKind,
    /// How many were found that pass the checks of their kind.
    pub count: u64,
    /// How many for each value looked at.
    pub per_value: f64,
    /// One of them, masked.
    pub masked_example: String,
}

impl PersonalCounts {
    /// Looks at a value that occurs `times` times.
    pub fn observe(&mut self, text: &str, times: u64) {
        self.values += times;
        scan_text(text, &mut |found| self.count(&found, times));
    }

    /// Adds what another part of the column holds.
    pub fn merge(&mut self, later: Self) {
        self.values += later.values;
        for (kind, counts) in later.kinds {
            let own = self.kinds.entry(kind).or_default();
            own.candidates += counts.candidates;
            own.valid += counts.valid;
            own.masked_example = own.masked_example.take().or(counts.masked_example);
        }
    }

    /// The kinds that are there significantly: of strings with their form, clearly more pass their check than would of
    /// random ones (Wilson's interval at 99.9 %).
    #[must_use]
    pub fn findings(&self) -> Vec<PersonalFinding> {
        let above_random_matches = |(kind, counts): &(&PersonalKind, &KindCounts)| {
            let sure = wilson(counts.valid as f64, counts.candidates as f64, CONFIDENCE);
            let random_match_fraction = random_match_fraction(**kind) * RANDOM_MATCHES_FACTOR;
            counts.valid > 0 && (random_match_fraction == 0.0 || sure.low > random_match_fraction)
        };
        let found = self.kinds.iter().filter(above_random_matches);
        let finding = |(kind, counts): (&PersonalKind, &KindCounts)| PersonalFinding {
            kind: *kind,
            count: counts.valid,
            per_value: counts.valid as f64 / self.values as f64,
            masked_example: counts.masked_example.clone().unwrap_or_default(),
        };
        found.map(finding).collect()
    }

    fn count(&mut self, found: &PersonalMatch<'_>, times: u64) {
        let counts = self.kinds.entry(found.kind).or_default();
        counts.candidates += times;
        if found.valid {
            counts.valid += times;
            counts.masked_example.get_or_insert_with(|| mask(found));
        }
    }
}
