//! Values of rows and columns, to be compared: fingerprints of rows, values that are kept, columns that name a row, and one
//! text in several Unicode forms.

pub(crate) mod hashed;
pub(crate) mod identifier;
pub(crate) mod rows;
pub(crate) mod sampled;
pub mod unicode_form;
