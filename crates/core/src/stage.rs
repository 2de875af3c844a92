use std::fmt;
use std::str::FromStr;

/// A rung of the data ladder: a fraction of the data, above 0 and up to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Stage(f64);

/// A text that names no stage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid stage `{0}` (expected a percentage above 0% and up to 100%)")]
pub struct StageError(String);

/// Stages are told apart by so many digits of their percentage.
const PERCENT_DIGITS: f64 = 1e9;

impl Stage {
    /// All of the data.
    pub const FULL: Self = Self(1.0);

    /// The stage of a fraction; `None` for one that is not above 0 and up to 1, or too small to be told from 0%.
    #[must_use]
    pub fn new(fraction: f64) -> Option<Self> {
        let stage = Self(fraction);
        (fraction <= 1.0 && stage.percent() > 0.0).then_some(stage)
    }

    /// From above 0 to 1.
    #[must_use]
    pub const fn fraction(self) -> f64 {
        self.0
    }

    /// Whether it is all of the data.
    #[must_use]
    pub fn is_full(self) -> bool {
        self == Self::FULL
    }

    fn percent(self) -> f64 {
        (self.0 * 100.0 * PERCENT_DIGITS).round() / PERCENT_DIGITS
    }
}

/// `10%`: as the ledger and the checkpoint roots name it. `TRACKWAY_STAGE` is the fraction.
impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}%", self.percent())
    }
}

impl FromStr for Stage {
    type Err = StageError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        percent.and_then(|percent| Self::new(percent / 100.0)).ok_or_else(|| StageError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a stage is named by its percentage as it was written, and found by that name.
    #[test]
    fn a_stage_has_the_name_it_was_written_with() {
        for text in ["1%", "0.1%", "29%", "33.3%", "57%", "100%", "0.000001%"] {
            let stage: Stage = text.parse().unwrap();
            assert_eq!(stage.to_string(), text);
            assert_eq!(stage.to_string().parse(), Ok(stage));
        }
        for text in ["0%", "101%", "-1%", "10", "", "%", "NaN%", "1e-12%"] {
            assert!(text.parse::<Stage>().is_err(), "{text}");
        }
        assert_eq!(Stage::new(f64::NAN), None);
    }
}
