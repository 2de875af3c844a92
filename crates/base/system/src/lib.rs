//! What only the operating system provides: the time, randomness, and a request to stop. Everything else takes these as
//! parameters, so that it can be tested and replayed.

mod cancel;
mod clock;

pub use cancel::Cancel;
pub use clock::{SystemClock, SystemIds};
