use std::fmt;
use std::str::FromStr;

use crate::{Ids, Timestamp};

/// The lower bits of a ULID, after its milliseconds since 1970.
const ULID_RANDOM_BITS: u32 = 80;

/// Why a string is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {kind} id `{text}` (expected `{prefix}` and 26 letters or digits)")]
pub struct IdError {
    text: String,
    kind: &'static str,
    prefix: &'static str,
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// The text every id of this kind begins with.
            pub const PREFIX: &'static str = $prefix;

            /// A new id from the given source.
            #[must_use]
            pub fn new(ids: &dyn Ids) -> Self {
                Self(ids.next_ulid())
            }

            /// When it was made, to the millisecond, by the clock of the machine that made it.
            #[must_use]
            pub fn created_at(self) -> Timestamp {
                let millis = i64::try_from(self.0 >> ULID_RANDOM_BITS).unwrap_or(i64::MAX);
                Timestamp::from_micros(millis.saturating_mul(1000))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let ulid = ulid::Ulid(self.0).to_string().to_lowercase();
                write!(formatter, "{}{ulid}", $prefix)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let error = || IdError { text: text.into(), kind: $kind, prefix: $prefix };
                let ulid = text.strip_prefix($prefix).ok_or_else(error)?;
                let ulid = ulid::Ulid::from_string(&ulid.to_uppercase()).map_err(|_| error())?;
                Ok(Self(ulid.0))
            }
        }

        $crate::serialized_as_text!($name);

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": concat!("The id of one ", $kind, ": `", $prefix, "` and a ULID in lower case."),
                    "pattern": concat!("^", $prefix, "[0-9a-z]{26}$"),
                })
            }
        }
    };
}

id_type!(
    /// A run: one intent, this config on this data. Written `run_` and a ULID in lower case.
    RunId, "run", "run_"
);
id_type!(
    /// An attempt: one launch of a run. Written `att_` and a ULID in lower case.
    AttemptId, "attempt", "att_"
);
id_type!(
    /// A resume proof: several launches of one config, compared. Written `prf_` and a ULID in lower case.
    ProofId, "proof", "prf_"
);
id_type!(
    /// An evaluation of a checkpoint. Written `evl_` and a ULID in lower case.
    EvaluationId, "evaluation", "evl_"
);

id_type!(
    /// A group of runs that one request starts. Written `grp_` and a ULID in lower case.
    GroupId, "group", "grp_"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SequentialIds;

    /// Proves that an id survives being written and read, and that other text is refused by name.
    #[test]
    fn ids_round_trip_and_refuse_other_text() {
        let id = RunId::new(&SequentialIds::default());
        assert_eq!(id.to_string().parse::<RunId>(), Ok(id));
        let error = "att_zzz".parse::<RunId>().unwrap_err();
        assert_eq!(error.to_string(), "invalid run id `att_zzz` (expected `run_` and 26 letters or digits)");
    }
}
