//! Every document that a command prints with `--json`.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use trackway_core::closed_list;

use crate::{
    Document, attempts, compare, doctor, gc, import, init, logs, runs, schemas, settings, sql, watch,
};

closed_list!(
    /// How a document is printed.
    Shape, "shape of a document", {
        /// One JSON object.
        One = "object",
        /// One JSON array of objects.
        Array = "array",
        /// One JSON object per line (NDJSON).
        Lines = "lines",
    }
);

/// A document of the contract.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name: of its schema `docs/schemas/NAME.json` and of its golden file.
    pub name: &'static str,
    /// The commands that print it. An option behind a command, such as `memory --devices`, means: with this option.
    pub commands: &'static [&'static str],
    /// How it is printed.
    pub shape: Shape,
    /// What a reader should know beside its fields: exit codes first.
    pub remarks: &'static str,
    type_schema: fn() -> Schema,
    reference: fn(&mut SchemaGenerator) -> Schema,
    reread: fn(&Value) -> Result<Value, serde_json::Error>,
}

impl Entry {
    const fn new<D: Document + JsonSchema + DeserializeOwned>(
        name: &'static str,
        commands: &'static [&'static str],
        shape: Shape,
        remarks: &'static str,
    ) -> Self {
        Self {
            name,
            commands,
            shape,
            remarks,
            type_schema: type_schema::<D>,
            reference: reference::<D>,
            reread: reread::<D>,
        }
    }

    /// The JSON Schema (draft 2020-12) of what is printed; of one line if every line is an object.
    #[must_use]
    pub fn schema(&self) -> Value {
        let schema = (self.type_schema)().to_value();
        if self.shape != Shape::Array {
            return schema;
        }
        let Value::Object(mut item) = schema else { return json!({ "type": "array", "items": schema }) };
        let mut whole = json!({ "type": "array" });
        for key in ["$schema", "$defs"] {
            whole[key] = item.remove(key).unwrap_or_else(|| json!({}));
        }
        whole["items"] = Value::Object(item);
        whole
    }

    /// The schema of the type among the definitions of a generator.
    pub(crate) fn reference(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.reference)(generator)
    }

    /// A document, or an item of an array, as its type reads and writes it.
    ///
    /// # Errors
    /// When it is not of the type.
    pub fn reread(&self, document: &Value) -> Result<Value, serde_json::Error> {
        (self.reread)(document)
    }
}

fn type_schema<D: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<D>()
}

fn reference<D: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<D>()
}

fn reread<D: Serialize + DeserializeOwned>(value: &Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(D::deserialize(value)?)
}

/// Lists documents, and makes each type a [`Document`].
macro_rules! documents {
    ($($name:literal: $shape:ident of $type:ty, by [$($command:literal),+ $(,)?] $(, $remarks:literal)?;)*) => {
        $(impl Document for $type {})*

        /// Every document, in the order of `docs/json.md`.
        pub const DOCUMENTS: &[Entry] = &[
            $(Entry::new::<$type>($name, &[$($command),+], Shape::$shape, concat!($($remarks)?)),)*
        ];
    };
}

documents! {
    "runs": Array of runs::Run, by ["runs"];
    "attempts": Array of attempts::Attempt, by ["attempts"];
    "watch": Lines of watch::RunSample, by ["watch"];
    "compare": One of compare::RunComparison, by ["compare"];
    "logs": Lines of logs::LogRecord, by ["logs"];
    "stop": One of runs::StopRequested, by ["stop"];
    "rollback": One of runs::RolledBack, by ["rollback"];
    "sql": Array of sql::QueryRow, by ["sql"];
    "init": One of init::NewRunFile, by ["init"];
    "import": One of import::ImportReport, by ["import"];
    "classify": One of trackway_tower::Verdict, by ["classify"];
    "config": One of settings::EffectiveSettings, by ["config"];
    "schema": Array of schemas::ListedDocument, by ["schema"];
    "schema-of": One of schemas::DocumentSchema, by ["schema DOCUMENT"];
    "gc": One of gc::GcReport, by ["gc"];
    "doctor": One of doctor::HomeDiagnosis, by ["doctor"], "Exit code 7 unless `healthy`.";
    "ledger-rebuild": One of doctor::RebuiltLedger, by ["ledger rebuild"], "Exit code 7 if something failed.";
}
