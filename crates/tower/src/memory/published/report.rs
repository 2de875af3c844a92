//! Every case computed, and the document that says how it came out.

use super::{Case, Counter, Source, cases};
use crate::memory::device::CONTEXT_BYTES;
use crate::memory::estimate::{MemoryEstimate, estimate};

#[test]
fn show() {
    for case in cases::all() {
        let e = estimate(&case.spec);
        let p = e.parts;
        let gib = |b: u64| b as f64 / 1073741824.0;
        let frag = super::super::estimate::fragmentation_bytes(&case.spec, &e);
        let (minus, ctx) = match case.counter {
            Counter::Allocated => (p.overhead as f64, 0.0),
            Counter::Reserved => (p.overhead as f64 - frag, 0.0),
            Counter::Device => (CONTEXT_BYTES, case.context_bytes.unwrap_or(CONTEXT_BYTES)),
        };
        let total = e.total_bytes as f64 - minus + ctx;
        println!(
            "{:?} {:45} {:7.2} GiB est {:7.2} err {:+6.1}%  {} P{:.2} G{:.2} O{:.2} A{:.2} L{:.2} C{:.2} ov{:.2} [{:.2}..{:.2}]",
            case.source,
            case.name,
            case.measured_bytes / 1073741824.0,
            total / 1073741824.0,
            100.0 * (total / case.measured_bytes - 1.0),
            e.peak_phase,
            gib(p.parameters),
            gib(p.gradients),
            gib(p.optimizer + p.master_weights),
            gib(p.activations),
            gib(p.logits),
            gib(p.copies),
            gib(p.overhead),
            gib(e.low_bytes),
            gib(e.high_bytes)
        );
    }
}
