//! The ledger in use cases: how it is reached, its rows and their pages, what is stored in them, and their copies in the home.

mod access;
mod names;
pub mod page;
pub mod row_copies;
pub mod rows;
pub mod stored;
