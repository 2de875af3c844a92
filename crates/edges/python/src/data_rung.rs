use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};
use trackway_recorder::DataRung;

use crate::error::input;

/// Keys that `in_rung` was called with in a rung, and those that are part of it; a function of the module belongs to no run.
static KEYS: AtomicU64 = AtomicU64::new(0);
static KEYS_KEPT: AtomicU64 = AtomicU64::new(0);

/// How many keys `in_rung` was called with in a rung since the last call, and how many of them are part of it.
#[pyfunction]
pub fn take_rung_keys() -> (u64, u64) {
    (KEYS.swap(0, Ordering::Relaxed), KEYS_KEPT.swap(0, Ordering::Relaxed))
}

/// The fraction of the data that this process trains on, from above 0 to 1; 1 outside a rung.
#[pyfunction]
pub fn rung() -> f64 {
    DataRung::from_environment().fraction()
}

/// Whether what this key names is part of the rung.
#[pyfunction]
#[pyo3(signature = (key, /))]
pub fn in_rung(py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
    let rung = DataRung::from_environment();
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(counted(&rung, rung.holds_text(text.to_str()?)));
    }
    let whole = key.is_instance_of::<PyInt>() && !key.is_instance_of::<PyBool>();
    // Numbers of NumPy and the like are whole if they implement `__index__`.
    let number =
        if whole { key.extract::<i64>() } else { key.call_method0("__index__").and_then(|it| it.extract()) };
    match number {
        Ok(number) if !key.is_instance_of::<PyBool>() => Ok(counted(&rung, rung.holds_number(number))),
        _ => {
            let found = key.get_type().qualname()?;
            Err(input(
                py,
                &format!("a row is named by a text or a whole number of 64 bits, not by a {found}"),
            ))
        }
    }
}

fn counted(rung: &DataRung, is_kept: bool) -> bool {
    if rung.fraction() < 1.0 {
        KEYS.fetch_add(1, Ordering::Relaxed);
        KEYS_KEPT.fetch_add(u64::from(is_kept), Ordering::Relaxed);
    }
    is_kept
}

/// A byte for each of `count` rows: 1 where it is part of the rung.
#[pyfunction]
pub fn rung_mask(py: Python<'_>, count: u64) -> PyResult<Bound<'_, PyBytes>> {
    let indexes = py.detach(|| DataRung::from_environment().indexes(count));
    let length = usize::try_from(count).map_err(|_| input(py, "there are too many rows"))?;
    PyBytes::new_with(py, length, |mask| {
        for index in indexes {
            mask[index as usize] = 1;
        }
        Ok(())
    })
}
