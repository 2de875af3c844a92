//! The built-in quick model: gradient-boosted trees over histograms, for checks that need to know how well columns
//! predict one another. It is not a model to ship; it is deterministic, needs no tuning and takes seconds.
//!
//! ```text
//! Source ── Frame::sample ──► Frame ── Binned::of ──► Binned ── Booster::fit / out_of_fold ──► Predictions
//!           (a uniform sample         (one byte                (never told the rows it predicts)
//!            of bounded size)          for each cell)
//! ```
//!
//! Method: J. Friedman, "Greedy function approximation" (2001); second-order leaf values and gains as T. Chen and C.
//! Guestrin, "XGBoost" (2016); bins, leaf-wise growth and categories ordered by gradient at each node as G. Ke et al.,
//! "LightGBM" (2017); the rate of learning and the sizes of trees are those of scikit-learn's `HistGradientBoosting*`.
//!
//! The same frame, settings and seed give the same model on any number of cores: sums are taken in row order.

mod bins;
mod booster;
mod folds;
mod frame;
mod loss;
mod score;
mod target;
#[cfg(test)]
mod tests;
mod tree;

pub use bins::{BINS_MAX, Binned};
pub use booster::{Booster, BoosterSettings, Predictions};
pub use folds::{FoldSettings, folds, out_of_fold};
pub use frame::{Cells, FRAME_CELLS_MAX, Frame, FrameColumn, MISSING_CODE};
pub use score::{AreaUnderCurve, log_loss, roc_auc};
pub use target::{CLASS_NUMBERS_MAX, CLASSES_MAX, Target, TargetError};
