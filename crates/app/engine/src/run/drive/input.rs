//! What an attempt reads from: what is piped into the command, or a terminal.

use std::sync::Arc;

use trackway_launch::{Terminal, TerminalStreams, input_waits};

use crate::reporter::Reporter;
use crate::run::launch::attempt::LaunchedAttempt;

/// What is piped into the command, which can be read once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// No attempt of this command was given it.
    Waits,
    /// An attempt was.
    Given,
}

/// What is left of the input once an attempt was launched. That it did not reach the script is said, where there is any.
pub(super) fn input_after(input: Input, launched: &LaunchedAttempt, reporter: &dyn Reporter) -> Input {
    if input == Input::Waits && reporter.terminal().is_piped && launched.terminal.is_none() && input_waits() {
        reporter.note("what is piped into the command does not reach a script that runs elsewhere".into());
    }
    if launched.terminal.is_some() { Input::Given } else { input }
}

/// The terminals of the next attempt, where a person watches the run from a terminal, and what is piped in for the first one.
pub(super) fn terminal_of(input: Input, reporter: &dyn Reporter) -> Option<Arc<Terminal>> {
    let mut streams = reporter.terminal();
    if streams.is_piped && input == Input::Given {
        reporter.note(
            "this attempt has an empty standard input: what is piped into the command went to the one before"
                .into(),
        );
        streams.is_piped = false;
    }
    if streams == TerminalStreams::default() {
        return None;
    }
    let opened = Terminal::open(streams).map(Arc::new);
    opened.map_err(|error| reporter.note(format!("the script has pipes instead of a terminal: {error}"))).ok()
}
