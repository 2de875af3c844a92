//! Whether the script has terminals: where a person watches it from one, as if it ran alone. What is piped in reaches it always.

use trackway_engine::reporter::TerminalStreams;

use crate::printer::{Printer, stderr_is_terminal, stdin_is_piped, stdin_is_terminal, stdout_is_terminal};

/// What decides it, of a run that is not detached.
#[derive(Debug, Clone, Copy)]
struct Facts {
    /// Which streams of this process are terminals.
    own: TerminalStreams,
    is_json: bool,
    /// `--no-tty`.
    is_refused: bool,
    /// `CI` is set: what looks like a terminal there is a log.
    is_ci: bool,
}

/// The streams of the script that are terminals.
pub fn streams(printer: Printer, is_refused: bool) -> TerminalStreams {
    let own = TerminalStreams {
        stdin: stdin_is_terminal(),
        stdout: stdout_is_terminal(),
        stderr: stderr_is_terminal(),
        is_piped: stdin_is_piped(),
    };
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    decide(Facts { own, is_json: printer.is_json(), is_refused, is_ci })
}

/// Those that are terminals here; what is typed is passed on only to a script that a person sees, what is piped to any.
fn decide(facts: Facts) -> TerminalStreams {
    let Facts { own, is_json, is_refused, is_ci } = facts;
    let is_seen = own.stdout || own.stderr;
    let without = TerminalStreams { is_piped: own.is_piped, ..TerminalStreams::default() };
    if is_json || is_refused || is_ci || !is_seen { without } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each stream that is a terminal here is one for the script, that input needs an output that a person sees, and that
    /// `--json`, `--no-tty` and CI leave pipes, but what is piped in.
    #[test]
    fn who_has_a_terminal() {
        let all = TerminalStreams { stdin: true, stdout: true, stderr: true, is_piped: false };
        let none = TerminalStreams::default();
        let facts = Facts { own: all, is_json: false, is_refused: false, is_ci: false };
        let to_a_file = TerminalStreams { stdout: false, ..all };
        let without_input = TerminalStreams { stdin: false, ..all };
        let piped = TerminalStreams { is_piped: true, ..none };
        let seen_and_piped = TerminalStreams { is_piped: true, ..without_input };
        let input_alone = TerminalStreams { stdin: true, ..none };
        for (facts, expected) in [
            (facts, all),
            (Facts { own: to_a_file, ..facts }, to_a_file),
            (Facts { own: without_input, ..facts }, without_input),
            (Facts { own: input_alone, ..facts }, none),
            (Facts { own: piped, ..facts }, piped),
            (Facts { own: seen_and_piped, ..facts }, seen_and_piped),
            (Facts { own: seen_and_piped, is_json: true, ..facts }, piped),
            (Facts { is_json: true, ..facts }, none),
            (Facts { is_refused: true, ..facts }, none),
            (Facts { is_ci: true, ..facts }, none),
        ] {
            assert_eq!(decide(facts), expected, "{facts:?}");
        }
    }
}
