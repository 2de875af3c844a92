use std::fmt;
use std::str::FromStr;

/// A rung of the data ladder: a fraction of the data, above 0 and up to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rung(f64);

/// A text that names no rung.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid rung `{0}` (expected a percentage above 0% and up to 100%)")]
pub struct RungError(String);

/// Rungs are distinguished by so many digits of their percentage.
const PERCENT_DIGITS: f64 = 1e9;

impl Rung {
    /// All of the data.
    pub const FULL: Self = Self(1.0);

    /// The rung of a fraction; `None` for one that is not above 0 and up to 1, or too small to differ from 0%.
    #[must_use]
    pub fn new(fraction: f64) -> Option<Self> {
        let rung = Self(fraction);
        (fraction <= 1.0 && rung.percent() > 0.0).then_some(rung)
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

/// `10%`: as the ledger and the checkpoint roots name it. `TRACKWAY_RUNG` is the fraction.
impl fmt::Display for Rung {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}%", self.percent())
    }
}

impl FromStr for Rung {
    type Err = RungError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        percent.and_then(|percent| Self::new(percent / 100.0)).ok_or_else(|| RungError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a rung is named by its percentage as it was written, and found by that name.
    #[test]
    fn a_rung_has_the_name_it_was_written_with() {
        for text in ["1%", "0.1%", "29%", "33.3%", "57%", "100%", "0.000001%"] {
            let rung: Rung = text.parse().unwrap();
            assert_eq!(rung.to_string(), text);
            assert_eq!(rung.to_string().parse(), Ok(rung));
        }
        for text in ["0%", "101%", "-1%", "10", "", "%", "NaN%", "1e-12%"] {
            assert!(text.parse::<Rung>().is_err(), "{text}");
        }
        assert_eq!(Rung::new(f64::NAN), None);
    }
}
