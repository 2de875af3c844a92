//! What a person is advised to do: by the reason of an end or the symptom of a detector ([`runbook`]), and after a command that ran
//! without a run file ([`next_step`]).

pub(crate) mod next_step;
pub(crate) mod runbook;
