//! A sign-off: a person takes responsibility that a data set may hold what would otherwise block.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// One `[[personal]]` table of a sign-off file or of a run file's `[governance]`: these kinds of personal data in this
/// column are known and allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SignOff {
    pub column: String,
    /// The kinds, as checks name them: `email`, `phone`, `payment_card`, `iban`, `national_id`, `ip_address`. Every
    /// kind must be named; there is no value for all.
    pub kinds: Vec<String>,
    /// The person responsible for it.
    pub approved_by: String,
    /// Why the data is needed, or why it is harmless.
    pub why: String,
    /// The last day on which it counts, `YYYY-MM-DD` in UTC; without one it has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// What is wrong with a sign-off: it does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignOffError {
    #[error("the sign-off for `{column}` by {approved_by} ended on {until}")]
    Ended { column: String, approved_by: String, until: String },
    #[error("the sign-off for `{column}` has an invalid date: `until` is {until:?} (expected YYYY-MM-DD)")]
    NoDate { column: String, until: String },
    #[error("the sign-off for `{column}` is incomplete: `{what}` is not set")]
    Empty { column: String, what: &'static str },
}

impl SignOff {
    /// Whether it is valid at this time.
    ///
    /// # Errors
    /// [`SignOffError`] explains why it is not.
    pub fn check(&self, now: Timestamp) -> Result<(), SignOffError> {
        let column = self.column.clone();
        let required = [
            ("approved_by", self.approved_by.trim().is_empty()),
            ("why", self.why.trim().is_empty()),
            ("kinds", self.kinds.is_empty()),
        ];
        if let Some((what, _)) = required.into_iter().find(|(_, is_empty)| *is_empty) {
            return Err(SignOffError::Empty { column, what });
        }
        let Some(until) = self.until.clone() else { return Ok(()) };
        let Ok(last_day) = until.parse::<jiff::civil::Date>() else {
            return Err(SignOffError::NoDate { column, until });
        };
        // A time after the last year that exists never comes.
        let end = last_day.tomorrow().ok().and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok());
        if end.is_some_and(|end| now.as_micros() >= end.timestamp().as_microsecond()) {
            return Err(SignOffError::Ended { column, approved_by: self.approved_by.clone(), until });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a sign-off counts up to the last microsecond of its last day, and not without a name, a reason or
    /// kinds, or with a date that is none.
    #[test]
    fn a_sign_off_ends_with_its_last_day() {
        let moment = |text: &str| text.parse::<Timestamp>().unwrap();
        let sign_off = SignOff {
            column: "mail".into(),
            kinds: vec!["email".into()],
            approved_by: "Ada".into(),
            why: "consent".into(),
            until: Some("2026-11-21".into()),
        };
        assert_eq!(sign_off.check(moment("2026-11-21T23:59:59.999999Z")), Ok(()));
        let ended = sign_off.check(moment("2026-11-22T00:00:00Z")).unwrap_err();
        assert_eq!(ended.to_string(), "the sign-off for `mail` by Ada ended on 2026-11-21");
        let now = moment("2026-01-01T00:00:00Z");
        let endless = SignOff { until: None, ..sign_off.clone() };
        assert_eq!(endless.check(moment("9999-12-30T00:00:00Z")), Ok(()));
        for (broken, expected) in [
            (SignOff { until: Some("soon".into()), ..sign_off.clone() }, "invalid date: `until` is \"soon\""),
            (SignOff { why: " ".into(), ..sign_off.clone() }, "`why` is not set"),
            (SignOff { approved_by: String::new(), ..sign_off.clone() }, "`approved_by` is not set"),
            (SignOff { kinds: Vec::new(), ..sign_off.clone() }, "`kinds` is not set"),
        ] {
            let refused = broken.check(now).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
