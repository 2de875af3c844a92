//! What the example jobs have in common: options, data order, parameters, optimizer, checkpoint contents and the loop.
//!
//! Every job keeps one promise: training N steps at once, and training with any number of kills and resumes in
//! between, end in the same weights, bit for bit. Three rules carry it. All state that an update reads is in the
//! checkpoint (weights, both Adam moments, the step). The order of the data is a function of seed and step alone. The
//! arithmetic runs on one thread in a fixed order.

mod adam;
mod checkpoint;
mod error;
mod evaluate;
mod launch;
mod options;
mod order;
mod parameters;
mod rehearsing;
mod text;
mod train;
mod transformer;
mod wine;

pub use adam::Adam;
pub use checkpoint::{Cursor, restore, save};
pub use error::JobError;
pub use evaluate::evaluate;
pub use launch::launch;
pub use options::{Defaults, Options};
pub use order::{DataOrder, Normal, permutation};
pub use parameters::Parameters;
pub use rehearsing::Rehearsing;
pub use text::{Corpus, SYMBOL_COUNT};
pub use train::{Ending, Job, Throughput, Validation, train};
pub use transformer::CharTransformer;
pub use wine::WineClassifier;
