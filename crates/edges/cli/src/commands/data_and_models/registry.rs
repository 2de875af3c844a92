//! `trackway registry …`

use std::collections::BTreeSet;
use std::path::Path;

use trackway_api::models::registry::{Approval, Deployed, Model, ModelCard, ModelChanged, ModelDetails};
use trackway_core::registry::{BaselineRule, GateVerdict, HealthRule, ModelStage};
use trackway_core::{Clock as _, Rung, Timestamp};
use trackway_engine::Context;
use trackway_engine::page::Page;
use trackway_flows::checkpoints::CheckpointRef;
use trackway_flows::registry;
use trackway_flows::registry::{
    AliasRequest, Approve, Policy, PolicyRequest, PromoteRequest, RegisterRequest, RollBackModel,
};
use trackway_formats::shell::quoted;

use crate::args::{
    AliasArgs, ApproveArgs, ExportArgs, HistoryArgs, HowArgs, PolicyArgs, PromoteArgs, RegisterArgs,
    RegistryCommand, RollbackArgs, Seconds, ShowArgs,
};
use crate::commands::live::watch;
use crate::commands::sections::note_more;
use crate::exit::{Exit, Failure, INSUFFICIENT, parse_time};
use crate::printer::{Printer, StyledLine, Tone, row};
use crate::units::{bytes, counted, duration, short_hash, timestamp};

pub fn registry(context: &Context, command: &RegistryCommand, printer: Printer) -> Exit {
    match command {
        RegistryCommand::Ls => list(context, printer),
        RegistryCommand::Show(args) => show(context, args, printer),
        RegistryCommand::Register(args) => register(context, args, printer),
        RegistryCommand::Promote(args) => promote(context, args, printer),
        RegistryCommand::Approve(args) => approve(context, args, printer),
        RegistryCommand::Rollback(args) => roll_back(context, args, printer),
        RegistryCommand::History(args) => history(context, args, printer),
        RegistryCommand::Alias(args) => alias(context, args, printer),
        RegistryCommand::Policy(args) => policy(context, args, printer),
        RegistryCommand::Export(args) => export(context, args, printer),
        RegistryCommand::Card { model, version } => card(context, model, version, printer),
    }
}

fn list(context: &Context, printer: Printer) -> Exit {
    let models = registry::models(context)?;
    printer.answer(&models, || print_models(printer, &models));
    Ok(0)
}

fn print_models(printer: Printer, models: &[Model]) {
    if models.is_empty() {
        return printer.note("no model yet; register one with: trackway registry register MODEL --run RUN");
    }
    let has_projects = models.iter().any(|model| model.project.is_some());
    let rows = models.iter().map(|model| {
        let production = model.production_version.map(|version| format!("v{version}")).unwrap_or_default();
        let since = model.production_since.map(timestamp).unwrap_or_default();
        let aliases: Vec<String> =
            model.aliases.iter().map(|(alias, version)| format!("{alias} → v{version}")).collect();
        let project = has_projects.then(|| model.project.clone().unwrap_or_default());
        let mut cells = vec![model.model.clone(), model.version_count.to_string(), production, since];
        cells.push(aliases.join(", "));
        cells.extend(project);
        cells
    });
    let mut header = vec!["model", "versions", "in production", "since", "aliases"];
    header.extend(has_projects.then_some("project"));
    printer.table(&header, rows.collect());
}

fn show(context: &Context, args: &ShowArgs, printer: Printer) -> Exit {
    let after = args.page.after.as_deref().map(version_number).transpose()?;
    let view = registry::model_view(context, &args.model, &Page { after, limit: args.page.limit })?;
    printer.answer(&view, || {
        print_model(printer, &view, context.clock.now());
        // Versions are counted from 1, without gaps.
        note_more(printer, view.next.map_or(0, |next| u64::from(next - 1)), "version", view.next);
    });
    Ok(0)
}

fn print_model(printer: Printer, view: &ModelDetails, now: Timestamp) {
    if let Some(project) = &view.project {
        printer.line(format!("project {project}"));
    }
    let rows = view.versions.iter().map(|version| {
        row![
            format!("v{}", version.version),
            stage(printer, version.stage),
            version.aliases.join(", "),
            version.step.map(|step| step.to_string()).unwrap_or_default(),
            bytes(version.size_bytes),
            version.checkpoint_manifest_sha256.get(..12).unwrap_or_default(),
            version.evaluation_id.as_deref().unwrap_or("none"),
            version.gates.map_or("not judged", GateVerdict::as_str),
            approvers(&version.approvals, now),
            timestamp(version.registered_at),
        ]
    });
    let header = [
        "version", "stage", "aliases", "step", "size", "manifest", "evaluation", "gates", "approved by",
        "registered",
    ];
    printer.table(&header, rows.collect());
    if view.policy.approvals > 0 {
        printer.note(format!(
            "a promotion to production needs {}, valid for {}",
            counted(view.policy.approvals.into(), "approval"),
            duration(view.policy.approval_seconds)
        ));
    }
    let Some(newest) = view.versions.first().filter(|newest| newest.stage != ModelStage::Production) else {
        return;
    };
    for refusal in &newest.refusals {
        printer.note(format!(
            "v{} cannot be promoted to production: {} ({})",
            newest.version, refusal.why, refusal.rule
        ));
    }
}

/// Who approved a version, each once: `ana, ben (ended)`, where no approval of Ben is valid any more.
fn approvers(approvals: &[Approval], now: Timestamp) -> String {
    let is_valid = |name: &str| approvals.iter().any(|row| row.approver == name && row.expires_at > now);
    let mut names: Vec<&str> = Vec::new();
    for row in approvals {
        if !names.contains(&row.approver.as_str()) {
            names.push(&row.approver);
        }
    }
    let cells = names.into_iter().map(|name| match is_valid(name) {
        true => name.to_owned(),
        false => format!("{name} (ended)"),
    });
    cells.collect::<Vec<_>>().join(", ")
}

fn stage(printer: Printer, stage: ModelStage) -> StyledLine {
    let tone = match stage {
        ModelStage::Production => Tone::Good,
        ModelStage::Staging => Tone::Bold,
        ModelStage::Candidate | ModelStage::Archived => Tone::Dim,
    };
    printer.tone(tone, stage.as_str())
}

fn register(context: &Context, args: &RegisterArgs, printer: Printer) -> Exit {
    let signature = match &args.signature {
        None => None,
        Some(path) => {
            let shown = path.display();
            let text = std::fs::read_to_string(path).map_err(|error| {
                Failure::usage(format!("`{shown}` cannot be read"), "name a JSON file").because(error)
            })?;
            let json = serde_json::from_str(&text).map_err(|error| {
                Failure::usage(format!("`{shown}` is not valid JSON"), "fix the file").because(error)
            })?;
            Some(json)
        }
    };
    let checkpoint = match args.step {
        Some(step) => CheckpointRef::Step(step),
        None => CheckpointRef::parse(&args.checkpoint)?,
    };
    let request = RegisterRequest {
        model: args.model.clone(),
        run: context.resolve_run(&args.run)?,
        checkpoint,
        signature,
        description: args.description.clone(),
        accepts_unsafe: args.accepts.why(),
    };
    let registered = registry::register_model(context, &request, &watch("verifying"))?;
    printer.answer(&registered, || {
        let row = &registered.version;
        let is = if registered.is_new { "is" } else { "is already" };
        printer.note(format!(
            "step {} of run {} {is} version {} of `{}`, manifest {}; pinned as `{}`",
            row.step.map(|step| step.to_string()).unwrap_or_default(),
            row.run_id,
            row.version,
            row.model,
            &row.checkpoint_manifest_sha256[..12],
            row.pin
        ));
        report_warnings(printer, &row.warnings);
    });
    Ok(0)
}

/// `--expect`: a number, or `none`.
fn expect(text: Option<&str>) -> Result<Option<Option<u32>>, Failure> {
    match text {
        None => Ok(None),
        Some("none") => Ok(Some(None)),
        Some(text) => text.trim_start_matches('v').parse().map(|version| Some(Some(version))).map_err(|_| {
            Failure::usage(
                format!("invalid version `{text}` of `--expect`"),
                "expected a version number or `none`",
            )
        }),
    }
}

/// `--after` of a list of versions: `3` or `v3`, from 1.
fn version_number(text: &str) -> Result<u32, Failure> {
    let number = text.trim_start_matches('v').parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        Failure::usage(format!("invalid version `{text}` of `--after`"), "expected a version number")
    })
}

fn promote(context: &Context, args: &PromoteArgs, printer: Printer) -> Exit {
    let HowArgs { expect: expected, deploy, why } = &args.how;
    let request = PromoteRequest {
        model: args.model.clone(),
        version: args.version.clone(),
        to: args.to,
        expect: expect(expected.as_deref())?,
        deploy: deploy.clone(),
        why: why.clone(),
    };
    let changed = registry::promote_model(context, &request, &watch("verifying"))?;
    printer.answer(&changed, || report_change(printer, &changed, &format!("in {}", args.to)));
    Ok(if changed.refusals.is_empty() { 0 } else { INSUFFICIENT })
}

fn roll_back(context: &Context, args: &RollbackArgs, printer: Printer) -> Exit {
    let HowArgs { expect: expected, deploy, why } = &args.how;
    let request = RollBackModel {
        model: args.model.clone(),
        to: args.to.clone(),
        expect: expect(expected.as_deref())?,
        deploy: deploy.clone(),
        why: why.clone(),
    };
    let changed = registry::roll_back_model(context, &request, &watch("verifying"))?;
    printer.answer(&changed, || report_change(printer, &changed, "back in production"));
    Ok(0)
}

fn report_change(printer: Printer, changed: &ModelChanged, what: &str) {
    let version = changed.version.map(|version| format!("version {version}")).unwrap_or_default();
    if !changed.refusals.is_empty() {
        printer.note(format!("{version} of `{}` was not promoted; nothing changed", changed.model));
        for refusal in &changed.refusals {
            printer.note(format!("  {} ({}); {}", refusal.why, refusal.rule, refusal.next));
        }
        if changed.refusals.iter().any(|refusal| refusal.rule.is_of_policy()) {
            report_policy(printer, &changed.model);
        }
        return;
    }
    let before = changed.was_version.map(|was| format!(" (before: version {was})")).unwrap_or_default();
    let since = if changed.change_number.is_none() { "already" } else { "now" };
    printer.note(format!("{version} of `{}` is {since} {what}{before}", changed.model));
    if changed.verify_seconds > 0.0 {
        let (verified, rest) = (duration(changed.verify_seconds), duration(changed.control_seconds));
        printer.note(format!("files verified in {verified}, everything else took {rest}"));
    }
    if let Some(deployed) = &changed.deployed {
        report_copy(printer, deployed);
    }
    report_warnings(printer, &changed.warnings);
}

/// How the rules that refused a version are seen and changed.
fn report_policy(printer: Printer, model: &str) {
    printer.note(format!(
        "what a promotion requires is the policy of `{model}`: trackway registry policy {model}"
    ));
    printer.note(format!(
        "what does not apply to it is left out by a file: trackway registry policy {model} --out policy.toml; edit it; trackway registry policy {model} --file policy.toml"
    ));
}

fn report_copy(printer: Printer, deployed: &Deployed) {
    let how = match deployed.copied_bytes {
        0 => "an intact copy exists already".to_owned(),
        count => format!("{} copied in {}", bytes(count), duration(deployed.copy_seconds)),
    };
    let points = match deployed.current_version {
        Some(_) if deployed.is_current => "; `current` points to it".to_owned(),
        Some(newer) => format!("; `current` points to version {newer}, which was promoted later"),
        None => String::new(),
    };
    printer.note(format!("{how}: {}{points}", deployed.folder.display()));
    report_warnings(printer, &deployed.warnings);
}

fn report_warnings(printer: Printer, warnings: &[String]) {
    warnings.iter().for_each(|warning| printer.note(format!("warning: {warning}")));
}

fn approve(context: &Context, args: &ApproveArgs, printer: Printer) -> Exit {
    let request = Approve {
        model: args.model.clone(),
        version: args.version.clone(),
        seconds: args.duration.map(positive).transpose()?,
        why: args.why.clone(),
    };
    let approved = registry::approve_model(&context.acting_as(args.by.as_deref()), &request)?;
    printer.answer(&approved, || {
        let row = &approved.approval;
        printer.note(format!(
            "{} approves version {} of `{}` until {}, with gate receipt {}",
            row.approver,
            row.version,
            row.model,
            timestamp(row.expires_at),
            &row.gate_receipt_id[..12]
        ));
        for refusal in &approved.refusals {
            printer.note(format!(
                "it still cannot be promoted to production: {} ({})",
                refusal.why, refusal.rule
            ));
        }
    });
    Ok(0)
}

/// The seconds of an approval, which lasts longer than nothing.
fn positive(given: Seconds) -> Result<f64, Failure> {
    let seconds = Some(given.0).filter(|seconds| *seconds > 0.0);
    seconds.ok_or_else(|| {
        Failure::usage(format!("an approval cannot last {given}"), "expected e.g. `12h` or `7d`")
    })
}

fn history(context: &Context, args: &HistoryArgs, printer: Printer) -> Exit {
    if let Some(text) = &args.at {
        let at = parse_time(text, "`2026-11-20T08:00:00Z`")?;
        let standing = registry::model_at(context, &args.model, at)?;
        printer.answer(&standing, || {
            let version =
                standing.production_version.map_or("nothing".into(), |version| format!("version {version}"));
            let manifest = standing.manifest_sha256.as_ref().map(|sha256| format!(", manifest {sha256}"));
            let manifest = manifest.unwrap_or_default();
            printer.line(format!("in production at {}: {version}{manifest}", standing.at));
        });
        return Ok(0);
    }
    let after = args.page.after.as_deref().map(change_number).transpose()?;
    let page = registry::model_history(context, &args.model, &Page { after, limit: args.page.limit })?;
    let mut entries = page.entries;
    if let Some(last) = entries.last_mut() {
        last.next = page.next;
    }
    printer.answer(&entries, || {
        let rows = entries.iter().map(|entry| {
            let gates = entry.gate_receipt_id.as_deref().map(short_hash).unwrap_or_default();
            let (person, why) =
                (entry.person.as_deref().unwrap_or_default(), entry.why.as_deref().unwrap_or_default());
            row![entry.number.to_string(), timestamp(entry.at), &entry.summary, person, gates, why]
        });
        printer.table(&["#", "at", "what", "who", "gates", "why"], rows.collect());
        note_more(printer, page.more_count, "change", page.next);
    });
    Ok(0)
}

/// `--after` of the history of a model.
fn change_number(text: &str) -> Result<u64, Failure> {
    text.parse().map_err(|_| {
        Failure::usage(format!("invalid change `{text}` of `--after`"), "expected the number of a change")
    })
}

fn alias(context: &Context, args: &AliasArgs, printer: Printer) -> Exit {
    let request = AliasRequest {
        model: args.model.clone(),
        alias: args.alias.clone(),
        version: args.version.clone(),
        expect: expect(args.expect.as_deref())?,
    };
    let changed = registry::set_model_alias(context, &request)?;
    printer.answer(&changed, || {
        let named =
            |version: Option<u32>| version.map_or("nothing".into(), |version| format!("version {version}"));
        printer.note(format!(
            "alias `{}` now points to {} (before: {})",
            args.alias,
            named(changed.version),
            named(changed.was_version)
        ));
    });
    Ok(0)
}

fn policy(context: &Context, args: &PolicyArgs, printer: Printer) -> Exit {
    let request = PolicyRequest {
        file: args.file.clone(),
        approvals: args.approvals,
        approval_seconds: args.approval_lasts.map(positive).transpose()?,
        own_approval: args.own_approval,
    };
    let policy = registry::set_model_policy(context, &args.model, &request)?;
    if let Some(path) = &args.out {
        registry::write_model_policy(&args.model, &policy, path)?;
    }
    printer.answer(&policy, || {
        policy_lines(&policy).into_iter().for_each(|line| printer.note(line));
        if let Some(path) = &args.out {
            printer.note(policy_written(&args.model, path));
        }
    });
    Ok(0)
}

/// Where a policy was written, and the command that applies it.
fn policy_written(model: &str, path: &Path) -> String {
    let shown = path.display();
    let (model, file) = (quoted(model), quoted(&shown.to_string()));
    format!("wrote `{shown}`; edit it, then: trackway registry policy {model} --file {file}")
}

/// What a policy requires, a sentence for each part.
fn policy_lines(policy: &Policy) -> Vec<String> {
    fn listed<T: std::fmt::Display>(words: &BTreeSet<T>) -> String {
        words.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
    let own = if policy.own_approval { "may also approve it" } else { "may not approve it" };
    let by = match policy.approvers.is_empty() {
        true => String::new(),
        false => format!(" by {}", listed(&policy.approvers)),
    };
    let mut lines = vec![match policy.approvals {
        0 => "a promotion to production needs no approval".to_owned(),
        approvals => format!(
            "a promotion to production needs {}{by}, each valid for {}; the person who registered a version {own}",
            counted(approvals.into(), "approval"),
            duration(policy.approval_seconds)
        ),
    }];
    if !policy.gates.is_empty() {
        lines.push(format!("gates that must be there: {}", listed(&policy.gates)));
    }
    lines.push(match policy.baseline {
        BaselineRule::Required => {
            "a gate must compare it with the version in production, once there is one".into()
        }
        BaselineRule::Optional => "a comparison with the version in production is optional".into(),
    });
    lines.push(format!(
        "trained on at least {} of the data",
        Rung::new(policy.rung_fraction_min).unwrap_or(Rung::FULL)
    ));
    lines.push(match policy.health {
        HealthRule::NotBroken => "the attempt that wrote it must not be broken".into(),
        HealthRule::Ok => "the attempt that wrote it must be ok".into(),
        HealthRule::Any => "the health of the attempt that wrote it does not count".into(),
    });
    if !policy.attempt.is_empty() {
        lines.push(format!("that attempt must show: {}", listed(&policy.attempt)));
    }
    if !policy.receipt.is_empty() {
        lines.push(format!("the receipt of its evaluation must have: {}", listed(&policy.receipt)));
    }
    lines.extend(
        policy
            .test_set_uses_max
            .map(|uses| format!("its test set may have been used {} at most", counted(uses.into(), "time"))),
    );
    if !policy.test_sets.is_empty() {
        lines.push(format!("it must also pass on the test sets: {}", listed(&policy.test_sets)));
    }
    lines
}

fn export(context: &Context, args: &ExportArgs, printer: Printer) -> Exit {
    let deployed = registry::export_model(context, &args.model, &args.version, &args.out, &watch("copying"))?;
    printer.answer(&deployed, || report_copy(printer, &deployed));
    Ok(0)
}

fn card(context: &Context, model: &str, version: &str, printer: Printer) -> Exit {
    let answer = ModelCard { card: registry::model_card(context, model, version)? };
    printer.answer(&answer, || printer.file(answer.card.as_bytes()));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an approval that ended is shown as such, unless the same person has another one that is valid.
    #[test]
    fn an_approval_that_ended_is_said() {
        let approval = |approver: &str, expires_micros: i64| Approval {
            approval_id: "a".into(),
            model: "income".into(),
            version: 3,
            digest: "d".into(),
            gate_receipt_id: "g".into(),
            approver: approver.into(),
            at: Timestamp::from_micros(1),
            expires_at: Timestamp::from_micros(expires_micros),
            why: None,
        };
        let approvals = [approval("ana", 5), approval("ben", 10), approval("ana", 11), approval("ben", 9)];
        assert_eq!(approvers(&approvals, Timestamp::from_micros(10)), "ana, ben (ended)");
        assert_eq!(approvers(&[], Timestamp::from_micros(10)), "");
    }

    /// Proves that the command which applies a written policy can be pasted into a shell, also where its path has a space.
    #[test]
    fn the_command_for_a_written_policy_is_whole() {
        assert_eq!(
            policy_written("income", Path::new("policy.toml")),
            "wrote `policy.toml`; edit it, then: trackway registry policy income --file policy.toml"
        );
        assert_eq!(
            policy_written("income", Path::new("my files/it's.toml")),
            r"wrote `my files/it's.toml`; edit it, then: trackway registry policy income --file 'my files/it'\''s.toml'"
        );
    }
}
