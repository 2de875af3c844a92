use std::time::Duration;

use pyo3::prelude::*;

/// How long a waiting thread goes without looking whether Ctrl-C was pressed.
const TURN: Duration = Duration::from_millis(100);

/// Waits, with the GIL released, until `done` returns true; raises KeyboardInterrupt when a signal handler does.
pub fn until(py: Python<'_>, done: impl Fn(Duration) -> bool + Sync) -> PyResult<()> {
    while !py.detach(|| done(TURN)) {
        py.check_signals()?;
    }
    Ok(())
}
