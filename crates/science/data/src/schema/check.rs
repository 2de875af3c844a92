//! Checks a data set against a schema, in one reading.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use serde::{Deserialize, Serialize};
use trackway_core::checks::{Example, Finding, Severity};
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, Coverage, Place, ReadNote, Source};
use trackway_tables::{Column, ColumnType, DataError};

use super::bounds::Exact;
use super::column::{Broken, CompiledRules, each_number};
use super::examples::{CellExamples, repeats, shown};
use super::keys::{fingerprints, referenced};
use super::{ColumnRules, OtherColumns, Reference, Schema, SqlRule};
use crate::values::hashed::Keys;

/// The most rows whose fingerprints are kept at once for a column that must be unique (8 bytes each); of larger tables
/// a part of the fingerprints at a time, in further readings.
const UNIQUE_ROWS_AT_ONCE: u64 = 32 << 20;

/// A condition on rows, evaluated by a crate with SQL.
pub trait RowRule: Sync {
    /// Whether each row meets the condition; null if that is unknown, which is not a violation.
    ///
    /// # Errors
    /// Why the condition cannot be evaluated, such as a column that is not there.
    fn holds(&self, batch: &RecordBatch) -> Result<BooleanArray, String>;
}

/// Makes a condition of a rule's SQL, or returns why it cannot.
pub type RuleCompiler<'s> = dyn Fn(&SqlRule) -> Result<Box<dyn RowRule>, String> + 's;

/// What a check needs besides the data.
pub struct Surroundings<'s> {
    /// The time, in microseconds since 1970, for the age of the newest row.
    pub now_micros: i64,
    /// `train` or `serve`; rules of columns that are not in it do not apply. `None`: all do.
    pub environment: Option<&'s str>,
    /// Makes a rule of its SQL, or returns why it cannot.
    pub compile: &'s RuleCompiler<'s>,
    /// Opens the data set that a column refers to.
    pub open: &'s dyn Fn(&Reference) -> Result<Source, DataError>,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SchemaCheck {
    /// Rules that do not hold, in the schema's order.
    pub findings: Vec<Finding>,
    /// Rules that could not be checked, with the reason.
    pub not_run: Vec<String>,
    /// How many rules were checked.
    pub rules_checked: usize,
    /// What was read.
    pub coverage: Coverage,
    /// What reading did to what the files hold.
    pub reading: Vec<ReadNote>,
}

/// Checks every row of a source.
///
/// # Errors
/// [`DataError`]: a file that cannot be read, the scan cancelled.
pub fn check(
    source: &Source,
    schema: &Schema,
    surroundings: &Surroundings<'_>,
    watch: &PassObserver<'_>,
) -> Result<SchemaCheck, DataError> {
    let mut report = Report::default();
    let plan = Plan::make(source, schema, surroundings, watch, &mut report);
    let mut typed = source.clone().with_columns(plan.columns.iter().map(|it| it.column.clone()).collect())?;
    let (state, coverage) = scan(&mut typed, &|_| State::new(&plan), watch)?;
    let reading = typed.reading();
    report.table(schema, &coverage, &state, surroundings);
    for (index, planned) in plan.columns.iter().enumerate() {
        report.column(planned, &state.columns[index], &coverage, index, &typed);
        if planned.rules.unique {
            let (column, parts) = (planned.column.clone(), plan.unique_parts);
            let repeated = repeats(column, parts, &state.columns[index].keys, &typed, watch)?;
            report.repeats(planned, &repeated, coverage.columns[index].faults.rounded.count, &typed);
        }
    }
    for (rule, state) in plan.rules.iter().zip(&state.rules) {
        report.rule(rule.0, state, &typed);
    }
    let Report { findings, not_run, rules_checked } = report;
    Ok(SchemaCheck { findings, not_run, rules_checked, coverage, reading })
}

/// A column that is there and has rules.
struct ColumnCheck<'s> {
    rules: &'s ColumnRules,
    column: Column,
    compiled: CompiledRules,
    /// The values of the column it refers to.
    referenced: Option<Keys>,
}

struct Plan<'s> {
    columns: Vec<ColumnCheck<'s>>,
    rules: Vec<(&'s SqlRule, Box<dyn RowRule>)>,
    time: Option<usize>,
    /// Of so many parts of the fingerprints, the first is looked at with everything else.
    unique_parts: u64,
}

impl<'s> Plan<'s> {
    fn make(
        source: &Source,
        schema: &'s Schema,
        surroundings: &Surroundings<'_>,
        watch: &PassObserver<'_>,
        report: &mut Report,
    ) -> Self {
        let mut columns = Vec::new();
        let applies = |rules: &&ColumnRules| {
            let named = |environment: &&str| rules.environments.iter().any(|it| it == environment);
            rules.environments.is_empty() || surroundings.environment.is_none_or(|it| named(&it))
        };
        for rules in schema.columns.iter().filter(applies) {
            if source.columns().iter().all(|column| column.name != rules.name) {
                report.missing_column(rules);
                continue;
            }
            let compiled = match CompiledRules::of(rules) {
                Ok(compiled) => compiled,
                Err(error) => {
                    report.not_run.push(error.to_string());
                    continue;
                }
            };
            let column = Column { name: rules.name.clone(), kind: rules.kind };
            let referenced = rules.references.as_ref().and_then(|to| {
                let keys =
                    (surroundings.open)(to).and_then(|mut there| referenced(&mut there, &to.column, watch));
                keys.map_err(|error| report.not_run.push(format!("`{}` references: {error}", rules.name)))
                    .ok()
            });
            columns.push(ColumnCheck { rules, column, compiled, referenced });
        }
        report.other_columns(source, schema);
        // Rules may use columns without rules.
        let rules = schema.rules.iter().filter_map(|rule| {
            let compiled = (surroundings.compile)(rule);
            compiled
                .map_err(|why| report.not_run.push(format!("`{}`: {why}", rule.sql)))
                .ok()
                .map(|it| (rule, it))
        });
        let rules: Vec<_> = rules.collect();
        if !rules.is_empty() || schema.table.time.is_some() {
            add_unruled(source, schema, &mut columns);
        }
        let time = schema.table.time.as_ref();
        let time = time.and_then(|name| columns.iter().position(|it| it.column.name == *name));
        let unique_parts = source.about_rows().div_ceil(UNIQUE_ROWS_AT_ONCE).max(1);
        Self { columns, rules, time, unique_parts }
    }
}

/// Columns without rules, read because a rule of rows may need them.
fn add_unruled<'s>(source: &Source, schema: &Schema, columns: &mut Vec<ColumnCheck<'s>>) {
    static NONE: std::sync::LazyLock<ColumnRules> = std::sync::LazyLock::new(ColumnRules::default);
    let unruled = source.columns().iter().filter(|column| schema.column(&column.name).is_none());
    columns.extend(unruled.map(|column| ColumnCheck {
        rules: &NONE,
        column: column.clone(),
        compiled: CompiledRules::of(&NONE).expect("no rule is a rule that makes sense"),
        referenced: None,
    }));
}

/// One column as it is read.
#[derive(Default)]
struct ColumnState {
    broken: BTreeMap<Broken, CellExamples>,
    absent_from_reference: CellExamples,
    nothing: u64,
    /// Fingerprints, for a column that must be unique.
    keys: Vec<u64>,
    /// The first value, with its place, and the last.
    ends: Option<((Exact, Place), Exact)>,
}

/// A rule of rows as it is evaluated.
#[derive(Default)]
struct RuleState {
    broken: CellExamples,
    failed: Option<String>,
}

struct State<'p> {
    plan: &'p Plan<'p>,
    columns: Vec<ColumnState>,
    rules: Vec<RuleState>,
    rows: u64,
    newest: Option<f64>,
}

impl<'p> State<'p> {
    fn new(plan: &'p Plan<'p>) -> Self {
        let columns = plan.columns.iter().map(|_| ColumnState::default()).collect();
        let rules = plan.rules.iter().map(|_| RuleState::default()).collect();
        Self { plan, columns, rules, rows: 0, newest: None }
    }
}

impl Pass for State<'_> {
    fn observe(&mut self, chunk: &Chunk) {
        self.rows += chunk.batch.num_rows() as u64;
        for (index, (planned, state)) in self.plan.columns.iter().zip(&mut self.columns).enumerate() {
            state.observe(planned, chunk, index, self.plan.unique_parts);
        }
        for ((_, rule), state) in self.plan.rules.iter().zip(&mut self.rules) {
            state.observe(&**rule, chunk);
        }
        if let Some(time) = self.plan.time {
            each_number(chunk.batch.column(time), &mut |_, value| {
                let value = value.about();
                self.newest = Some(self.newest.map_or(value, |newest| newest.max(value)));
            });
        }
    }

    fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        for (state, more) in self.columns.iter_mut().zip(later.columns) {
            state.merge(more);
        }
        for (state, more) in self.rules.iter_mut().zip(later.rules) {
            state.broken.merge(more.broken);
            state.failed = state.failed.take().or(more.failed);
        }
        self.newest = later.newest.into_iter().chain(self.newest).reduce(f64::max);
    }
}

impl ColumnState {
    fn observe(&mut self, planned: &ColumnCheck<'_>, chunk: &Chunk, index: usize, unique_parts: u64) {
        let array = chunk.batch.column(index);
        let missing = (array.logical_null_count() as u64).saturating_sub(chunk.cells[index].faults.misfits);
        self.nothing += missing + nan_count(array);
        planned.compiled.apply(array, &mut |row, broken| {
            self.broken.entry(broken).or_default().add(1, || (chunk.place(row), shown(array, row)));
        });
        if planned.compiled.increasing {
            each_number(array, &mut |row, value| self.follow(value, || chunk.place(row)));
        }
        if planned.rules.unique {
            let part = fingerprints(array).map(|(_, key)| key).filter(|key| key % unique_parts == 0);
            self.keys.extend(part);
        }
        if let Some(known) = &planned.referenced {
            for (row, _) in fingerprints(array).filter(|(_, key)| !known.contains(key)) {
                self.absent_from_reference.add(1, || (chunk.place(row), shown(array, row)));
            }
        }
    }

    /// Notes a value that is below the one before it.
    fn follow(&mut self, value: Exact, place: impl Fn() -> Place) {
        match &mut self.ends {
            None => self.ends = Some(((value, place()), value)),
            Some((_, last)) => {
                if value < *last {
                    self.broken
                        .entry(Broken::Decreasing)
                        .or_default()
                        .add(1, || (place(), value.to_string()));
                }
                *last = value;
            }
        }
    }

    fn merge(&mut self, later: Self) {
        if let Some(((first, place), last)) = later.ends {
            // Where the later rows begin.
            self.follow(first, || place);
            if let Some(ends) = &mut self.ends {
                ends.1 = last;
            }
        }
        for (broken, found) in later.broken {
            self.broken.entry(broken).or_default().merge(found);
        }
        self.absent_from_reference.merge(later.absent_from_reference);
        self.nothing += later.nothing;
        self.keys.extend(later.keys);
    }
}

impl RuleState {
    fn observe(&mut self, rule: &dyn RowRule, chunk: &Chunk) {
        match rule.holds(&chunk.batch) {
            Err(why) => self.failed = self.failed.take().or(Some(why)),
            Ok(holds) => {
                let broken = (0..holds.len()).filter(|row| holds.is_valid(*row) && !holds.value(*row));
                broken.for_each(|row| self.broken.add(1, || (chunk.place(row), String::new())));
            }
        }
    }
}

fn nan_count(array: &ArrayRef) -> u64 {
    let mut count = 0;
    each_number(array, &mut |_, value| count += u64::from(value.is_nan()));
    count
}

/// Findings as they come.
#[derive(Default)]
struct Report {
    findings: Vec<Finding>,
    not_run: Vec<String>,
    rules_checked: usize,
}

impl Report {
    fn add(
        &mut self,
        check: &str,
        severity: Severity,
        column: &str,
        found: &CellExamples,
        source: &Source,
        message: String,
    ) {
        let example = |(place, value): &(Place, String)| Example {
            file: Some(source.files()[place.file].path.clone()),
            row: Some(place.row),
            value: Some(value.clone()).filter(|value| !value.is_empty()),
        };
        self.findings.push(Finding {
            column: Some(column.to_owned()).filter(|column| !column.is_empty()),
            count: Some(found.count),
            examples: found.examples.iter().map(example).collect(),
            ..Finding::new(&format!("schema.{check}"), severity, message)
        });
    }

    fn missing_column(&mut self, rules: &ColumnRules) {
        self.rules_checked += 1;
        if rules.required {
            let message = format!("column `{}` is missing", rules.name);
            let severity = rules.severity.unwrap_or(Severity::Block);
            self.findings.push(Finding::new("schema.column", severity, message).about(&rules.name));
        }
    }

    fn other_columns(&mut self, source: &Source, schema: &Schema) {
        let severity = match schema.table.other_columns {
            OtherColumns::Allow => return,
            OtherColumns::Warn => Severity::Warn,
            OtherColumns::Block => Severity::Block,
        };
        self.rules_checked += 1;
        for column in source.columns().iter().filter(|column| schema.column(&column.name).is_none()) {
            let message = format!("column `{}` is not in the schema", column.name);
            self.findings.push(Finding::new("schema.other_column", severity, message).about(&column.name));
        }
    }

    fn table(
        &mut self,
        schema: &Schema,
        coverage: &Coverage,
        state: &State<'_>,
        surroundings: &Surroundings<'_>,
    ) {
        let table = &schema.table;
        let severity = table.severity.unwrap_or(Severity::Block);
        let rows = coverage.rows_read + coverage.rows_rejected;
        let mut say = |check: &str, holds: bool, message: String| {
            self.rules_checked += 1;
            if !holds {
                self.findings.push(Finding::new(&format!("schema.{check}"), severity, message));
            }
        };
        if let Some(min) = table.rows_min {
            say("rows", rows >= min, format!("{rows} rows, fewer than the required {min}"));
        }
        if let Some(max) = table.rows_max {
            say("rows", rows <= max, format!("{rows} rows, more than the {max} allowed"));
        }
        let rejected = coverage.rows_rejected as f64 / rows.max(1) as f64;
        let message = format!("{} of {rows} rows cannot be read", coverage.rows_rejected);
        say("rejected", rejected <= table.rejected_share_max, message);
        let Some(hours) = table.fresh_within_hours else { return };
        match state.newest {
            Some(newest) => {
                let age_hours = (surroundings.now_micros as f64 - newest) / 3.6e9;
                let message =
                    format!("the newest row is {age_hours:.1} hours old, more than the {hours} allowed");
                say("fresh", age_hours <= hours, message);
            }
            None => {
                self.not_run.push("fresh_within_hours: no row has a time; name its column as `time`".into())
            }
        }
    }

    fn column(
        &mut self,
        planned: &ColumnCheck<'_>,
        state: &ColumnState,
        coverage: &Coverage,
        index: usize,
        source: &Source,
    ) {
        let rules = planned.rules;
        if rules.name.is_empty() {
            return;
        }
        let severity = rules.severity.unwrap_or(Severity::Warn);
        let name = &rules.name;
        let rows = coverage.rows_read;
        self.rules_checked += 1 + rules.asked();
        let faults = &coverage.columns[index].faults;
        if faults.misfits == 0 {
            self.stored_as_text(rules, severity, source);
        } else {
            let examples = faults.examples.iter().map(|it| (it.place, it.detail.clone())).collect();
            let found = CellExamples { count: faults.misfits, examples };
            let message =
                format!("{} of {rows} values of `{name}` are not of type {}", faults.misfits, rules.kind);
            self.add("type", severity, name, &found, source, message);
        }
        let share = state.nothing as f64 / rows.max(1) as f64;
        if let Some(max) = rules.null_share_max.filter(|max| share > *max) {
            let found = CellExamples { count: state.nothing, examples: Vec::new() };
            let message = format!(
                "{} of {rows} values of `{name}` are missing ({share:.4}), more than {max} of all",
                state.nothing
            );
            self.add("nulls", severity, name, &found, source, message);
        }
        for (broken, found) in &state.broken {
            let (check, what) = broken.check_and_message();
            let message = format!("{} of {rows} values of `{name}` are {what}", found.count);
            self.add(check, severity, name, found, source, message);
        }
        if let Some(to) = rules.references.as_ref().filter(|_| state.absent_from_reference.count > 0) {
            let found = &state.absent_from_reference;
            let message = format!(
                "{} of {rows} values of `{name}` are not in `{}` of {}",
                found.count, to.column, to.path
            );
            self.add("references", severity, name, found, source, message);
        }
    }

    /// A script gets strings from such a column, even if all of them can be read as what the schema requires.
    fn stored_as_text(&mut self, rules: &ColumnRules, severity: Severity, source: &Source) {
        if !matches!(rules.kind, ColumnType::Int | ColumnType::Float | ColumnType::Bool) {
            return;
        }
        let (name, files) = (&rules.name, source.files());
        let Some(file) = files.iter().find(|file| file.stores_as_text(name)) else { return };
        let message =
            format!("`{name}` is stored as {} in `{}`, not as {}", ColumnType::Text, file.path, rules.kind);
        let action = "convert the column where the file is written";
        let finding = Finding::new("schema.type", severity, message).about(name).action(action);
        self.findings.push(finding);
    }

    /// Where values were rounded, equal ones may be different in the file: then it is not known whether a repeated one is.
    fn repeats(&mut self, planned: &ColumnCheck<'_>, found: &CellExamples, rounded: u64, source: &Source) {
        if found.count > 0 {
            let name = &planned.rules.name;
            let repeated = crate::counted(found.count, "repeated value");
            if rounded > 0 {
                let values = crate::counted(rounded, "value");
                return self.not_run.push(format!(
                    "`{name}` has {repeated} after {values} of it were read with fewer digits than the file has: whether it is \
                     unique is not known"
                ));
            }
            let message = format!("`{name}` has {repeated}, but must be unique");
            self.add(
                "unique",
                planned.rules.severity.unwrap_or(Severity::Warn),
                name,
                found,
                source,
                message,
            );
        }
    }

    fn rule(&mut self, rule: &SqlRule, state: &RuleState, source: &Source) {
        if let Some(why) = &state.failed {
            return self.not_run.push(format!("`{}`: {why}", rule.sql));
        }
        self.rules_checked += 1;
        if state.broken.count > 0 {
            let what = rule.name.as_deref().unwrap_or(&rule.sql);
            let rows = crate::counted(state.broken.count, "row");
            let message = format!("`{what}` is violated by {rows}");
            self.add("rule", rule.severity.unwrap_or(Severity::Warn), "", &state.broken, source, message);
        }
    }
}

impl ColumnRules {
    /// How many rules there are besides the type.
    fn asked(&self) -> usize {
        let asked = [
            self.null_share_max.is_some(),
            self.min.is_some(),
            self.max.is_some(),
            !self.values.is_empty(),
            self.unique,
            self.regex.is_some(),
            self.length_min.is_some(),
            self.length_max.is_some(),
            self.increasing,
            self.references.is_some(),
        ];
        asked.into_iter().filter(|it| *it).count()
    }
}
