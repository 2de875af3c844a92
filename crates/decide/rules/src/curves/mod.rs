//! What the curve of a metric shows, one value at a time: that another training begins, where a loss is between its best level and
//! its beginning, and whether a script learns by reinforcement.

pub(crate) mod began_again;
pub(crate) mod loss_level;
pub(crate) mod reinforcement;
