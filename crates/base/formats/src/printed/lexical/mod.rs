//! What a line is made of: its prefix, its words, numbers and commas, and the names that mean a metric, a setting or a step.

pub(super) mod commas;
pub(super) mod named;
pub(super) mod named_value;
pub(super) mod names;
pub(super) mod part_name;
pub(super) mod prefix;
pub(super) mod tokens;
