//! The values that cross between Rust and a database, and what a column may hold.

use serde::{Deserialize, Serialize};
use trackway_core::checks::Verdict;
use trackway_core::detect::{DetectionPolicy, DetectionSeverity, Detector};
use trackway_core::registry::{GateVerdict, ModelChange, ModelStage};
use trackway_core::{
    AttemptId, CheckpointState, Confidence, Criticality, DiagnosisKind, DiagnosisVerdict, Domain, Health,
    LaunchKind, ProofId, RetryOutlook, RunId, TerminationReason, Timestamp,
};

/// The type of a column, in terms of both backends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// UTF-8 text. SQLite `TEXT`, PostgreSQL `text`.
    Text,
    /// One value of a closed list, or an id. SQLite `TEXT`, PostgreSQL `text`.
    Word,
    /// JSON. SQLite `TEXT`, PostgreSQL `text`.
    Json,
    /// A signed 64-bit integer. SQLite `INTEGER`, PostgreSQL `bigint`.
    Integer,
    /// A 64-bit float; NaN is stored as null. SQLite `REAL`, PostgreSQL `double precision`.
    Real,
    /// True or false. SQLite `INTEGER` 0 or 1, PostgreSQL `boolean`.
    Boolean,
    /// A timestamp in UTC. SQLite `INTEGER` microseconds since 1970, PostgreSQL `timestamptz`.
    Timestamp,
}

impl ColumnKind {
    /// The type's name in a SQLite `STRICT` table.
    #[must_use]
    pub const fn sqlite_type(self) -> &'static str {
        match self {
            Self::Text | Self::Word | Self::Json => "TEXT",
            Self::Integer | Self::Boolean | Self::Timestamp => "INTEGER",
            Self::Real => "REAL",
        }
    }

    /// The type's name in PostgreSQL's `information_schema`.
    #[must_use]
    pub const fn postgres_type(self) -> &'static str {
        match self {
            Self::Text | Self::Word | Self::Json => "text",
            Self::Integer => "bigint",
            Self::Real => "double precision",
            Self::Boolean => "boolean",
            Self::Timestamp => "timestamp with time zone",
        }
    }

    /// The type's name in documents.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Text | Self::Word => "text",
            Self::Json => "JSON text",
            Self::Integer => "integer",
            Self::Real => "real",
            Self::Boolean => "boolean",
            Self::Timestamp => "timestamp",
        }
    }
}

/// One value of one row. `T` is text as it comes from outside, or as a ledger holds it (`crate::text`).
#[derive(Debug, Clone, PartialEq)]
pub enum Value<T = String> {
    /// Nothing.
    Null,
    /// A string, or JSON as a string.
    Text(T),
    Integer(i64),
    /// A float, never NaN.
    Real(f64),
    /// True or false.
    Boolean(bool),
    Timestamp(Timestamp),
}

impl<T> Value<T> {
    /// The same value with its text turned into another one.
    pub(crate) fn map<U>(self, text: impl FnOnce(T) -> U) -> Value<U> {
        match self {
            Self::Null => Value::Null,
            Self::Text(inner) => Value::Text(text(inner)),
            Self::Integer(number) => Value::Integer(number),
            Self::Real(number) => Value::Real(number),
            Self::Boolean(truth) => Value::Boolean(truth),
            Self::Timestamp(moment) => Value::Timestamp(moment),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<Timestamp> for Value {
    fn from(moment: Timestamp) -> Self {
        Self::Timestamp(moment)
    }
}

/// The Rust type of a column.
pub trait Field: Sized {
    /// The kind of the column.
    const KIND: ColumnKind;
    /// Whether it may be empty.
    const NULLABLE: bool = false;
    /// As the column holds it.
    fn to_value(&self) -> Value;
    /// The value as this type, or what was expected instead.
    fn from_value(value: Value) -> Result<Self, String>;
    /// A value for fields that the maker of a row fills in later.
    fn blank() -> Self;
}

impl<T: Field> Field for Option<T> {
    const KIND: ColumnKind = T::KIND;
    const NULLABLE: bool = true;

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }

    fn from_value(value: Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }

    fn blank() -> Self {
        None
    }
}

/// What a column holds: how it is written, and how it is read.
macro_rules! field {
    ($type:ty, $kind:ident, $this:ident => $to:expr, { $($value:pat => $read:expr),+ }, $what:expr, $blank:expr) => {
        impl $crate::value::Field for $type {
            const KIND: $crate::value::ColumnKind = $crate::value::ColumnKind::$kind;

            fn to_value(&self) -> $crate::value::Value {
                let $this = self;
                $to
            }

            fn from_value(value: $crate::value::Value) -> Result<Self, String> {
                match value {
                    $($value => $read,)+
                    other => Err(format!("{other:?} is not {}", $what)),
                }
            }

            fn blank() -> Self {
                $blank
            }
        }
    };
}
pub(crate) use field;

/// Fields whose value is one variant of [`Value`] and needs no reading.
macro_rules! plain_field {
    ($type:ty, $kind:ident) => {
        field!(
            $type, $kind,
            it => Value::$kind(it.clone()),
            { Value::$kind(inner) => Ok(inner) },
            format!("a valid {}", Self::KIND.title()),
            Self::default()
        );
    };
}

plain_field!(String, Text);
plain_field!(i64, Integer);
plain_field!(bool, Boolean);
plain_field!(Timestamp, Timestamp);

// NaN is null, because SQLite has no NaN and both backends must hold the same. Neither has it a zero below zero: what was sealed must
// hash as what is read.
field!(
    f64, Real,
    it => if it.is_nan() { Value::Null } else { Value::Real(*it + 0.0) },
    { Value::Real(number) => Ok(number), Value::Null => Ok(Self::NAN) },
    "a real number",
    0.0
);

macro_rules! integer_field {
    ($($type:ty),+) => { $(
        field!(
            $type, Integer,
            it => Value::Integer(i64::try_from(*it).unwrap_or(i64::MAX)),
            {
                Value::Integer(number) => Self::try_from(number)
                    .map_err(|_| format!("{number} is out of range for {}", stringify!($type)))
            },
            "an integer",
            0
        );
    )+ };
}

integer_field!(u64, u32, i32);

/// Fields that are written as one string and read back by parsing it.
macro_rules! word_field {
    ($type:ty, $blank:expr) => {
        $crate::value::field!(
            $type, Word,
            it => $crate::value::Value::Text(it.to_string()),
            { $crate::value::Value::Text(word) => word.parse().map_err(|error| format!("{error}")) },
            "a string",
            $blank
        );
    };
}
pub(crate) use word_field;

word_field!(RunId, ZERO_ULID.replace("_", RunId::PREFIX).parse().expect("a ULID of zeros is an id"));
word_field!(AttemptId, ZERO_ULID.replace("_", AttemptId::PREFIX).parse().expect("a ULID of zeros is an id"));
word_field!(ProofId, ZERO_ULID.replace("_", ProofId::PREFIX).parse().expect("a ULID of zeros is an id"));
word_field!(TerminationReason, TerminationReason::Unknown);
word_field!(Confidence, Confidence::Guess);
word_field!(Domain, Domain::Unknown);
word_field!(RetryOutlook, RetryOutlook::Unknown);
word_field!(CheckpointState, CheckpointState::Writing);
word_field!(Verdict, Verdict::NotRun);
word_field!(Detector, Detector::NonFinite);
word_field!(DetectionSeverity, DetectionSeverity::Note);
word_field!(DetectionPolicy, DetectionPolicy::Note);
word_field!(GateVerdict, GateVerdict::Inconclusive);
word_field!(ModelStage, ModelStage::Candidate);
word_field!(ModelChange, ModelChange::Register);
word_field!(Health, Health::Unknown);
word_field!(LaunchKind, LaunchKind::Train);
word_field!(Criticality, Criticality::Experiment);
word_field!(DiagnosisKind, DiagnosisKind::Numeric);
word_field!(DiagnosisVerdict, DiagnosisVerdict::Incomplete);

/// 26 zeros after the place of a prefix.
const ZERO_ULID: &str = "_00000000000000000000000000";

/// Fields that are stored as JSON text.
macro_rules! json_field {
    ($type:ty) => {
        field!(
            $type, Json,
            it => Value::Text(serde_json::to_string(it).expect("text keys and finite numbers are JSON")),
            { Value::Text(text) => serde_json::from_str(&text).map_err(|error| format!("{error}")) },
            "a JSON string",
            Self::default()
        );
    };
}

json_field!(serde_json::Value);
json_field!(Vec<String>);

/// A closed list of values. The program checks it, not the database: a new value needs no migration.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $list:literal, { $($words:tt)+ }) => {
        trackway_core::closed_list!($(#[$doc])* $name, $list, { $($words)+ });
        $crate::value::word_field!($name, $name::ALL[0]);
    };
}
pub(crate) use words;

/// One column of a table, as the catalogue and `docs/ledger.md` show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
    /// Whether it may be null.
    pub nullable: bool,
    /// What it means.
    pub doc: &'static str,
}

/// One table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    /// What a row of it is.
    pub doc: &'static str,
    /// The columns that name a row.
    pub key: &'static [&'static str],
    /// Its columns, in order.
    pub columns: &'static [Column],
}

/// A row as a plain struct.
pub trait Record: Sized + Serialize + for<'de> Deserialize<'de> {
    /// Its table; of rows that are in several tables with the same columns, the first.
    const TABLE: &'static Table;
    /// The table that this row is in.
    fn table(&self) -> &'static Table {
        Self::TABLE
    }
    /// The row's values in column order, before they passed the door for text.
    fn values(&self) -> Vec<Value>;
    /// The row from its values in column order, or which column holds what it must not.
    fn from_values(values: Vec<Value>) -> Result<Self, String>;
    /// A row whose required fields are empty, for `..Self::blank()`.
    fn blank() -> Self;
}

/// Declares a row: the struct, its table's catalogue entry, and the way between both.
macro_rules! record {
    ($(#[doc = $doc:literal])+ $name:ident, $table:literal $(or $table_of:path)?, key [$($key:literal),+],
     { $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty),+ $(,)? }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $name { $($(#[doc = $field_doc])+ pub $field: $type),+ }

        impl $crate::value::Record for $name {
            const TABLE: &'static $crate::value::Table = &$crate::value::Table {
                name: $table,
                doc: concat!($($doc),+),
                key: &[$($key),+],
                columns: &[$($crate::value::Column {
                    name: stringify!($field),
                    kind: <$type as $crate::value::Field>::KIND,
                    nullable: <$type as $crate::value::Field>::NULLABLE,
                    doc: concat!($($field_doc),+),
                }),+],
            };

            $(fn table(&self) -> &'static $crate::value::Table {
                $table_of(self.kind)
            })?

            fn values(&self) -> Vec<$crate::value::Value> {
                vec![$($crate::value::Field::to_value(&self.$field)),+]
            }

            fn from_values(values: Vec<$crate::value::Value>) -> Result<Self, String> {
                let mut values = values.into_iter();
                Ok(Self { $($field: {
                    let value = values.next().unwrap_or($crate::value::Value::Null);
                    $crate::value::Field::from_value(value)
                        .map_err(|what| format!("{}.{}: {what}", $table, stringify!($field)))?
                }),+ })
            }

            fn blank() -> Self {
                Self { $($field: $crate::value::Field::blank()),+ }
            }
        }
    };
}
pub(crate) use record;
