//! The contract about itself: which types are documents, the catalogue of all of them, their schemas, and the page that
//! `docs/json.md` is.

pub mod catalogue;
#[cfg(debug_assertions)]
pub mod derived;
pub(crate) mod document;
#[cfg(debug_assertions)]
pub mod page;
pub mod schemas;
