//! Settings as keys and values, of JSON documents and of plain texts, and two of them side by side.

pub(super) mod both;
pub(super) mod leaves;
pub(super) mod plain;
