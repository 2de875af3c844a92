//! A post-mortem: the same as its Markdown, for a browser.

use maud::{Markup, html};
use trackway_api::runs::explain::exit_status;
use trackway_api::runs::postmortem::{FailedAttempt, InputVersion, Postmortem, Spent};
use trackway_core::text::{bytes, counted, duration, metric, short_digest, timestamp};

use crate::frame::{About, Page, page};
use crate::parts::{columns, section, table};
use crate::run_parts::{
    cause, checkpoints, data_sets, decisions, detections, diagnoses, difference, facts, known, sentence,
    state_class, timeline,
};
use crate::runbook::{link, paths_of, sections};

/// The page.
#[must_use]
pub fn postmortem(found: &Postmortem, about: &About) -> Page {
    let body = html! {
        @if let Some(diff) = &found.inputs.since_last_good { (section("What changed", &difference(diff))) }
        (section("Impact", &impact(found)))
        @if !found.timeline.is_empty() { (section("Timeline", &timeline(&found.timeline))) }
        (section("Cause", &causes(found)))
        (section("What was tried", &html! {
            @if found.tried.is_empty() { p { "No decision was recorded" } } @else { (decisions(&found.tried)) }
        }))
        (section("Data versions", &versions(found)))
        (section("Artifact integrity", &integrity(found)))
        (section("Actions", &actions(found)))
        (sections(runbook_paths(found)))
    };
    page(&format!("Post-mortem: {}", found.run.name), about, &lead(found), &body)
}

fn runbook_paths(found: &Postmortem) -> impl Iterator<Item = &str> {
    let causes = found.failures.iter().flat_map(|failed| paths_of(&failed.termination));
    causes.chain(found.actions.iter().filter_map(|action| action.runbook.as_deref()))
}

fn lead(found: &Postmortem) -> Markup {
    let run = &found.run;
    html! {
        p { span class=(format!("badge {}", state_class(run.state))) { (run.state.as_str()) } }
        @for line in &found.summary { p { (sentence(line)) } }
        p.dim {
            code { (run.run_id.to_string()) } ", config " code { (short_digest(&run.config_sha256)) }
            ", owner " (known(run.owner.as_deref())) ", team " (known(run.team.as_deref()))
        }
        p.dim { "From evidence only; “not known” means that no evidence shows it." }
    }
}

fn impact(found: &Postmortem) -> Markup {
    let it = &found.impact;
    let shown = |value: Option<f64>, text: fn(f64) -> String| known(value.map(text).as_deref());
    type Row = (&'static str, fn(&Spent) -> Option<f64>, fn(f64) -> String);
    let rows: [Row; 3] = [
        ("wall time", |spent| spent.wall_hours, |hours| duration(hours * 3600.0)),
        ("GPU hours", |spent| spent.gpu_hours, metric),
        ("money", |spent| spent.usd, |usd| format!("{usd:.2} USD")),
    ];
    html! {
        p { "Attempts that did not succeed: " (it.failed_count) " of " (it.attempt_count) }
        @if it.failed_count > 0 {
            p { "Lost steps: "
                (known(it.lost_steps.map(|steps| steps.to_string()).as_deref()))
                @if it.lost_steps.is_some() && it.lost_unknown_count > 0 {
                    " or more: " (known(None)) " of " (counted(it.lost_unknown_count, "attempt"))
                }
            }
            p {
                "Time to recovery: " (shown(it.recovery_seconds, duration))
                @if it.recovery_seconds.is_some() && it.unrecovered_count > 0 {
                    "; no step followed " (counted(it.unrecovered_count, "failure"))
                }
            }
        }
        (table(&columns(" | All attempts: | Not successful: | Of it for known lost steps, in proportion:"),
            rows.into_iter().map(|(name, value, text)| html! {
                td { (name) }
                td.n { (shown(value(&it.run), text)) }
                @if it.failed_count > 0 {
                    td.n { (shown(value(&it.failed), text)) }
                    td.n { (shown(value(&it.lost), text)) }
                } @else { td.n { "–" } td.n { "–" } }
            })))
    }
}

fn causes(found: &Postmortem) -> Markup {
    let failures = &found.failures;
    html! {
        @for what in &found.blocked_by { p { "Pre-flight forbade the launch: " (sentence(what)) } }
        @if failures.is_empty() && found.blocked_by.is_empty() { p { "No attempt ended without success" } }
        @for failure in failures {
            div.card {
                h3 { "Attempt " (failure.attempt_number) }
                (cause(&failure.termination, &failure.amendments))
                (attempt_facts(failure))
                @if !failure.detections.is_empty() { h3 { "What detectors found in it" } (detections(&failure.detections)) }
                @if !failure.diagnoses.is_empty() { h3 { "What diagnoses showed" } (diagnoses(&failure.diagnoses)) }
            }
        }
    }
}

fn attempt_facts(failure: &FailedAttempt) -> Markup {
    let count = |count: Option<u64>| count.map(|count| count.to_string());
    let rows = [
        ("attempt", Some(failure.attempt_id.to_string())),
        ("hosts", failure.hosts.clone()),
        ("began", failure.started_at.map(timestamp)),
        ("ended", failure.ended_at.map(timestamp)),
        ("status", exit_status(failure.exit_code, failure.signal)),
        ("last step", count(failure.last_step)),
        ("committed step", count(failure.last_committed_step)),
        ("lost steps", count(failure.lost_steps)),
        ("followed by attempt", count(failure.next_attempt_number.map(u64::from))),
        ("peak memory", failure.peak_rss_bytes.map(bytes)),
        ("memory of the host", failure.host_memory_bytes.map(bytes)),
    ];
    html! {
        h3 { "Facts" }
        (facts(&rows))
    }
}

fn versions(found: &Postmortem) -> Markup {
    let inputs = &found.inputs;
    html! {
        @if inputs.sets.is_empty() { p { (known(None)) ": the run file names no data set" } } @else {
            (data_sets(&inputs.sets, |rows| known(rows.map(|rows| rows.to_string()).as_deref())))
        }
        (table(&columns("Input | Changed between attempts | Versions"), inputs.inputs.iter().map(|input| {
            html! { td { (input.what) } td { (changed(input)) } td { (version_list(input)) } }
        })))
    }
}

fn changed(input: &InputVersion) -> Markup {
    let attempts: usize = input.versions.iter().map(|version| version.attempts.len()).sum();
    html! {
        @match input.changed {
            _ if attempts == 1 => "one attempt",
            Some(true) => b.warn { "yes" },
            Some(false) => "no",
            None => (known(None)),
        }
    }
}

fn version_list(input: &InputVersion) -> Markup {
    let is_one = input.versions.len() == 1;
    html! {
        @for version in &input.versions {
            p {
                @if let Some(value) = &version.value { code { (value) } } @else { (known(None)) }
                @if !is_one {
                    " attempt "
                    (version.attempts.iter().map(u32::to_string).collect::<Vec<String>>().join(", "))
                }
            }
        }
    }
}

fn integrity(found: &Postmortem) -> Markup {
    let stored = &found.integrity;
    let verified = &stored.verified;
    let differing: u64 = verified.kinds.iter().map(|kind| kind.differ_count).sum();
    html! {
        @if verified.kinds.is_empty() { p { (known(None)) ": nothing is stored of the run" } }
        @else if differing == 0 { p.pass { "Nothing differs from what was sealed" } }
        @else { p.block { (counted(differing, "digest")) @if differing == 1 { " differs" } @else { " differ" } " from what was sealed" } }
        (table(&columns("Digests of | Hold: | Differ: | Not sealed yet: | Cannot be read here:"), verified.kinds.iter().map(|kind| html! {
            td { (kind.kind.plural()) }
            td.n { (kind.hold_count) } td.n { (kind.differ_count) } td.n { (kind.open_count) } td.n { (kind.unknown_count) }
        })))
        @for differs in &verified.differs { p.block { (differs.kind.as_str()) " " code { (differs.id) } ": " (differs.why) } }
        h3 { "Checkpoints" }
        @if stored.checkpoints.is_empty() { p { "None. Why: " (known(stored.no_checkpoint_why.as_deref())) } } @else {
            (checkpoints(&stored.checkpoints, stored.resume_step.filter(|_| !found.last_attempt_diverged())))
            @if let (Some(step), true) = (stored.resume_step, found.last_attempt_diverged()) {
                p.warn {
                    "A resume would continue from step " (step) ", which the training that diverged saved: if a checkpoint from before is "
                    "left, the command that continues from it is among the actions"
                }
            }
        }
        @if stored.deleted_count > 0 { p.dim { (counted(stored.deleted_count, "checkpoint")) " deleted by retention" } }
        @if let Some(proof) = &stored.resume_proof {
            p { "Resume proof of " (timestamp(proof.at)) ": " (proof.verdict.as_str()) @if let Some(why) = &proof.why { ", " (why) } }
        } @else if !stored.checkpoints.is_empty() { p { "Whether a resume is exact is " (known(None)) ": it was never proved" } }
        @if let Some(back) = &stored.fall_back {
            p.warn { "The last attempt fell back from step " (back.from_step) " to step " (back.to_step) ": " (back.why) }
        }
    }
}

fn actions(found: &Postmortem) -> Markup {
    html! {
        @if found.actions.is_empty() { p { "None: no attempt ended without success" } } @else {
            (table(&columns(" | Action | Runbook | Owner | Due"), found.actions.iter().map(|action| html! {
                td { "☐" } td { (sentence(&action.text)) } td { @if let Some(path) = &action.runbook { (link(path)) } } td {} td {}
            })))
        }
    }
}
