//! What the next search needs of the result of an earlier one.

use serde::Deserialize;
use trackway_results::search::{AlikeSlice, HeldOutSlice, Predicate};

/// What is needed of an earlier answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EarlierAnswer {
    pub slices: Vec<EarlierSlice>,
    /// Its features: the bins are used again, so that slices stay the same ones.
    pub features: Vec<EarlierFeature>,
}

/// A slice of an earlier answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EarlierSlice {
    /// Which rows it has.
    pub predicate: Predicate,
    /// The mean error of searched rows.
    pub average_error: f64,
    /// What held-out rows showed.
    #[serde(default)]
    pub held_out: Option<HeldOutSlice>,
    /// Other slices that named the same rows.
    #[serde(default)]
    pub also_described_by: Vec<AlikeSlice>,
}

/// A feature of an earlier answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EarlierFeature {
    /// The column.
    pub name: String,
    /// Where bins begin.
    #[serde(default)]
    pub edges: Option<Vec<f64>>,
}
