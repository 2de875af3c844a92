//! The script's outputs on their way to its logs and to a terminal, with the times of their lines, and what of them was left out.

mod display;
pub(super) mod left_out;
pub(super) mod log;
mod redrawn;
pub(super) mod stream;
pub(super) mod times;
pub(super) mod waking;
