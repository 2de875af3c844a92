/// A value that is not in a closed list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {list} `{word}`{}", expected(.words))]
pub struct UnknownWord {
    word: String,
    list: &'static str,
    words: &'static [&'static str],
}

impl UnknownWord {
    /// `word` is not in the list that is called `list`. The message shows `words`.
    #[must_use]
    pub fn new(word: &str, list: &'static str, words: &'static [&'static str]) -> Self {
        Self { word: word.into(), list, words }
    }
}

/// The end of the message; empty for a list that is too long to be shown.
fn expected(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match &quoted[..] {
        [] => String::new(),
        [only] => format!(": expected {only}"),
        several => format!(": expected one of {}", several.join(", ")),
    }
}

/// A type is serialized as it is displayed, and read as it is parsed. The caller depends on `serde`.
#[macro_export]
macro_rules! serialized_as_text {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// A closed list of values: an enum with its values as strings, in JSON and back. The caller depends on `serde`.
#[macro_export]
macro_rules! closed_list {
    ($(#[$doc:meta])* $name:ident, $list:literal, { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Every value of the list, in its documented order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Their words, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The value as it is in the ledger and in JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, $crate::UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::UnknownWord::new(word, $list, Self::WORDS)),
                }
            }
        }

        $crate::serialized_as_text!($name);
        $crate::schema_of_words!($(#[$doc])* $name { $($(#[$variant_doc])* $variant = $word),+ });
    };
}

/// The JSON Schema of a closed list: an enum of its words. Nothing without the feature `schema` of this crate.
#[cfg(feature = "schema")]
#[doc(hidden)]
#[macro_export]
macro_rules! schema_of_words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ }) => {
        impl $crate::schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn schema_id() -> std::borrow::Cow<'static, str> {
                concat!(module_path!(), "::", stringify!($name)).into()
            }

            fn json_schema(generator: &mut $crate::schemars::SchemaGenerator) -> $crate::schemars::Schema {
                // Takes the documentation of the list and of its words, which a `macro_rules` cannot read itself.
                #[allow(dead_code)]
                #[derive($crate::schemars::JsonSchema)]
                #[schemars(crate = "trackway_core::schemars")]
                $(#[$doc])*
                enum Words { $($(#[$variant_doc])* #[schemars(rename = $word)] $variant),+ }

                <Words as $crate::schemars::JsonSchema>::json_schema(generator)
            }
        }
    };
}

/// The JSON Schema of a closed list: an enum of its words. Nothing without the feature `schema` of this crate.
#[cfg(not(feature = "schema"))]
#[doc(hidden)]
#[macro_export]
macro_rules! schema_of_words {
    ($($list:tt)*) => {};
}

closed_list!(
    /// Why an attempt ended. The list is closed; `docs/termination-reasons.md` explains each.
    TerminationReason, "termination reason", {
        /// Ended by itself with exit code 0.
        Completed = "completed",
        /// The script or a rule ended it because more training would not help.
        EarlyStopped = "early_stopped",
        /// A user requested the end.
        Cancelled = "cancelled",
        /// The machine was taken away for another job.
        Preempted = "preempted",
        /// The machine, a device or its link broke.
        NodeFailure = "node_failure",
        /// The host or the container ran out of memory (shared memory included).
        HostOom = "host_oom",
        /// An accelerator ran out of memory.
        DeviceOom = "device_oom",
        /// The content of the data stopped the run.
        DataError = "data_error",
        /// The data no longer has the shape the code expects.
        SchemaDrift = "schema_drift",
        /// The program is wrong.
        CodeError = "code_error",
        /// Nothing moved any more.
        Hang = "hang",
        /// A limit on time was reached.
        Timeout = "timeout",
        /// Loss or gradients stopped being finite, or ran away.
        NumericDivergence = "numeric_divergence",
        /// A detector ended it because its input, its speed or its memory was not in order.
        Unhealthy = "unhealthy",
        /// A checkpoint could not be saved consistently, read or matched.
        CheckpointError = "checkpoint_error",
        /// A disk or an object store failed.
        StorageError = "storage_error",
        /// Machines could not reach each other or a service.
        NetworkError = "network_error",
        /// An evaluator that Trackway launched failed; the training attempt stays good.
        EvaluatorError = "evaluator_error",
        /// Money, quota or credit is spent.
        BudgetExhausted = "budget_exhausted",
        /// A rung's promotion rule refused it.
        RungRejected = "rung_rejected",
        /// A newer attempt owns the run's checkpoints.
        Fenced = "fenced",
        /// Replaced on purpose by another attempt.
        Superseded = "superseded",
        /// The evidence does not decide it.
        Unknown = "unknown",
    }
);

closed_list!(
    /// Whose matter the end was.
    Domain, "domain", {
        /// The training program.
        Workload = "workload",
        /// The data it read.
        Data = "data",
        /// Machines, networks, storage, schedulers.
        Infrastructure = "infrastructure",
        /// A person.
        Operator = "operator",
        /// A rule or a budget.
        Policy = "policy",
        /// Not known.
        Unknown = "unknown",
    }
);

closed_list!(
    /// Whether the same launch again may do better.
    RetryOutlook, "retry outlook", {
        /// The same launch may succeed.
        Retry = "retry",
        /// Only a changed launch may succeed.
        RetryChanged = "retry_changed",
        /// The same end is to be expected.
        DoNotRetry = "do_not_retry",
        /// Not known.
        Unknown = "unknown",
    }
);

closed_list!(
    /// How far the evidence carries.
    Confidence, "confidence", {
        /// The evidence admits no other reading.
        Certain = "certain",
        /// One reading is much better than the others.
        Likely = "likely",
        /// The best of several readings.
        Guess = "guess",
    }
);

impl TerminationReason {
    /// The domain of an end of this kind, unless evidence contradicts it.
    #[must_use]
    pub const fn domain(self) -> Domain {
        match self {
            Self::Completed
            | Self::EarlyStopped
            | Self::CodeError
            | Self::DeviceOom
            | Self::NumericDivergence
            | Self::Unhealthy
            | Self::CheckpointError
            | Self::EvaluatorError
            | Self::Hang
            | Self::HostOom => Domain::Workload,
            Self::DataError | Self::SchemaDrift => Domain::Data,
            Self::Preempted | Self::NodeFailure | Self::StorageError | Self::NetworkError => {
                Domain::Infrastructure
            }
            Self::Cancelled | Self::Superseded => Domain::Operator,
            Self::Timeout | Self::BudgetExhausted | Self::RungRejected | Self::Fenced => Domain::Policy,
            Self::Unknown => Domain::Unknown,
        }
    }

    /// Whether a repeated launch may succeed, unless evidence contradicts it.
    #[must_use]
    pub const fn retry_outlook(self) -> RetryOutlook {
        match self {
            Self::Preempted
            | Self::NodeFailure
            | Self::NetworkError
            | Self::StorageError
            | Self::Hang
            | Self::EvaluatorError
            | Self::Timeout => RetryOutlook::Retry,
            Self::DeviceOom | Self::HostOom | Self::NumericDivergence | Self::Unhealthy => {
                RetryOutlook::RetryChanged
            }
            Self::Completed
            | Self::EarlyStopped
            | Self::Cancelled
            | Self::DataError
            | Self::SchemaDrift
            | Self::CodeError
            | Self::CheckpointError
            | Self::BudgetExhausted
            | Self::RungRejected
            | Self::Fenced
            | Self::Superseded => RetryOutlook::DoNotRetry,
            Self::Unknown => RetryOutlook::Unknown,
        }
    }

    /// Whether the attempt did what it was launched for.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Completed | Self::EarlyStopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the taxonomy has these reasons and no others, and that every value is read back as itself.
    #[test]
    fn the_taxonomy_is_closed_and_round_trips() {
        assert_eq!(TerminationReason::ALL.len(), 23);
        for reason in TerminationReason::ALL {
            assert_eq!(reason.as_str().parse::<TerminationReason>(), Ok(*reason));
        }
        let error = "oom".parse::<TerminationReason>().unwrap_err().to_string();
        let expected = "invalid termination reason `oom`: expected one of `completed`, `early_stopped`, ";
        assert!(error.starts_with(expected), "{error}");
    }
}
