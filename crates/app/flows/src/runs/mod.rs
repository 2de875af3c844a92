//! What is done with runs that are recorded: an attempt is amended, diagnosed, classified or reproduced; a run is named
//! or exported.

pub mod amend;
pub mod amend_run;
pub mod classify;
pub mod diagnose;
pub mod export;
pub mod reproduce;
