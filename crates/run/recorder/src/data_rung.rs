use std::sync::Arc;

use trackway_core::Rung;
use trackway_formats::Variable;
use trackway_formats::subset::{DEFAULT_SEED, indexes_of, key_of_number, key_of_text, subset_of};

/// The fraction of the data that this launch trains on: a rung of the run file's ladder.
///
/// Larger fractions contain smaller ones: whatever is in 1 % is in 10 %. They are sampled with the seed of the run,
/// which is the same for all of its rungs, and as `trackway data split --rungs` samples them: the same rows for the
/// same seed if its `--key` is the argument of [`DataRung::holds_number`] or [`DataRung::holds_text`].
///
/// ```
/// let rung = trackway_recorder::DataRung::from_environment();
/// let rows: Vec<u64> = rung.indexes(1_000); // all of them outside a rung
/// assert_eq!(rows.len(), 1_000);
/// ```
#[derive(Clone)]
pub struct DataRung {
    fraction: f64,
    seed: u64,
    /// Records how many rows were kept: without it the rung is not proved.
    counter: Option<Arc<dyn CountRows>>,
}

/// Where the rows that a rung keeps are counted.
pub(crate) trait CountRows: Send + Sync {
    /// A key that the script looked up.
    fn count_key(&self, is_kept: bool);
    /// So many rows of so many are kept.
    fn count_rows(&self, fraction: f64, rows: u64, rows_total: u64);
}

impl DataRung {
    /// From `TRACKWAY_RUNG` and `TRACKWAY_SEED`; all of the data if they are not set or invalid. What it keeps is not
    /// counted, and such a rung is not proved: [`crate::Recorder::rung`] is what a training script uses.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::from(|name| std::env::var(name).ok())
    }

    pub(crate) fn from(variable: impl Fn(&str) -> Option<String>) -> Self {
        let rung = variable(Variable::Rung.as_str()).and_then(|text| text.parse().ok()).and_then(Rung::new);
        let seed = variable(Variable::Seed.as_str()).and_then(|text| text.parse().ok());
        let fraction = rung.unwrap_or(Rung::FULL).fraction();
        Self { fraction, seed: seed.unwrap_or(DEFAULT_SEED), counter: None }
    }

    /// The same, whose rows are counted.
    pub(crate) fn counted_by(self, counter: Arc<dyn CountRows>) -> Self {
        Self { counter: Some(counter), ..self }
    }

    /// From above 0 to 1.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        self.fraction
    }

    /// Whether what this number names is part of the rung.
    #[must_use]
    pub fn holds_number(&self, key: i64) -> bool {
        self.holds(key_of_number(key))
    }

    /// Whether what this text names is part of the rung.
    #[must_use]
    pub fn holds_text(&self, key: &str) -> bool {
        self.holds(key_of_text(key))
    }

    fn holds(&self, key: u64) -> bool {
        if self.fraction >= 1.0 {
            return true;
        }
        let holds = subset_of(self.seed, &key.to_le_bytes(), self.fraction);
        if let Some(counter) = &self.counter {
            counter.count_key(holds);
        }
        holds
    }

    /// Those of `count` rows, numbered from 0, that are part of the rung, in order. Of any rows it is one at least.
    #[must_use]
    pub fn indexes(&self, count: u64) -> Vec<u64> {
        let indexes = indexes_of(self.seed, count, self.fraction);
        if let Some(counter) = self.counter.as_ref().filter(|_| self.fraction < 1.0) {
            counter.count_rows(self.fraction, indexes.len() as u64, count);
        }
        indexes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(fraction: &str, seed: &str) -> DataRung {
        DataRung::from(|name| Some(if name == "TRACKWAY_RUNG" { fraction } else { seed }.to_owned()))
    }

    /// Proves that a number is in the rung where its row is, that rungs are nested, and that nonsense means all.
    #[test]
    fn a_rung_comes_from_the_environment() {
        let (one, ten) = (rung("0.01", "17"), rung("0.1", "17"));
        let rows = ten.indexes(5_000);
        assert!((0..5_000).all(|row| ten.holds_number(row) == rows.contains(&(row as u64))));
        assert!((0..5_000).all(|row| !one.holds_number(row) || ten.holds_number(row)));
        assert_ne!(rows, rung("0.1", "18").indexes(5_000));
        let texts = (0..5_000).filter(|row| ten.holds_text(&format!("patient-{row}"))).count();
        assert!((400..600).contains(&texts), "{texts}");
        for nonsense in ["", "10%", "0", "-1", "2", "NaN"] {
            let all = rung(nonsense, "x");
            assert_eq!((all.fraction, all.seed), (1.0, DEFAULT_SEED), "{nonsense}");
        }
    }
}
