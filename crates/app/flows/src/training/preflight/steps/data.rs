//! Steps over the data sets. Each set is read once for its profile, which most of them use.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use trackway_core::Clock;
use trackway_core::checks::{CheckResult, Finding, Severity, Verdict};
use trackway_data::integrity::{
    TableEvidence, TableRoles, label_noise as find_label_noise, unreadable, values,
};
use trackway_engine::error::AppError;
use trackway_formats::runfile::DataRole;
use trackway_rules::preflight::imbalance::{ImbalanceReport, Level, imbalance as measure};
use trackway_tables::profile::ColumnProfile;
use trackway_tables::read::Source;

use super::{Looker, Work};
use crate::data::check::SEED;
use crate::data::leakage::{CHECKS as LEAKAGE_CHECKS, Roles, Selection, leakage as find_leakage};
use crate::data::schema::{Rules, validate_with};
use crate::data::table::{ReadObserver, data_error};
use crate::training::preflight::facts::PlanFacts;
use crate::training::preflight::sets::{Content, DataSet};

/// A label of more different values is a quantity, not a class.
const CLASSES_MAX: u64 = 100;

pub fn has_tables(facts: &PlanFacts<'_>) -> Result<(), String> {
    facts.tables().next().map(|_| ()).ok_or_else(|| "the run file names no table".into())
}

pub fn has_rules(facts: &PlanFacts<'_>) -> Result<(), String> {
    has_tables(facts)?;
    let ruled = facts.tables().any(|set| set.spec.schema.is_some() || !set.spec.rules.is_empty());
    if ruled { Ok(()) } else { Err("no data set has a `schema` or `rules`".into()) }
}

pub fn has_label(facts: &PlanFacts<'_>) -> Result<(), String> {
    has_tables(facts)?;
    if facts.has_label() { Ok(()) } else { Err("no data set has a `label`".into()) }
}

pub fn label_noise_asked(facts: &PlanFacts<'_>) -> Result<(), String> {
    has_label(facts)?;
    let asked = facts.plan.preflight.as_ref().is_some_and(|section| section.label_noise);
    if asked { Ok(()) } else { Err("not enabled in the run file (`preflight.label_noise`)".into()) }
}

pub fn has_sides(facts: &PlanFacts<'_>) -> Result<(), String> {
    if facts.has_media_split() {
        return Ok(());
    }
    has_tables(facts)?;
    if facts.has_split() {
        Ok(())
    } else {
        Err("there is no training set in addition to a test or validation set".into())
    }
}

/// Bytes done of several readings, reported as one.
pub struct Readings<'r> {
    looker: &'r Looker<'r>,
    before_bytes: u64,
    all_bytes: u64,
    cancelled: &'r AtomicBool,
    clock: &'r dyn Clock,
}

impl<'r> Readings<'r> {
    pub fn new(work: &'r Work<'_>, looker: &'r Looker<'r>, all_bytes: u64) -> Self {
        Self { looker, before_bytes: 0, all_bytes, cancelled: work.cancelled, clock: &*work.context.clock }
    }

    /// One more reading, of so many bytes.
    pub fn next<T>(&mut self, size_bytes: u64, read: impl FnOnce(&ReadObserver<'_>) -> T) -> T {
        let progress =
            |done_bytes: u64, _: u64| self.looker.at(self.before_bytes + done_bytes, self.all_bytes);
        let answer =
            read(&ReadObserver { progress: &progress, cancelled: self.cancelled, clock: self.clock });
        self.before_bytes += size_bytes;
        answer
    }
}

/// Reads every table to its end, once for all steps that need it: what cannot be read, what no model can take.
pub fn read(work: &Work<'_>, looker: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    let all_bytes = work.sets.tables().map(|(_, source)| source.size_bytes()).sum();
    let mut readings = Readings::new(work, looker, all_bytes);
    let mut answers = Vec::new();
    for set in work.sets.all() {
        let source = match &set.content {
            Content::Media | Content::Files => continue,
            Content::Unreadable(result) => {
                answers.push(result.clone());
                continue;
            }
            Content::Table(source) => source,
        };
        let mut source = source.clone();
        let roles = TableRoles {
            label: label_of(work, set).filter(|label| source.index_of(label, "label").is_ok()),
            group_by: group_by_of(work, set, &source),
            ignored: ignored_of(work, &source),
        };
        let gathered = readings.next(source.size_bytes(), |observer| {
            TableEvidence::gather(&mut source, &roles, &observer.watch())
        });
        match gathered {
            Ok(evidence) => work.shared.evidence.keep(&set.name, evidence),
            Err(error) => answers.push(unreadable(&error).ok_or_else(|| data_error(error))?),
        }
    }
    let compared = sides(work);
    answers.extend(compared.iter().map(|side| side.both(values(&side.evidence, side.other()), work)));
    Ok(vec![together("data.values", &answers)])
}

/// The result of one reading of a set.
pub fn evidence(work: &Work<'_>, set: &DataSet) -> Result<Arc<TableEvidence>, AppError> {
    work.shared.evidence.of(&set.name).ok_or_else(|| {
        let message = format!("`{}` could not be read (see `data.values`)", set.name);
        AppError::new(trackway_engine::error::ErrorKind::Usage, message)
    })
}

/// A table that was read, beside the one that it is compared with.
pub struct Side<'s> {
    pub set: &'s DataSet,
    /// The result of reading it.
    pub evidence: Arc<TableEvidence>,
    /// The other set, and the same of it.
    pub against: Option<(&'s DataSet, Arc<TableEvidence>)>,
}

impl Side<'_> {
    /// The evidence of the other set.
    pub fn other(&self) -> Option<&TableEvidence> {
        self.against.as_ref().map(|(_, evidence)| &**evidence)
    }

    /// Names both sets in what a comparison found: it speaks of here and of the other side.
    pub fn both(&self, check: CheckResult, work: &Work<'_>) -> CheckResult {
        let Some((other, _)) = &self.against else { return of_sets(check, self.set, work) };
        let name = |finding: Finding| Finding {
            message: format!("`{}`, beside `{}`: {}", self.set.name, other.name, finding.message),
            ..finding
        };
        check.reworded(name)
    }
}

/// Every table that was read; the training set beside each set that evaluates it, every other one alone.
pub fn sides<'s>(work: &Work<'s>) -> Vec<Side<'s>> {
    let of = |set: &DataSet| work.shared.evidence.of(&set.name);
    let mut sides: Vec<Side<'s>> = Vec::new();
    for (train, other) in work.sets.pairs() {
        if let (Some(evidence), Some(against)) = (of(train), of(other)) {
            sides.push(Side { set: train, evidence, against: Some((other, against)) });
        }
    }
    let is_named = |sides: &[Side<'_>], set: &DataSet| {
        sides.iter().any(|side| {
            let other = side.against.as_ref().map(|(other, _)| other.name.as_str());
            side.set.name == set.name || other == Some(set.name.as_str())
        })
    };
    for set in work.sets.all() {
        if let (false, Some(evidence)) = (is_named(&sides, set), of(set)) {
            sides.push(Side { set, evidence, against: None });
        }
    }
    sides
}

/// Checks every row against schema files and the run file's rules.
pub fn schema(work: &Work<'_>, looker: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    const NAME: &str = "data.schema";
    let ruled =
        || work.sets.tables().filter(|(set, _)| set.spec.schema.is_some() || !set.spec.rules.is_empty());
    let mut readings = Readings::new(work, looker, ruled().map(|(_, source)| source.size_bytes()).sum());
    let (mut findings, mut not_run, mut rules_checked) = (Vec::new(), Vec::new(), 0);
    let mut fewest_rows = None;
    for (set, source) in ruled() {
        let rules = Rules { schema: set.spec.schema.as_deref(), sql: &set.spec.rules };
        let answer = readings
            .next(source.size_bytes(), |observer| validate_with(&work.job.base, source, &rules, observer))?;
        rules_checked += answer.rules_checked.unwrap_or(0);
        fewest_rows = fewest(fewest_rows, [answer.rows + answer.rows_rejected]);
        findings.extend(answer.findings.into_iter().map(|finding| of_set(finding, set, work)));
        not_run.extend(answer.not_run.into_iter().map(|why| format!("`{}`: {why}", set.name)));
    }
    if not_run.is_empty() {
        let result = CheckResult::of_rows(NAME, fewest_rows.unwrap_or(0), findings);
        return Ok(vec![result.because(format!("{rules_checked} rules checked"))]);
    }
    // A requested rule that could not be checked leaves the question open, whatever the others find.
    Ok(vec![CheckResult::not_run(NAME, not_run.join("; ")).with_findings(findings)])
}

/// Names the data set in a finding, where there is more than one.
fn of_set(mut finding: Finding, set: &DataSet, work: &Work<'_>) -> Finding {
    if work.sets.all().len() > 1 {
        finding.message = format!("`{}`: {}", set.name, finding.message);
    }
    finding
}

/// The same for all findings of a check.
pub fn of_sets(check: CheckResult, set: &DataSet, work: &Work<'_>) -> CheckResult {
    check.reworded(|finding| of_set(finding, set, work))
}

/// The label of a set; a set that names none has the training set's.
pub fn label_of(work: &Work<'_>, set: &DataSet) -> Option<String> {
    let of_training = || {
        let train = work.sets.all().iter().find(|set| set.role == Some(DataRole::Train));
        train.and_then(|train| train.spec.label.clone())
    };
    set.spec.label.clone().or_else(of_training)
}

/// The columns that group a set's rows; a set that names none has those that others name.
fn group_by_of(work: &Work<'_>, set: &DataSet, source: &Source) -> Vec<String> {
    if !set.spec.group_by.is_empty() {
        return set.spec.group_by.clone();
    }
    let others = work.sets.all().iter().flat_map(|other| &other.spec.group_by);
    existing(others, source)
}

/// The columns that do not count when rows are compared, of all sets.
fn ignored_of(work: &Work<'_>, source: &Source) -> Vec<String> {
    existing(work.sets.all().iter().flat_map(|set| &set.spec.ignore), source)
}

/// Those of the names that a source has, each once.
fn existing<'n>(names: impl Iterator<Item = &'n String>, source: &Source) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        if !found.contains(name) && source.columns().iter().any(|column| column.name == *name) {
            found.push(name.clone());
        }
    }
    found
}

/// Lets a model look for wrong labels in each table that has one.
pub fn label_noise(work: &Work<'_>, looker: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    let labelled = || work.sets.tables().filter_map(|table| Some((table, table.0.spec.label.as_deref()?)));
    let all_bytes = labelled().map(|((_, source), _)| source.size_bytes()).sum();
    let mut readings = Readings::new(work, looker, all_bytes);
    let mut answers = Vec::new();
    for ((set, source), label) in labelled() {
        let mut source = source.clone();
        let found = readings.next(source.size_bytes(), |observer| {
            find_label_noise(&mut source, label, SEED, &observer.watch())
        });
        answers.push(of_sets(found.map_err(data_error)?.0, set, work));
    }
    Ok(vec![together("data.label_noise", &answers)])
}

/// How uneven the classes of the training set are.
pub fn imbalance(work: &Work<'_>, _: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    const NAME: &str = "data.imbalance";
    let labelled = |(set, _): &(&DataSet, &Source)| set.spec.label.is_some();
    let is_training = |(set, _): &(&DataSet, &Source)| set.role == Some(DataRole::Train);
    let mut tables: Vec<_> = work.sets.tables().filter(labelled).collect();
    tables.sort_by_key(|table| !is_training(table));
    let Some((set, _)) = tables.first() else {
        return Ok(vec![CheckResult::not_applicable(NAME, "no table has a label")]);
    };
    let evidence = evidence(work, set)?;
    let column = set.spec.label.as_ref().and_then(|label| evidence.profile.column(label));
    let counts = column.and_then(classes);
    let Some(report) = counts.as_deref().and_then(measure) else {
        return Ok(vec![CheckResult::not_applicable(NAME, "the label is a quantity, not a class")]);
    };
    let result = CheckResult::of_rows(NAME, report.rows, uneven(NAME, set, &report).into_iter().collect());
    let why = format!(
        "{} classes; the largest has {:.1} times the rows of the smallest",
        report.classes.len(),
        report.ratio
    );
    let _ = work.shared.imbalance.set(report);
    Ok(vec![result.because(why)])
}

/// The rows of each class; none where values are too many, or are measured rather than named.
fn classes(column: &ColumnProfile) -> Option<Vec<(String, u64)>> {
    use trackway_tables::ColumnType;
    let named = matches!(column.kind, ColumnType::Text | ColumnType::Bool | ColumnType::Int);
    let few = column.values_are_exact() && column.summary().distinct_estimate <= CLASSES_MAX;
    let values = || column.top_values(usize::MAX).into_iter().map(|it| (it.value.to_string(), it.count));
    (named && few).then(|| values().collect())
}

fn uneven(check: &str, set: &DataSet, report: &ImbalanceReport) -> Option<Finding> {
    let severity = match report.level {
        Level::Even => return None,
        Level::Mild => Severity::Note,
        Level::Uneven | Level::Extreme => Severity::Warn,
    };
    let (largest, smallest) = (report.classes.first()?, report.classes.last()?);
    let message = format!(
        "`{}`: `{}` has {} rows, `{}` has {}: {:.0} to 1",
        set.name, largest.name, largest.rows, smallest.name, smallest.rows, report.ratio
    );
    let finding = Finding::new(check, severity, message).action(report.advice.join("; "));
    Some(set.spec.label.iter().fold(finding, |finding, label| finding.about(label)))
}

/// The rows of the smallest table so far: one without rows leaves the whole question open.
pub fn fewest(so_far: Option<u64>, rows: impl IntoIterator<Item = u64>) -> Option<u64> {
    rows.into_iter().chain(so_far).min()
}

/// What the evaluation sets have in common with the training set.
pub fn leakage(work: &Work<'_>, looker: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    let size = |set: &DataSet| match &set.content {
        Content::Table(source) => source.size_bytes(),
        Content::Media | Content::Files | Content::Unreadable(_) => 0,
    };
    let pairs = [work.sets.pairs(), work.sets.media_pairs()].concat();
    // The training side is read again for what is nearly the same.
    let bytes = |train: &DataSet, other: &DataSet| 2 * size(train) + size(other);
    let all_bytes = pairs.iter().map(|(train, other)| bytes(train, other)).sum();
    let mut readings = Readings::new(work, looker, all_bytes);
    let mut answers: Vec<CheckResult> = Vec::new();
    for (train, other) in pairs {
        let of = |column: fn(&DataSet) -> Option<&String>| column(train).or(column(other)).cloned();
        let roles = Roles {
            label: label_of(work, train),
            group: of(|set| set.spec.group.as_ref()),
            time: of(|set| set.spec.time.as_ref()),
            ignored: match (&train.content, &other.content) {
                (Content::Table(one), Content::Table(two)) => {
                    existing(existing(ignored_of(work, one).iter(), two).iter(), one)
                }
                _ => Vec::new(),
            },
        };
        let requests = (train.request(), other.request());
        let answer = readings.next(bytes(train, other), |observer| {
            let all = Selection::default();
            find_leakage(&work.job.base, (&requests.0, &requests.1), &roles, &all, observer)
        })?;
        answers.extend(answer.checks.into_iter().map(|mut check| {
            let findings = std::mem::take(&mut check.findings);
            check.findings = findings.into_iter().map(|finding| of_set(finding, other, work)).collect();
            check
        }));
    }
    Ok(LEAKAGE_CHECKS.into_iter().map(|name| together(name, &answers)).collect())
}

/// What one check answers for all sets: its findings of each; what could not run or does not apply only where that is
/// so for every set.
pub fn together(name: &str, answers: &[CheckResult]) -> CheckResult {
    let own: Vec<&CheckResult> = answers.iter().filter(|answer| answer.name == name).collect();
    let mut findings: Vec<Finding> = Vec::new();
    for finding in own.iter().flat_map(|answer| &answer.findings) {
        // The training set is beside each set that evaluates it, and is reported once.
        if !findings.contains(finding) {
            findings.push(finding.clone());
        }
    }
    let ran = |answer: &&&CheckResult| !matches!(answer.verdict, Verdict::NotRun | Verdict::NotApplicable);
    let came_out = |verdict: Verdict| own.iter().find(move |answer| answer.verdict == verdict);
    // What blocks says what it looked at: of an empty test set 0 rows, not those of the training set.
    let speaks = came_out(Verdict::NotRun)
        .or_else(|| came_out(Verdict::Block))
        .or_else(|| own.iter().find(ran))
        .or(own.first());
    match speaks {
        Some(one) if findings.is_empty() => (*one).clone(),
        Some(one) => {
            // What was found for one set answers nothing for a set that could not be looked at.
            (*one).clone().with_findings(findings)
        }
        None => CheckResult::not_run(name, "no result"),
    }
}
