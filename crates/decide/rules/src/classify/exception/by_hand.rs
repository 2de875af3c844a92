//! What only a script says: `raise RuntimeError("disk quota exceeded")` is what its code decided to say, and no file
//! system, allocator, network or platform said it. What a script itself is the one to see, such as a loss that is NaN
//! or a row that is malformed, is believed.

use trackway_core::TerminationReason as Reason;

use super::lasting::is_of_logic;
use crate::classify::placed::{PlacedHit, chained};
use crate::pattern::Pattern;
use crate::signatures::Role;

/// What the allocator of a device prints, from its first word on: who raises that imitates it.
static ALLOCATORS: Pattern =
    Pattern::exact(r"RuntimeError: (CUDA|HIP|XPU|NPU|MPS)( backend)?( error:)? out of memory");

/// Drops what such lines say of the machine. The exceptions that they are remain.
pub(crate) fn drop_words(placed: &mut Vec<PlacedHit<'_>>) {
    let all = placed.as_slice();
    let said: Vec<usize> =
        all.iter().filter(|found| is_only_said(found, all)).map(|found| found.order).collect();
    placed.retain(|found| !said.contains(&found.order));
}

fn is_only_said(found: &PlacedHit<'_>, placed: &[PlacedHit<'_>]) -> bool {
    found.is_by_hand
        && is_for_others_to_say(found)
        && !ALLOCATORS.is_match(&found.text)
        && !placed.iter().any(|other| is_translated(other, found, placed))
}

/// Whether a machine, a network, a platform or a person is the one to say it.
fn is_for_others_to_say(found: &PlacedHit<'_>) -> bool {
    match found.role {
        Role::Verdict | Role::Cause | Role::Exception | Role::Consequence => matches!(
            found.reason,
            Reason::StorageError
                | Reason::HostOom
                | Reason::DeviceOom
                | Reason::NetworkError
                | Reason::NodeFailure
                | Reason::BudgetExhausted
        ),
        Role::Hint => found.reason == Reason::Cancelled,
        Role::Completion | Role::Handled | Role::Chain => false,
    }
}

/// Whether `found` was raised because of `other`, which the machine may have caused.
fn is_translated(other: &PlacedHit<'_>, found: &PlacedHit<'_>, placed: &[PlacedHit<'_>]) -> bool {
    matches!(other.role, Role::Cause | Role::Exception)
        && !other.is_on_line_of(found)
        && chained(placed, *other, *found)
        && !is_of_logic(&other.text)
}
