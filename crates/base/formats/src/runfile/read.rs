//! From the tree to the typed sections.

use std::collections::{BTreeMap, BTreeSet};

use trackway_core::text::quoted_list;
use trackway_core::{Criticality, Rung, TerminationReason};

use super::checks::DataRole;
use super::checks::read::tables;
use super::keys::tree::{Node, Value};
use super::keys::values::{
    amount, byte_size, command, count, duration, duration_range, flag, given, list, one_of, percentage,
    plain_text, positive_duration, run_name, text, variable_name, variables, whole,
};
use super::keys::walker::{Fault, Problems, Scope};
use super::resources::{
    EngineName, EngineTemplate, LaunchOn, LaunchSection, PlacementChange, PlanEntry, ResourcesChange,
    ResourcesSection, SecretReference, TemplateFormat,
};
use super::schema::nearest;
use super::sections::{
    CheckpointSection, ContainerEngine, ContainerSection, DataFormat, DataSpec, DecimalMark, Goal, KeepBest,
    LadderSection, OnDataChange, OnWrongResume, OwnerSection, ResumeSection, RetryRule, RetrySection,
    RunSection, SigtermMeaning, SuperviseSection,
};
use super::unsupported::is_url;
use crate::rules::promotion::Operand;
use crate::rules::rule::{self, Rule};

/// Rungs of a ladder at most.
const MAX_RUNGS: usize = 20;

/// The `[retry]` key for every infrastructure reason.
pub const INFRASTRUCTURE: &str = "infrastructure";
/// The key of `[retry]` for the rollbacks that detectors request.
const ROLL_BACK: &str = "roll_back";

pub(super) fn run(scope: &Scope, problems: &mut Problems) -> RunSection {
    scope.require("name", "\"…\"", problems);
    scope.require("command", "[\"python\", \"train.py\"]", problems);
    let passed: BTreeSet<String> = scope
        .read("pass_environment", problems, list(0, variable_name))
        .unwrap_or_default()
        .into_iter()
        .collect();
    RunSection {
        name: scope.read("name", problems, run_name).unwrap_or_default(),
        model_family: scope.read("model_family", problems, text),
        project: scope.read("project", problems, text),
        criticality: scope.read("criticality", problems, one_of(Criticality::WORDS)),
        command: scope.read("command", problems, command).unwrap_or_default(),
        seed: scope.read("seed", problems, whole(0, u64::MAX)),
        working_directory: scope.read("working_directory", problems, text),
        start_from: scope.read("start_from", problems, text),
        environment: scope.read("environment", problems, variables).unwrap_or_default(),
        parameters: scope.read("parameters", problems, given).unwrap_or_default(),
        tags: scope.read("tags", problems, given).unwrap_or_default(),
        pass_environment: passed.into_iter().collect(),
    }
}

pub(super) fn resources(scope: &Scope, problems: &mut Problems) -> ResourcesSection {
    let section = ResourcesSection {
        gpus: scope.read("gpus", problems, count(0)).unwrap_or(0),
        gpu: scope.read("gpu", problems, text),
        usd_per_gpu_hour: scope.read("usd_per_gpu_hour", problems, amount(true)),
        cpus: scope.read("cpus", problems, count(1)),
        memory_bytes: scope.read("memory", problems, byte_size),
        nodes: scope.read("nodes", problems, count(1)),
        processes_per_node: scope.read("processes_per_node", problems, count(1)),
        gpu_memory_bytes: scope.read("gpu_memory", problems, byte_size),
        disk_bytes: scope.read("disk", problems, byte_size),
        time_limit_seconds: scope.read("time_limit", problems, positive_duration),
    };
    check_division(scope, section.gpus, &section, problems);
    if let Some(node) = scope.node("gpu_memory").filter(|_| section.gpus == 0) {
        let message = "`resources.gpu_memory` has no effect without `gpus`".to_owned();
        problems.add(node.place.clone(), message, Some("add `gpus`, or remove this key".into()));
    }
    section
}

/// GPUs are divided among machines, and those of a machine among the processes that the engine starts on it, of which several may use one.
fn check_division(scope: &Scope, gpus: u32, among: &ResourcesSection, problems: &mut Problems) {
    let Some(node) = scope.node("gpus") else { return };
    let (nodes, processes) = (among.nodes.unwrap_or(1), among.processes_per_node.unwrap_or(1));
    let of_node = gpus / nodes;
    let (message, hint) = if !gpus.is_multiple_of(nodes) {
        (format!("cannot be divided among {nodes} nodes"), "it counts the GPUs of all nodes together")
    } else if of_node > 0 && !of_node.is_multiple_of(processes) && !processes.is_multiple_of(of_node) {
        let message =
            format!("gives each node {of_node}, which cannot be divided among {processes} processes");
        (message, "change it, or `resources.processes_per_node`")
    } else {
        return;
    };
    let message = format!("`{}` of {gpus} {message}", scope.path_of("gpus"));
    problems.add(node.place.clone(), message, Some(hint.into()));
}

pub(super) fn container(scope: &Scope, problems: &mut Problems) -> Option<ContainerSection> {
    scope.require("image", "\"repository@sha256:…\"", problems);
    let engine = scope.read("engine", problems, container_engine).unwrap_or_default();
    scope.read("image", problems, |node| {
        let image = text(node)?;
        let digest =
            image.split_once('@').map(|(_, digest)| digest.to_owned()).filter(|digest| is_digest(digest));
        match digest {
            Some(digest) => Ok(ContainerSection { image, digest, engine }),
            None => Err(node
                .fault(format!("must name an image by its digest, not `{image}`"))
                .hint("write `repository@sha256:` and 64 hexadecimal digits; a tag can change")),
        }
    })
}

fn container_engine(node: &Node) -> Result<ContainerEngine, Fault> {
    match text(node)?.as_str() {
        "auto" => Ok(ContainerEngine::Auto),
        "podman" => Ok(ContainerEngine::Podman),
        "docker" => Ok(ContainerEngine::Docker),
        "none" => Ok(ContainerEngine::None),
        other => Err(node.fault(format!("must be `auto`, `podman`, `docker` or `none`, not `{other}`"))),
    }
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

pub(super) fn data(scope: &Scope, problems: &mut Problems) -> BTreeMap<String, DataSpec> {
    let mut sets = BTreeMap::new();
    for (name, entry) in scope.entries() {
        let path = scope.path_of(name);
        if !matches!(entry.node.value, Value::Table(_)) {
            let hint = format!("write `[{path}]` with `path = \"…\"` below it");
            let message = format!("`{path}` must be a table, not {}", entry.node.value.kind());
            problems.add(entry.node.place.clone(), message, Some(hint));
            continue;
        }
        if let Some(set) = scope.table_of(name, "data.*", problems) {
            sets.insert(name.clone(), data_set(&set, problems));
        }
    }
    sets
}

fn data_set(scope: &Scope, problems: &mut Problems) -> DataSpec {
    scope.require("path", "\"data/train.csv\"", problems);
    DataSpec {
        path: scope.read("path", problems, text).unwrap_or_default(),
        format: scope.read("format", problems, one_of(DataFormat::WORDS)),
        label: scope.read("label", problems, text),
        group: scope.read("group", problems, text),
        time: scope.read("time", problems, text),
        columns: scope.read("columns", problems, columns).unwrap_or_default(),
        header: scope.read("header", problems, flag),
        delimiter: scope.read("delimiter", problems, letter("`\",\"`, `\";\"`, `\"|\"` or `\"\\t\"`")),
        comment: scope.read("comment", problems, letter("`\"#\"`")),
        skip_lines: scope.read("skip_lines", problems, whole(0, 1_000_000)).unwrap_or(0),
        trailing_separator: scope.read("trailing_separator", problems, flag).unwrap_or(false),
        decimal: scope.read("decimal", problems, one_of(DecimalMark::WORDS)),
        missing: scope.read("missing", problems, one_or_more_texts).unwrap_or_default(),
        rules: scope.read("rules", problems, list(0, text)).unwrap_or_default(),
        schema: scope.read("schema", problems, text),
        reference: scope.read("reference", problems, text),
        group_by: scope.read("group_by", problems, one_or_more_texts).unwrap_or_default(),
        ignore: scope.read("ignore", problems, one_or_more_texts).unwrap_or_default(),
        masks: scope.read("masks", problems, text),
        labels: scope.read("labels", problems, text),
        role: scope.read("role", problems, one_of(DataRole::WORDS)),
    }
}

fn columns(node: &Node) -> Result<Vec<String>, Fault> {
    let names = list(1, text)(node)?;
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(twice) => Err(node.fault(format!("must not name a column twice: `{twice}`"))),
        None => Ok(names),
    }
}

/// One character that separates fields or begins comments, such as those in `hint`.
fn letter(hint: &'static str) -> impl Fn(&Node) -> Result<char, Fault> {
    move |node| {
        let given = plain_text(node)?;
        let mut letters = given.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) if letter.is_ascii() && !matches!(letter, '"' | '\n' | '\r') => Ok(letter),
            _ => Err(node
                .fault(format!("must be one ASCII character, not `{}`", given.escape_default()))
                .hint(hint)),
        }
    }
}

pub(super) fn one_or_more_texts(node: &Node) -> Result<Vec<String>, Fault> {
    match &node.value {
        Value::Text(text) => Ok(vec![text.clone()]),
        Value::List(_) => list(0, plain_text)(node),
        _ => Err(node.not("a string or a list of strings")),
    }
}

pub(super) fn ladder(scope: &Scope, problems: &mut Problems) -> LadderSection {
    scope.require("rungs", "[\"1%\", \"10%\", \"100%\"]", problems);
    LadderSection {
        rungs: scope.read("rungs", problems, fractions).unwrap_or_default(),
        promote: scope.read("promote", problems, promote),
        warm_start: scope.read("warm_start", problems, flag).unwrap_or(false),
    }
}

fn fractions(node: &Node) -> Result<Vec<f64>, Fault> {
    let fractions = list(1, percentage)(node)?;
    if fractions.len() > MAX_RUNGS {
        return Err(node.fault(format!("has {} rungs; a ladder has at most {MAX_RUNGS}", fractions.len())));
    }
    let rungs: Vec<Rung> = fractions.iter().copied().filter_map(Rung::new).collect();
    let separate_keys = |one: &Rung, next: &Rung| one < next && one.to_string() != next.to_string();
    if rungs.len() == fractions.len() && rungs.is_sorted_by(separate_keys) {
        Ok(fractions)
    } else {
        Err(node.fault("must increase from rung to rung"))
    }
}

/// The text of a rule that can be read.
fn promote(node: &Node) -> Result<String, Fault> {
    rule::<Operand>(node)
}

/// The text of a rule that can be read; a mistake in it is marked inside the text.
pub(super) fn rule<O: rule::Operand>(node: &Node) -> Result<String, Fault> {
    let given = text(node)?;
    match Rule::<O>::parse(&given) {
        Ok(_) => Ok(given),
        Err(error) => {
            let place = node.within(&given, error.span);
            let fault = Fault::at(place, error.message);
            Err(error.hint.into_iter().fold(fault, Fault::hint))
        }
    }
}

pub(super) fn checkpoint(scope: &Scope, problems: &mut Problems) -> CheckpointSection {
    let every = scope.section("every", problems);
    let keep = scope.section("keep", problems);
    let minutes = every.as_ref().and_then(|every| every.read("minutes", problems, amount(false)));
    CheckpointSection {
        every_steps: every.as_ref().and_then(|every| every.read("steps", problems, whole(1, u64::MAX))),
        every_seconds: minutes.map(|minutes| minutes * 60.0),
        every_epochs: every.as_ref().and_then(|every| every.read("epochs", problems, whole(1, u64::MAX))),
        keep_last: keep.as_ref().and_then(|keep| keep.read("last", problems, count(1))),
        keep_every_steps: keep.as_ref().and_then(|keep| keep.read("every", problems, whole(1, u64::MAX))),
        keep_best: keep.as_ref().and_then(|keep| keep.read("best", problems, keep_best)),
        remote: scope.read("remote", problems, remote),
        upload_wait_seconds: scope.read("upload_wait", problems, duration),
        adopt: scope.read("adopt", problems, list(0, text)),
        resume: resume(scope, problems),
        safe_after: scope.read("safe_after", problems, count(1)),
        on_wrong_resume: scope
            .read("on_wrong_resume", problems, one_of(OnWrongResume::WORDS))
            .unwrap_or_default(),
    }
}

/// Empty, or without checkpoints to adopt, it would have no effect. A flag without the path is enough for a script that
/// knows where it saves.
fn resume(scope: &Scope, problems: &mut Problems) -> Option<ResumeSection> {
    let table = scope.section("resume", problems)?;
    let resume = ResumeSection {
        args: table.read("args", problems, list(1, plain_text)).unwrap_or_default(),
        environment: table.read("environment", problems, variables).unwrap_or_default(),
    };
    if resume == ResumeSection::default() {
        let message = "`checkpoint.resume` has neither `args` nor `environment`";
        let hint = "such as `resume = { args = [\"--resume_from_checkpoint\", \"{path}\"] }`";
        problems.add(table.place.clone(), message.into(), Some(hint.into()));
    }
    if scope.node("adopt").is_none() {
        let message = "`checkpoint.resume` is for checkpoints that the script writes itself, and `checkpoint.adopt` names none";
        let hint = "add `adopt = [\"out/checkpoint-*\"]` with the paths of the script's checkpoints";
        problems.add(table.place.clone(), message.into(), Some(hint.into()));
    }
    Some(resume)
}

/// `"val_loss"` or `"min val_loss"`: less is better; `"max accuracy"`: more is.
pub(super) fn keep_best(node: &Node) -> Result<KeepBest, Fault> {
    let given = text(node)?;
    let words: Vec<&str> = given.split_whitespace().collect();
    let (goal, metric) = match words.as_slice() {
        [metric] => (Goal::Min, metric),
        ["min", metric] => (Goal::Min, metric),
        ["max", metric] => (Goal::Max, metric),
        _ => {
            return Err(
                node.fault(format!("must be a metric, or `min` or `max` and a metric, not `{given}`"))
            );
        }
    };
    Ok(KeepBest { metric: (*metric).to_owned(), goal })
}

fn remote(node: &Node) -> Result<String, Fault> {
    let url = text(node)?;
    if is_url(&url) {
        return Ok(url);
    }
    Err(node
        .fault(format!("must be an object store URL, not `{url}`"))
        .hint("such as `\"s3://bucket/prefix\"`"))
}

/// The keys of `[retry]` that bound all attempts of a run together.
const LIFETIME: [&str; 3] = ["max_usd", "max_gpu_hours", "max_hours"];

/// The keys of `[retry]` whose budgets committed training does not refill.
const NEVER_REFILLED: [&str; 2] = [ROLL_BACK, "evaluator_error"];

/// The keys of `[retry]` whose retries change something each: as many as their `plan` has entries, at once.
const RETRIED_BY_PLAN: [&str; 3] = ["device_oom", "host_oom", "numeric_divergence"];

/// What has no effect in the table of this reason is refused: a setting that is ignored would be believed.
fn check_retry_rule(key: &str, scope: &Scope, problems: &mut Problems) {
    let has_plan = RETRIED_BY_PLAN.contains(&key);
    let refused: &[&str] = match has_plan {
        true => &["attempts", "backoff", "refill", "max_usd", "max_gpu_hours"],
        false if key == ROLL_BACK => &["plan", "max_usd", "max_gpu_hours"],
        false => &["plan"],
    };
    for (name, entry) in scope.entries().filter(|(name, _)| refused.contains(&name.as_str())) {
        let hint = match has_plan {
            true => "it is retried once with each entry of its `plan`, and not without one",
            false if name != "plan" => {
                "`max_usd` and `max_gpu_hours` in `[retry]` bound all attempts together"
            }
            false => "only `device_oom`, `host_oom` and `numeric_divergence` have a `plan`",
        };
        let message = format!("`retry.{key}.{name}` has no effect");
        problems.add(entry.key_place.clone(), message, Some(hint.into()));
    }
}

pub(super) fn retry(scope: &Scope, of_run: &ResourcesSection, problems: &mut Problems) -> RetrySection {
    let mut section = RetrySection {
        max_usd: scope.read("max_usd", problems, amount(true)),
        max_gpu_hours: scope.read("max_gpu_hours", problems, amount(true)),
        max_hours: scope.read("max_hours", problems, amount(true)),
        rules: BTreeMap::new(),
    };
    for (key, entry) in scope.entries() {
        if LIFETIME.contains(&key.as_str()) {
            continue;
        }
        if let Err((message, hint)) = check_retry_key(key) {
            problems.add(entry.key_place.clone(), message, hint);
        } else if let Some(rule) = scope.table_of(key, "retry.*", problems) {
            check_retry_rule(key, &rule, problems);
            let rule = retry_rule(&rule, of_run, problems);
            if rule.refill_seconds.is_some() && NEVER_REFILLED.contains(&key.as_str()) {
                let message = format!("`retry.{key}.refill` has no effect: this budget is never refilled");
                problems.add(entry.key_place.clone(), message, Some("remove this key".into()));
            }
            section.rules.insert(key.clone(), rule);
        }
    }
    section
}

/// Reasons after which a retry would repeat a success, overrule a person or a budget, or read the same bad data.
fn is_final(reason: TerminationReason) -> bool {
    use TerminationReason as R;
    matches!(
        reason,
        R::Completed
            | R::EarlyStopped
            | R::Cancelled
            | R::DataError
            | R::SchemaDrift
            | R::BudgetExhausted
            | R::RungRejected
            | R::Fenced
            | R::Superseded
    )
}

fn check_retry_key(key: &str) -> Result<(), (String, Option<String>)> {
    if key == INFRASTRUCTURE || key == ROLL_BACK {
        return Ok(());
    }
    let retried =
        || TerminationReason::ALL.iter().filter(|reason| !is_final(**reason)).map(|reason| reason.as_str());
    match key.parse::<TerminationReason>() {
        Ok(reason) if is_final(reason) => Err((
            format!("an attempt that ended as `{key}` is never retried"),
            Some("remove this key".into()),
        )),
        Ok(_) => Ok(()),
        Err(_) => {
            let known: Vec<&str> =
                [INFRASTRUCTURE, ROLL_BACK].into_iter().chain(LIFETIME).chain(retried()).collect();
            let hint = match nearest(key, known.iter().copied()) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("known here: {}", quoted_list(&known)),
            };
            Err((format!("unknown key `{key}` in `retry`"), Some(hint)))
        }
    }
}

fn retry_rule(scope: &Scope, of_run: &ResourcesSection, problems: &mut Problems) -> RetryRule {
    RetryRule {
        plan: retry_plan(scope, of_run, problems),
        refill_seconds: scope.read("refill", problems, refill),
        max_usd: scope.read("max_usd", problems, amount(true)),
        max_gpu_hours: scope.read("max_gpu_hours", problems, amount(true)),
        ..attempts_and_backoff(scope, problems)
    }
}

/// How often, and with which backoff; the settings of a launch that is repeated as it is.
pub(super) fn attempts_and_backoff(scope: &Scope, problems: &mut Problems) -> RetryRule {
    let backoff = scope.read("backoff", problems, duration_range);
    RetryRule {
        attempts: scope.read("attempts", problems, count(0)),
        backoff_min_seconds: backoff.map(|(low, _)| low),
        backoff_max_seconds: backoff.map(|(_, high)| high),
        ..RetryRule::default()
    }
}

/// A duration, or `"never"` for 0.
fn refill(node: &Node) -> Result<f64, Fault> {
    match &node.value {
        Value::Text(text) if text == "never" => Ok(0.0),
        _ => positive_duration(node).map_err(|fault| {
            fault.hint("the committed training that gives one retry back, such as `\"1h\"`, or `\"never\"`")
        }),
    }
}

fn retry_plan(scope: &Scope, of_run: &ResourcesSection, problems: &mut Problems) -> Vec<PlanEntry> {
    tables(scope, "plan", "retry.*.plan", "{ set = { BATCH = \"16\" } }", problems, |entry, problems| {
        if ["resources", "placement", "launcher"].iter().all(|key| entry.node(key).is_none()) {
            entry.require("set", "{ BATCH = \"16\" }", problems);
        }
        PlanEntry {
            set: entry.read("set", problems, variables).unwrap_or_default(),
            resources: resources_change(entry, of_run, problems),
            placement: placement_change(entry, problems),
            launcher: entry.read("launcher", problems, one_of(LaunchOn::WORDS)),
        }
    })
}

fn resources_change(entry: &Scope, of_run: &ResourcesSection, problems: &mut Problems) -> ResourcesChange {
    let Some(scope) = entry.table_of("resources", "retry.*.plan.resources", problems) else {
        return ResourcesChange::default();
    };
    let gpus = scope.read("gpus", problems, count(0));
    check_division(&scope, gpus.unwrap_or(0), of_run, problems);
    ResourcesChange {
        gpus,
        gpu: scope.read("gpu", problems, text),
        cpus: scope.read("cpus", problems, count(1)),
        memory_bytes: scope.read("memory", problems, byte_size),
    }
}

fn placement_change(entry: &Scope, problems: &mut Problems) -> PlacementChange {
    let scope = entry.table_of("placement", "retry.*.plan.placement", problems);
    let hosts = scope.and_then(|scope| {
        scope.require("exclude_hosts", "[\"node17\"]", problems);
        scope.read("exclude_hosts", problems, list(1, text))
    });
    PlacementChange { exclude_hosts: hosts.unwrap_or_default() }
}

pub(super) fn supervise(scope: &Scope, problems: &mut Problems) -> SuperviseSection {
    let default = SuperviseSection::default();
    SuperviseSection {
        grace_seconds: scope.read("grace", problems, duration).unwrap_or(default.grace_seconds),
        timeout_seconds: scope.read("timeout", problems, positive_duration),
        hang_after_seconds: scope.read("hang_after", problems, positive_duration),
        start_within_seconds: scope.read("start_within", problems, positive_duration),
        on_data_change: scope
            .read("on_data_change", problems, one_of(OnDataChange::WORDS))
            .unwrap_or_default(),
        sigterm: scope.read("sigterm", problems, one_of(SigtermMeaning::WORDS)).unwrap_or_default(),
    }
}

pub(super) fn owner(scope: &Scope, problems: &mut Problems) -> OwnerSection {
    OwnerSection { name: scope.read("name", problems, text), team: scope.read("team", problems, text) }
}

pub(super) fn launch(scope: &Scope, problems: &mut Problems) -> LaunchSection {
    // A change names another engine than a file with `on`.
    if let (Some(on), Some(engine)) = (scope.node("on"), scope.node("engine"))
        && on.place.source_index >= engine.place.source_index
    {
        let message = "`launch.on` has no effect beside `launch.engine`".to_owned();
        problems.add(
            on.place.clone(),
            message,
            Some("remove it: the settings have the kind of the engine".into()),
        );
    }
    LaunchSection {
        on: scope.read("on", problems, one_of(LaunchOn::WORDS)).unwrap_or_default(),
        engine: scope.read("engine", problems, engine_name),
        account: scope.read("account", problems, text),
        queue: scope.read("queue", problems, text),
        priority: scope.read("priority", problems, text),
        exclude_hosts: scope.read("exclude_hosts", problems, list(0, text)).unwrap_or_default(),
        secrets: tables(
            scope,
            "secrets",
            "launch.secrets",
            "{ name = \"HF_TOKEN\", from = \"hub/token\" }",
            problems,
            secret,
        ),
        template: scope.part("template", problems, template),
    }
}

fn engine_name(node: &Node) -> Result<EngineName, Fault> {
    let must_be = "must be 1 to 64 letters, digits, `-`, `_` and `.`, the first a letter or a digit";
    text(node)?.parse().map_err(|_| node.fault(must_be))
}

fn secret(scope: &Scope, problems: &mut Problems) -> SecretReference {
    scope.require("name", "\"HF_TOKEN\"", problems);
    scope.require("from", "\"hub/token\"", problems);
    SecretReference {
        name: scope.read("name", problems, variable_name).unwrap_or_default(),
        from: scope.read("from", problems, text).unwrap_or_default(),
    }
}

fn template(scope: &Scope, problems: &mut Problems) -> EngineTemplate {
    scope.require("format", "\"yaml\"", problems);
    scope.require("text", "\"…\"", problems);
    EngineTemplate {
        format: scope.read("format", problems, one_of(TemplateFormat::WORDS)).unwrap_or_default(),
        text: scope.read("text", problems, text).unwrap_or_default(),
    }
}
