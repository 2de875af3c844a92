//! What a person is advised to do: by the reason of an end ([`runbook`]) or the symptom of a detector ([`symptoms`]), and after a
//! command that ran without a run file ([`next_step`]).

pub(crate) mod lines;
pub(crate) mod next_step;
pub(crate) mod runbook;
pub(crate) mod symptoms;
