//! How much of the data a rung trained on, as far as something counted it. What a script was given does not show what it did.

use serde::{Deserialize, Serialize};
use trackway_core::Rung;

/// A script may hold out a part of the rows of its training data for validation; of data of which less than this is left, it trained
/// on something else.
const HELD_OUT_LEFT_MIN: f64 = 0.5;
/// Standard deviations of a hash that a count of rows may be away from the fraction.
const DEVIATIONS_MAX: f64 = 6.0;

/// A count of the rows that an attempt kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RungCut {
    /// The fraction it was made for.
    pub fraction: f64,
    /// Rows that were kept.
    pub rows: u64,
    /// Rows they were kept from.
    pub rows_total: u64,
    /// Whether whole groups of rows are kept by their key, so that the number of rows may be far from the fraction.
    pub by_key: bool,
    /// Whether the script itself gave the number of all rows (`rung_indexes(count)`). A loader's rows are counted.
    pub is_claimed: bool,
}

/// What is known of the rows of a rung.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RungProof {
    /// They were counted, and are that fraction of the data.
    Proved {
        /// Rows that were kept.
        rows: u64,
        /// Rows they were kept from.
        rows_total: u64,
        /// Rows of the training data, if the script held some of them out.
        #[serde(default)]
        rows_of_data: Option<u64>,
    },
    /// Nothing counted them, or the counts are of something else.
    NotProved {
        /// An explanation.
        why: String,
    },
}

impl RungProof {
    /// The rows and those they were kept from.
    #[must_use]
    pub fn rows(&self) -> Option<(u64, u64)> {
        match self {
            Self::Proved { rows, rows_total, .. } => Some((*rows, *rows_total)),
            Self::NotProved { .. } => None,
        }
    }
}

/// Whether a rung trained on its fraction of the data, by the counts of its attempts. Each rank counts the same rows, so the count
/// of the most rows is taken for all of them. `not_opened`: training data of the run file that no attempt of the rung opened,
/// though every file of it was watched: rows were counted, but of something else. `rows_of_data`: the rows of the training data of the
/// run file, if they were counted.
#[must_use]
pub fn prove(rung: Rung, cuts: &[RungCut], not_opened: &[String], rows_of_data: Option<u64>) -> RungProof {
    if let Some(name) = not_opened.first() {
        let why = format!("no file of data `{name}` was opened: it trained on something else");
        return RungProof::NotProved { why };
    }
    if rung == Rung::FULL {
        return match cuts.iter().max_by_key(|cut| cut.rows_total) {
            Some(cut) => proved(cut, rows_of_data),
            None => RungProof::NotProved { why: "nothing counted its rows".into() },
        };
    }
    let wrong = cuts.iter().find_map(|cut| contradiction(rung, cut));
    match (wrong, cuts.iter().max_by_key(|cut| cut.rows_total)) {
        (Some(why), _) => RungProof::NotProved { why },
        (None, Some(cut)) => proved(cut, rows_of_data),
        (None, None) => {
            let why =
                format!("nothing shows that the script trained on {rung} of the data: no rows were counted");
            RungProof::NotProved { why }
        }
    }
}

/// A number of rows that the script gave itself is compared with the rows of the data.
fn proved(cut: &RungCut, rows_of_data: Option<u64>) -> RungProof {
    let RungCut { rows, rows_total, .. } = *cut;
    let Some(counted) = rows_of_data.filter(|counted| cut.is_claimed && *counted != rows_total) else {
        return RungProof::Proved { rows, rows_total, rows_of_data: None };
    };
    let is_held_out = rows_total < counted && rows_total as f64 >= HELD_OUT_LEFT_MIN * counted as f64;
    if is_held_out {
        return RungProof::Proved { rows, rows_total, rows_of_data: Some(counted) };
    }
    let why = format!(
        "the script cut {rows} of {rows_total} rows, but the training data has {counted} rows: pass the length of that data to \
         `rung_indexes`, or cut with `run.batches`, which counts"
    );
    RungProof::NotProved { why }
}

fn contradiction(rung: Rung, cut: &RungCut) -> Option<String> {
    let RungCut { fraction, rows, rows_total, by_key, .. } = *cut;
    let of = format!("{rows} of {rows_total} rows were kept");
    if (fraction - rung.fraction()).abs() > 1e-9 {
        return Some(format!("{of} for another rung ({} %)", fraction * 100.0));
    }
    let expected = fraction * rows_total as f64;
    let deviation = (expected * (1.0 - fraction)).sqrt();
    let far = (rows as f64 - expected).abs() > (DEVIATIONS_MAX * deviation).max(1.0);
    let all = rows >= rows_total && rows_total > 1;
    (all || (far && !by_key)).then(|| format!("{of}, which is not {rung} of them"))
}
