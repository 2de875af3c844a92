use trackway_api::runs::rehearsal::Proof;
use trackway_engine::Context;
use trackway_engine::run::RunSource;
use trackway_flows::training::prove;
use trackway_flows::training::prove::{ProofVerdict, ProveRequest};

use crate::args::ProveArgs;
use crate::commands::live::{note_launches, supervised};
use crate::commands::patch_of;
use crate::exit::{Exit, INTEGRITY, NOT_COMPLETED};
use crate::printer::{Printer, Tone};
use crate::units::short_hash;

/// Differing files that are shown; `--json` has all of them.
const DIFFERENCES_MAX: usize = 12;

pub fn prove(context: &Context, args: &ProveArgs, printer: Printer) -> Exit {
    let source = RunSource::File { path: args.file.clone(), patch: patch_of(&args.overrides)? };
    let request = ProveRequest { source, steps: args.steps, handshake_seconds: args.handshake_timeout.0 };
    let proof = supervised(context, printer, |live| prove::prove(context, &request, live))?;
    printer.answer(&proof, || print(printer, &proof));
    Ok(match proof.verdict {
        ProofVerdict::Equal => 0,
        ProofVerdict::Different => INTEGRITY,
        ProofVerdict::Nondeterministic | ProofVerdict::NotProved | ProofVerdict::NotApplicable => {
            NOT_COMPLETED
        }
    })
}

fn print(printer: Printer, proof: &Proof) {
    let digest = |digest: &Option<String>| digest.as_deref().map_or("–", short_hash).to_owned();
    let rows = proof
        .digests
        .iter()
        .map(|(kind, digests)| {
            vec![
                kind.as_str().to_owned(),
                digest(&digests.control),
                digest(&digests.repeated),
                digest(&digests.resumed),
            ]
        })
        .collect::<Vec<_>>();
    if !rows.is_empty() {
        printer.table(&["state", "control", "repeated", "resumed"], rows);
    }
    for difference in proof.differences.iter().take(DIFFERENCES_MAX) {
        printer.line(format!("  {} `{}`: {}", difference.kind.as_str(), difference.name, difference.what));
    }
    let tone = if proof.verdict == ProofVerdict::Equal { Tone::Good } else { Tone::Bad };
    printer.line(printer.tone(tone, proof.verdict.as_str()) + ": " + sentence(proof));
    note_launches(printer, proof.launches.len(), proof.wall_seconds);
}

fn sentence(proof: &Proof) -> String {
    match (&proof.why, proof.killed_at_step, proof.resumed_from_step) {
        (Some(why), _, _) => why.clone(),
        (None, Some(killed), Some(resumed)) => format!(
            "`{}` ends in the same state after {} steps, whether it is interrupted or killed at step {killed} and resumed from step {resumed}",
            proof.name, proof.steps
        ),
        (None, _, _) => format!("`{}` ends in the same state", proof.name),
    }
}
