//! Personal data: e-mail addresses, phone and card numbers, IBANs, national numbers, IP addresses.
//!
//! [`scan_text`] finds candidates in a text and checks which of them pass the checks of their kind (check digits,
//! lengths, ranges). [`PersonalCounts`] gathers them for a column and decides which kinds are significant: a column of
//! random 16-digit numbers holds valid card numbers too, one in ten of those with a fitting prefix.
//!
//! What is found is never kept as it is: examples are masked.

mod account;
mod address;
mod counts;
mod kind;
mod national;
mod scan;

pub use counts::{PersonalCounts, PersonalFinding};
pub use kind::PersonalMatch;
pub use scan::{mask, masked, masked_cell, masked_cut, masked_json, masked_value, scan_text};
pub use trackway_results::personal::PersonalKind;

#[cfg(test)]
mod tests;
