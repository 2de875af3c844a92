//! A frame with the values of several steps, which a reader gives out as so many metrics frames.

use trackway_core::Timestamp;

use super::payloads::{Frame, Metrics, NameId};
use crate::frames::Fields;

/// Values of the same metrics at one step after the other.
#[derive(Debug)]
pub(super) struct Series {
    at: Timestamp,
    ids: Vec<NameId>,
    /// Of each step its number and the values, bit for bit.
    numbers: Vec<u64>,
}

impl Series {
    /// Reads a payload.
    pub fn of(mut fields: Fields<'_>) -> Option<Self> {
        let (at, names, steps) = (fields.time()?, fields.u32()? as usize, fields.u32()? as usize);
        // Checked before anything is reserved: a count alone must not make a reader allocate.
        let numbers = steps.checked_mul(names.checked_add(1)?)?;
        let needed = names.checked_mul(4)?.checked_add(numbers.checked_mul(8)?)?;
        if names == 0 || steps == 0 || fields.bytes_left() < needed {
            return None;
        }
        let ids = (0..names).map(|_| fields.u32().map(NameId)).collect::<Option<_>>()?;
        let numbers = (0..numbers).map(|_| fields.u64()).collect::<Option<_>>()?;
        Some(Self { at, ids, numbers })
    }

    /// The metrics frames that it has, in order.
    pub fn frames(&self) -> impl Iterator<Item = Frame> {
        self.numbers.chunks_exact(1 + self.ids.len()).map(|numbers| {
            let (step, values) = numbers.split_first().map_or((0, numbers), |(step, values)| (*step, values));
            let values = values.iter().map(|bits| f64::from_bits(*bits));
            let values = self.ids.iter().copied().zip(values).collect();
            Frame::Metrics(Metrics { at: self.at, step, values })
        })
    }
}
