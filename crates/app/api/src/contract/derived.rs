//! What the types of documents say of them: `docs/schemas.json` is written from it, and compared with it by a test.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The functions of a document's type.
#[derive(Debug, Clone, Copy)]
pub struct Derived {
    type_schema: fn() -> Schema,
    reference: fn(&mut SchemaGenerator) -> Schema,
    reread: fn(&Value) -> Result<Value, serde_json::Error>,
}

impl Derived {
    pub(crate) const fn of<D: Serialize + DeserializeOwned + JsonSchema>() -> Self {
        Self {
            type_schema: || {
                SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<D>()
            },
            reference: SchemaGenerator::subschema_for::<D>,
            reread: |value| serde_json::to_value(D::deserialize(value)?),
        }
    }

    /// The JSON Schema of a document, or of an item of an array, with its definitions.
    #[must_use]
    pub fn schema(&self) -> Value {
        let mut schema = (self.type_schema)().to_value();
        without_rust(&mut schema);
        schema
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

/// A comment of Rust's documentation for readers of JSON: its links lead nowhere there, and its `None` is null.
pub(crate) fn without_rust_words(comment: &str) -> String {
    comment.replace("[`", "`").replace("`]", "`").replace("`None`", "null")
}

fn without_rust(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "description" => {
                        *text = without_rust_words(text);
                    }
                    _ => without_rust(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_rust),
        _ => {}
    }
}
