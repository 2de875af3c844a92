use trackway_app::App;
use trackway_app::checkpoints::CheckpointEntry;

use crate::args::CheckpointCommand;
use crate::exit::{Failure, NOT_COMPLETED};
use crate::printer::Printer;
use crate::units::{bytes, short_hash};

/// Something the checkpoints' integrity needs a look at.
const INTEGRITY: u8 = 7;
const NOT_FOUND: u8 = 6;

pub fn checkpoint(app: &App, command: &CheckpointCommand, printer: Printer) -> Result<u8, Failure> {
    match command {
        CheckpointCommand::Ls { run } => list(&app.checkpoints(run, false)?, printer),
        CheckpointCommand::Verify { run } => {
            let entries = app.checkpoints(run, true)?;
            let shown = list(&entries, printer)?;
            let broken = entries.iter().filter(|entry| entry.verified == Some(false)).count();
            if broken > 0 {
                printer.note(&format!("{broken} of {} committed checkpoints do not verify", entries.len()));
                return Ok(INTEGRITY);
            }
            Ok(shown)
        }
        CheckpointCommand::ResumeTarget { run } => {
            let (target, fallbacks) = app.resume_target(run)?;
            for fallback in fallbacks {
                printer.note(&fallback);
            }
            list(target.as_slice(), printer)
        }
        CheckpointCommand::Now { run } => {
            let asked = app.checkpoint_now(run)?;
            if printer.is_json() {
                printer.document(&asked);
            } else {
                let step = asked.step.map(|step| format!(" at step {step}")).unwrap_or_default();
                printer.note(&format!("request {}: {}{step}", asked.request_id, asked.outcome));
            }
            Ok(if asked.outcome == "done" { 0 } else { NOT_COMPLETED })
        }
    }
}

fn list(entries: &[CheckpointEntry], printer: Printer) -> Result<u8, Failure> {
    let committed = entries.iter().any(|entry| entry.manifest_sha256.is_some());
    if printer.is_json() {
        printer.document(&serde_json::json!({ "checkpoints": entries }));
    } else if entries.is_empty() {
        printer.note("no checkpoint was ever begun");
    } else {
        printer.table(
            &["step", "state", "verified", "size", "epoch", "manifest", "attempt", "under"],
            entries.iter().map(row).collect(),
        );
    }
    Ok(if committed { 0 } else { NOT_FOUND })
}

fn row(entry: &CheckpointEntry) -> Vec<String> {
    let verified = match entry.verified {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "–",
    };
    vec![
        entry.step.to_string(),
        entry.state.clone(),
        verified.into(),
        entry.size_bytes.map(bytes).unwrap_or_default(),
        entry.epoch.to_string(),
        entry.manifest_sha256.as_deref().map(short_hash).unwrap_or("–").into(),
        entry.attempt_id.to_string(),
        entry.object_prefix.clone(),
    ]
}
