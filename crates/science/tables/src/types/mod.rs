//! The types of columns, from what their values have in common; and how numbers and times are written in text.

pub(crate) mod decimal;
pub(crate) mod infer;
pub(crate) mod times;

pub use infer::{Form, form_of};
pub use times::parse_timestamp;
pub use trackway_results::reading::{Column, ColumnType};
