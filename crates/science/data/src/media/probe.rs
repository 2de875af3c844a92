//! The coordinate-grid probe: whether one augmentation moves input and target alike.
//!
//! The input is an image whose pixels encode their positions; so does the target. Both go through the augmentation, and
//! [`judge`] compares for each pixel of the result where it came from in both. Flips, crops, rotations and scalings of
//! both alike agree within a pixel; a flip of one alone, two different crops, or a target that was interpolated do not.

use serde::{Deserialize, Serialize};

/// A place, in pixels from the upper left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Coordinate {
    /// Downwards.
    pub row: f64,
    /// To the right.
    pub column: f64,
}

/// A transformed grid: for each pixel, row by row, where it came from; `None` if it was filled.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// In pixels.
    pub height: usize,
    /// In pixels.
    pub width: usize,
    /// As many as `height` times `width`.
    pub origins: Vec<Option<Coordinate>>,
}

/// Whether two grids agree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeVerdict {
    /// Whether input and target moved alike.
    pub agrees: bool,
    /// Pixels known in both grids.
    pub compared: usize,
    /// The fraction of them that are further apart than the tolerance.
    pub off_share: f64,
    /// The largest distance, in pixels.
    pub off_max: f64,
    /// How far the target is from the input, in the median of all pixels.
    pub shift: Coordinate,
    /// Where the distance is largest: row and column of the result.
    pub worst: Option<(usize, usize)>,
    /// What it means, as a sentence.
    pub message: String,
}

/// At most this fraction of the pixels may be off: edges of what was filled are rounded one way or the other.
const OFF_SHARE_MAX: f64 = 0.01;

/// At least this fraction of the pixels must be known in both.
const COMPARED_SHARE_MIN: f64 = 0.05;

/// Compares what became of the input with what became of the target. Places may be `tolerance` pixels apart: 1.0, for
/// an input that is interpolated and a target that takes the nearest pixel.
#[must_use]
pub fn judge(input: &Grid, target: &Grid, tolerance: f64) -> ProbeVerdict {
    let size = |grid: &Grid| (grid.height, grid.width);
    let mut verdict = ProbeVerdict::default();
    if size(input) != size(target) {
        verdict.message = format!(
            "the input became {} × {}, the target {} × {}",
            input.height, input.width, target.height, target.width
        );
        return verdict;
    }
    let mut shifts = Vec::new();
    let mut off = 0;
    for (pixel, origins) in input.origins.iter().zip(&target.origins).enumerate() {
        let (Some(one), Some(other)) = origins else { continue };
        let shift = Coordinate { row: other.row - one.row, column: other.column - one.column };
        let distance = shift.row.abs().max(shift.column.abs());
        if distance > verdict.off_max {
            verdict.off_max = distance;
            verdict.worst = Some((pixel / input.width, pixel % input.width));
        }
        off += usize::from(distance > tolerance);
        shifts.push(shift);
    }
    verdict.compared = shifts.len();
    if (shifts.len() as f64) < input.origins.len() as f64 * COMPARED_SHARE_MIN || shifts.is_empty() {
        verdict.message = "input and target hardly have a pixel in common that is not filled".into();
        return verdict;
    }
    verdict.off_share = off as f64 / shifts.len() as f64;
    verdict.shift = Coordinate {
        row: middle(shifts.iter().map(|shift| shift.row)),
        column: middle(shifts.iter().map(|shift| shift.column)),
    };
    verdict.agrees = verdict.off_share <= OFF_SHARE_MAX;
    verdict.message = match verdict.agrees {
        true => format!("input and target moved in the same way at {} pixels", verdict.compared),
        false => format!(
            "at {:.0} % of the pixels the target is at a different position than the input, by up to {:.0} pixels",
            verdict.off_share * 100.0,
            verdict.off_max
        ),
    };
    verdict
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
