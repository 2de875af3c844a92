//! `data.representation`: which groups are in the data, and does the label's rate differ between them?

use std::collections::BTreeMap;

use trackway_core::checks::{CheckResult, Finding, Severity};
use trackway_results::integrity::Group;
use trackway_statistics::{Interval, Table, chi_square, holm, mean_interval, wilson};
use trackway_tables::ColumnType;
use trackway_tables::profile::{Moments, Profile};

use super::facts::TableFacts;
use super::groups::{Cell, GROUPS_MAX, Grouping};
use super::{LISTED, TableEvidence, answer, first_few, masked, percent};
use crate::model::{CLASS_NUMBERS_MAX, CLASSES_MAX};

const NAME: &str = "data.representation";

/// The confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// The probability of even one false difference, over all that are tested (Holm 1979).
const LEVEL: f64 = 0.01;

/// A rate that is off by less matters little, however sure it is.
const DIFFERENCE_MIN: f64 = 0.05;

/// A group's rate is known well enough from so many labelled rows on: ± 0.1 at worst (Wilson, 95 %).
const GROUP_ROWS_MIN: u64 = 100;

/// Checks the groups of a table.
#[must_use]
pub fn representation(evidence: &TableEvidence) -> CheckResult {
    let groupings = &evidence.facts.groupings;
    if groupings.is_empty() {
        return CheckResult::not_applicable(NAME, "no group column was named");
    }
    let mut findings = Vec::new();
    for grouping in groupings.iter().filter(|it| it.too_many) {
        let message = format!(
            "{} has more than {GROUPS_MAX} groups: rows were not counted by group",
            names(grouping, &evidence.profile).join(" × ")
        );
        findings.push(
            Finding::new("representation.too_many", Severity::Warn, message)
                .action("group by a column with few values, such as an age band instead of an age"),
        );
    }
    let groups = evidence.groups();
    findings.extend(small(&groups));
    findings.extend(different_rates(evidence));
    let rows = evidence.profile.rows;
    answer(
        NAME,
        rows,
        findings,
        format!("{} of {}", crate::counted(groups.len() as u64, "group"), crate::counted(rows, "row")),
    )
}

impl TableFacts {
    pub(super) fn groups(&self, profile: &Profile) -> Vec<Group> {
        let mut groups = Vec::new();
        for grouping in &self.groupings {
            let positive = positive_class(grouping, profile);
            for cell in grouping.cells() {
                groups.push(group(grouping, cell, positive.as_deref(), profile));
            }
        }
        groups
    }
}

fn names(grouping: &Grouping, profile: &Profile) -> Vec<String> {
    grouping.columns.iter().map(|index| profile.columns[*index].name.clone()).collect()
}

fn group(grouping: &Grouping, cell: &Cell, positive: Option<&str>, profile: &Profile) -> Group {
    let empty = Group {
        columns: names(grouping, profile),
        values: cell.values.clone(),
        rows: cell.rows,
        fraction: cell.rows as f64 / profile.rows.max(1) as f64,
        label_value: positive.map(str::to_owned),
        label_rate: None,
        interval: Interval::UNKNOWN,
    };
    if let Some(positive) = positive {
        let (rows, labelled) = counted(cell, positive);
        let interval = wilson(rows, labelled, CONFIDENCE);
        let label_rate = (labelled > 0.0).then(|| rows / labelled);
        return Group { label_rate, interval, ..empty };
    }
    match (cell.amounts.count, cell.amounts.stddev()) {
        (count, Some(deviation)) if count > 1 => {
            let interval = mean_interval(cell.amounts.mean, deviation, count as f64, CONFIDENCE);
            let label_rate = Some(cell.amounts.mean);
            Group { label_rate, interval, ..empty }
        }
        _ => empty,
    }
}

/// Rows of a class, and rows with any.
fn counted(cell: &Cell, class: &str) -> (f64, f64) {
    let rows = cell.classes.get(class).copied().unwrap_or(0);
    (rows as f64, cell.classes.values().sum::<u64>() as f64)
}

/// Rows by class over all groups; empty for a continuous label.
fn classes(grouping: &Grouping, profile: &Profile) -> BTreeMap<String, u64> {
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for cell in grouping.cells() {
        cell.classes.iter().for_each(|(class, rows)| *all.entry(class.clone()).or_default() += rows);
    }
    let kind = profile.label.as_ref().and_then(|label| profile.column(label)).map(|label| label.kind);
    let max = match kind {
        Some(ColumnType::Int | ColumnType::Float) => CLASS_NUMBERS_MAX,
        _ => CLASSES_MAX,
    };
    if all.len() > max { BTreeMap::new() } else { all }
}

/// The class whose rate is reported: the rarest of two, else the most frequent.
fn positive_class(grouping: &Grouping, profile: &Profile) -> Option<String> {
    let classes = classes(grouping, profile);
    let by_rows =
        |one: &(&String, &u64), other: &(&String, &u64)| one.1.cmp(other.1).then(other.0.cmp(one.0));
    let found = match classes.len() {
        2 => classes.iter().min_by(by_rows),
        _ => classes.iter().max_by(by_rows),
    };
    found.map(|(class, _)| class.clone())
}

fn small(groups: &[Group]) -> Option<Finding> {
    let small: Vec<&Group> = groups.iter().filter(|group| group.rows < GROUP_ROWS_MIN).collect();
    (!small.is_empty()).then(|| {
        let name = |group: &&Group| format!("{} ({})", title(&group.columns, &group.values), group.rows);
        let message = format!(
            "{} of {} groups have fewer than {GROUP_ROWS_MIN} rows: {}",
            small.len(),
            groups.len(),
            first_few(&small, name)
        );
        Finding::new("representation.small_group", Severity::Warn, message)
            .action("too few to measure how a model treats them: collect more rows, or document the gap")
            .count(small.len() as u64)
    })
}

/// `sex=Female, race=Other`
fn title(columns: &[String], values: &[String]) -> String {
    let pairs = columns.iter().zip(values).map(|(column, text)| format!("{column}={}", masked(text)));
    pairs.collect::<Vec<_>>().join(", ")
}

/// One test: a group against all others, by the rate of one class or by the mean.
struct Test {
    title: String,
    what: String,
    here: f64,
    elsewhere: f64,
    difference: f64,
    p_value: f64,
}

fn different_rates(evidence: &TableEvidence) -> Option<Finding> {
    let label = evidence.label.as_ref()?;
    let tests: Vec<Test> = evidence.facts.groupings.iter().flat_map(|it| tests(it, evidence)).collect();
    let adjusted = holm(&tests.iter().map(|test| test.p_value).collect::<Vec<_>>());
    let mut found: Vec<(&Test, f64)> = tests.iter().zip(adjusted).collect();
    found.retain(|(test, adjusted)| *adjusted <= LEVEL && test.difference >= DIFFERENCE_MIN);
    found.sort_by(|one, other| other.0.difference.total_cmp(&one.0.difference));
    (!found.is_empty()).then(|| {
        let name = |(test, _): &(&Test, f64)| {
            format!(
                "{} {} against {} elsewhere",
                test.title,
                shown(test, test.here),
                shown(test, test.elsewhere)
            )
        };
        let listed_files: Vec<String> = found.iter().take(LISTED).map(name).collect();
        let more = found.len().saturating_sub(LISTED);
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        let message = format!(
            "the label `{label}` ({}) differs between groups: {}{more} ({} tests, corrected)",
            found[0].0.what,
            listed_files.join("; "),
            tests.len()
        );
        Finding::new("representation.label_rate", Severity::Warn, message)
            .about(label)
            .action(
                "a model will learn the difference: check whether it is real, and measure errors by group",
            )
            .count(found.len() as u64)
    })
}

fn shown(test: &Test, value: f64) -> String {
    if test.what == "mean" { format!("{value:.3}") } else { percent(value) }
}

fn tests(grouping: &Grouping, evidence: &TableEvidence) -> Vec<Test> {
    let profile = &evidence.profile;
    let columns = names(grouping, profile);
    let cells = grouping.cells();
    let title = |cell: &Cell| title(&columns, &cell.values);
    match positive_class(grouping, profile) {
        Some(positive) => {
            let all = cells.iter().fold((0.0, 0.0), |sum, cell| {
                let (rows, labelled) = counted(cell, &positive);
                (sum.0 + rows, sum.1 + labelled)
            });
            let test = |cell: &&Cell| rate_test(title(cell), counted(cell, &positive), all, &positive);
            cells.iter().filter_map(test).collect()
        }
        None => {
            let mut all = Moments::default();
            cells.iter().for_each(|cell| all.merge(&cell.amounts));
            cells.iter().filter_map(|cell| mean_test(title(cell), &cell.amounts, &all)).collect()
        }
    }
}

/// Two rates, by the chi-square test of a table of four.
fn rate_test(
    title: String,
    (rows, labelled): (f64, f64),
    (all_rows, all_labelled): (f64, f64),
    positive: &str,
) -> Option<Test> {
    let (other_rows, other_labelled) = (all_rows - rows, all_labelled - labelled);
    if labelled < GROUP_ROWS_MIN as f64 || other_labelled < GROUP_ROWS_MIN as f64 {
        return None;
    }
    let table = Table::new(&[vec![rows, labelled - rows], vec![other_rows, other_labelled - other_rows]]);
    let (here, elsewhere) = (rows / labelled, other_rows / other_labelled);
    Some(Test {
        title,
        what: format!("`{positive}`"),
        here,
        elsewhere,
        difference: (here - elsewhere).abs(),
        p_value: chi_square(&table)?.p_value,
    })
}

/// A mean against that of all rows; the difference in standard deviations. Welch's statistic is squared into a
/// chi-square of one degree, which for [`GROUP_ROWS_MIN`] rows it nearly is.
fn mean_test(title: String, here: &Moments, all: &Moments) -> Option<Test> {
    if here.count < GROUP_ROWS_MIN || all.count - here.count < GROUP_ROWS_MIN {
        return None;
    }
    let (own, every) = (here.count as f64, all.count as f64);
    let others = every - own;
    let elsewhere = (all.mean * every - here.mean * own) / others;
    let between = own * (here.mean - all.mean).powi(2) + others * (elsewhere - all.mean).powi(2);
    let others_m2 = (all.m2 - here.m2 - between).max(0.0);
    let variance = here.m2 / (own - 1.0) / own + others_m2 / (others - 1.0) / others;
    let deviation = all.stddev().filter(|it| *it > 0.0)?;
    let statistic = (here.mean - elsewhere).powi(2) / variance.max(f64::MIN_POSITIVE);
    let p_value = trackway_statistics::chi_square_p_value(statistic, 1);
    let difference = (here.mean - elsewhere).abs() / deviation;
    Some(Test { title, what: "mean".into(), here: here.mean, elsewhere, difference, p_value })
}
