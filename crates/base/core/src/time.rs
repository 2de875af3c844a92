use std::fmt;
use std::str::FromStr;

/// A time in UTC, counted in microseconds since 1970-01-01. Ordered, and small enough to store everywhere. In JSON it
/// is RFC 3339 with all six digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// A time from microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Nanoseconds since the Unix epoch, the unit of times of files.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0.saturating_mul(1000)
    }

    /// Seconds from `earlier` to `self`; negative when the clock went backwards in between.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> f64 {
        (self.0.saturating_sub(earlier.0)) as f64 / 1e6
    }

    /// This time moved by a number of seconds.
    #[must_use]
    pub fn plus_seconds(self, seconds: f64) -> Self {
        Self(self.0.saturating_add((seconds * 1e6) as i64))
    }

    /// RFC 3339 with milliseconds, such as `2026-11-21T07:00:00.123Z`.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        self.formatted(3)
    }

    /// Times beyond the years that RFC 3339 can name are written as their number.
    fn formatted(self, digits: usize) -> String {
        jiff::Timestamp::from_microsecond(self.0)
            .map_or_else(|_| format!("{}us", self.0), |moment| format!("{moment:.digits$}"))
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.formatted(6))
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        if let Some(micros) = text.strip_suffix("us").and_then(|micros| micros.parse().ok()) {
            return Ok(Self(micros));
        }
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A time in UTC as RFC 3339, with microseconds.",
        })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_rfc3339())
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    /// Reads RFC 3339.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<jiff::Timestamp>().map(|moment| Self(moment.as_microsecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that string and number are the same time, both ways.
    #[test]
    fn rfc3339_round_trips_to_the_millisecond() {
        let moment = Timestamp::from_micros(1_795_244_400_123_000);
        assert_eq!(moment.to_rfc3339().parse::<Timestamp>().unwrap(), moment);
    }

    /// Proves that JSON keeps every microsecond, of times beyond the calendar too.
    #[test]
    fn json_keeps_every_microsecond() {
        for micros in [0, 1, -1, 1_795_244_400_123_456, i64::MAX] {
            let text = serde_json::to_string(&Timestamp::from_micros(micros)).unwrap();
            assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap().as_micros(), micros, "{text}");
        }
    }

    /// Proves that a clock that went backwards gives a negative duration, not a panic.
    #[test]
    fn a_clock_going_backwards_is_negative() {
        assert!(Timestamp::from_micros(1).seconds_since(Timestamp::from_micros(1_000_001)) < 0.0);
        assert_eq!(
            Timestamp::from_micros(i64::MIN).seconds_since(Timestamp::from_micros(1)),
            i64::MIN as f64 / 1e6
        );
    }
}
