use trackway_app::App;
use trackway_ledger::{AttemptRow, RunRow};

use crate::args::{AttemptsArgs, ListArgs};
use crate::exit::Failure;
use crate::printer::Printer;
use crate::units::duration;

pub fn runs(app: &App, args: &ListArgs, printer: Printer) -> Result<u8, Failure> {
    let runs = app.runs(args.limit)?;
    if printer.is_json() {
        printer.document(&runs);
    } else if runs.is_empty() {
        printer.note("no run yet; start one with: trackway run -- COMMAND …");
    } else {
        printer.table(
            &["run", "name", "state", "attempts", "ended by", "committed", "took", "created"],
            runs.iter().map(run_cells).collect(),
        );
    }
    Ok(0)
}

fn run_cells(run: &RunRow) -> Vec<String> {
    vec![
        run.run_id.to_string(),
        run.name.clone(),
        run.state.to_string(),
        run.attempt_count.to_string(),
        run.termination_reason.map(|reason| reason.to_string()).unwrap_or_default(),
        run.last_committed_step.map(|step| step.to_string()).unwrap_or_default(),
        duration(run.wall_seconds),
        run.created_at.to_rfc3339().get(..19).unwrap_or_default().replace('T', " "),
    ]
}

pub fn attempts(app: &App, args: &AttemptsArgs, printer: Printer) -> Result<u8, Failure> {
    let attempts = app.attempts(args.run.as_deref(), args.limit)?;
    if printer.is_json() {
        printer.document(&attempts);
    } else if attempts.is_empty() {
        printer.note("no attempt yet");
    } else {
        printer.table(
            &[
                "attempt",
                "#",
                "stage",
                "state",
                "ended by",
                "confidence",
                "status",
                "from",
                "last step",
                "committed",
                "took",
            ],
            attempts.iter().map(attempt_cells).collect(),
        );
    }
    Ok(0)
}

fn attempt_cells(attempt: &AttemptRow) -> Vec<String> {
    let step = |step: Option<u64>| step.map(|step| step.to_string()).unwrap_or_default();
    let status = match (attempt.exit_code, attempt.signal) {
        (Some(code), _) => format!("code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => String::new(),
    };
    vec![
        attempt.attempt_id.to_string(),
        attempt.attempt_number.to_string(),
        attempt.stage.clone(),
        attempt.state.to_string(),
        attempt.termination_reason.map(|reason| reason.to_string()).unwrap_or_default(),
        attempt.termination_confidence.map(|confidence| confidence.to_string()).unwrap_or_default(),
        status,
        step(attempt.resumed_from_step),
        step(attempt.last_step),
        step(attempt.last_committed_step),
        attempt.wall_seconds.map(duration).unwrap_or_default(),
    ]
}
