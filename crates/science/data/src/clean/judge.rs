//! Which rows break a rule that a row alone can break.

use std::collections::BTreeMap;

use trackway_core::checks::Severity;
use trackway_tables::read::{Chunk, Source};
use trackway_tables::{Column, ColumnType, DataError};

use super::{CleanError, CleanPlan};
use crate::schema::{ColumnRules, CompiledRules, RowRule, Schema};

/// The rules of single rows.
pub(super) struct Judge {
    columns: Vec<RuledColumn>,
    conditions: Vec<(String, Box<dyn RowRule>)>,
    /// Types that the schema gives to columns.
    types: BTreeMap<String, ColumnType>,
    /// Rules that are about more than one row.
    pub(super) not_applied: Vec<String>,
}

struct RuledColumn {
    name: String,
    compiled: CompiledRules,
    /// A row without a value breaks a rule.
    must_have_value: bool,
}

/// The reasons of the rows of a chunk that are set aside, by row.
pub(super) type Reasons = BTreeMap<usize, Vec<String>>;

impl Judge {
    pub(super) fn new(source: &Source, plan: &CleanPlan<'_>) -> Result<Self, CleanError> {
        let mut judge = Self {
            columns: Vec::new(),
            conditions: Vec::new(),
            types: BTreeMap::new(),
            not_applied: Vec::new(),
        };
        if let Some(schema) = plan.schema {
            judge.add(source, schema, plan)?;
        }
        Ok(judge)
    }

    fn add(&mut self, source: &Source, schema: &Schema, plan: &CleanPlan<'_>) -> Result<(), CleanError> {
        let applies = |severity: Option<Severity>| severity != Some(Severity::Note);
        for rules in &schema.columns {
            if source.columns().iter().all(|column| column.name != rules.name) {
                if rules.required && rules.environments.is_empty() {
                    let message = format!(
                        "the schema requires the column `{}`, which the data does not have",
                        rules.name
                    );
                    return Err(CleanError::Rule(message));
                }
                continue;
            }
            self.types.insert(rules.name.clone(), rules.kind);
            if !applies(rules.severity) {
                continue;
            }
            self.not_applied.extend(of_several_rows(rules));
            self.columns.push(RuledColumn {
                name: rules.name.clone(),
                compiled: CompiledRules::of(rules)?,
                must_have_value: rules.null_share_max == Some(0.0),
            });
        }
        for rule in schema.rules.iter().filter(|rule| applies(rule.severity)) {
            let condition =
                (plan.compile)(rule).map_err(|why| CleanError::Rule(format!("`{}`: {why}", rule.sql)))?;
            self.conditions.push((rule.name.clone().unwrap_or_else(|| rule.sql.clone()), condition));
        }
        self.not_applied.extend(of_the_table(schema));
        Ok(())
    }

    /// The source with the types that the schema gives its columns; a value of another type is a reason.
    pub(super) fn typed(&self, source: Source) -> Result<Source, DataError> {
        if self.types.is_empty() {
            return Ok(source);
        }
        let columns = source.columns().iter().map(|column| Column {
            name: column.name.clone(),
            kind: self.types.get(&column.name).copied().unwrap_or(column.kind),
        });
        let columns = columns.collect();
        source.with_columns(columns)
    }

    /// Why rows of a chunk are set aside. `names` are the columns of its batch.
    pub(super) fn reasons(&self, chunk: &Chunk) -> Result<Reasons, String> {
        let mut reasons = Reasons::new();
        let schema = chunk.batch.schema();
        let mut add = |row: usize, rule: String| reasons.entry(row).or_default().push(rule);
        for (index, tally) in chunk.cells.iter().enumerate() {
            let name = schema.field(index).name();
            let mut from = 0;
            for (line, _) in tally.listed.iter().flatten() {
                // Both are in the order of the rows.
                let row = (from..chunk.batch.num_rows()).find(|row| chunk.place(*row).row == *line);
                let Some(row) = row else {
                    return Err(format!("line {line} of `{name}` is not among the rows read"));
                };
                from = row;
                add(row, format!("`{name}` is of another type"));
            }
        }
        for column in &self.columns {
            let Ok(index) = schema.index_of(&column.name) else { continue };
            let array = chunk.batch.column(index);
            column.compiled.apply(array, &mut |row, broken| {
                add(row, format!("`{}` is {}", column.name, broken.check_and_message().1));
            });
            if column.must_have_value {
                let has_misfit = |row: usize| {
                    let lines = chunk.cells[index].listed.iter().flatten();
                    lines.into_iter().any(|(line, _)| *line == chunk.place(row).row)
                };
                if let Some(nulls) = array.logical_nulls() {
                    let empty = (0..nulls.len()).filter(|row| nulls.is_null(*row));
                    let empty: Vec<usize> = empty.filter(|row| !has_misfit(*row)).collect();
                    empty.into_iter().for_each(|row| add(row, format!("`{}` has no value", column.name)));
                }
            }
        }
        for (name, condition) in &self.conditions {
            let holds = condition.holds(&chunk.batch).map_err(|why| format!("`{name}`: {why}"))?;
            for row in (0..holds.len())
                .filter(|row| !arrow::array::Array::is_null(&holds, *row) && !holds.value(*row))
            {
                add(row, format!("not `{name}`"));
            }
        }
        Ok(reasons)
    }
}

/// Rules of a column that one row does not decide.
fn of_several_rows(rules: &ColumnRules) -> Vec<String> {
    let share = rules.null_share_max.is_some_and(|share| share > 0.0);
    let named = [
        ("unique", rules.unique),
        ("increasing", rules.increasing),
        ("references", rules.references.is_some()),
        ("null_share_max", share),
    ];
    let named = named.into_iter().filter(|(_, is_set)| *is_set);
    named.map(|(rule, _)| format!("`{}`: {rule}", rules.name)).collect()
}

/// Rules of the table as a whole.
fn of_the_table(schema: &Schema) -> Vec<String> {
    let table = &schema.table;
    let named = [
        ("rows_min", table.rows_min.is_some()),
        ("rows_max", table.rows_max.is_some()),
        ("fresh_within_hours", table.fresh_within_hours.is_some()),
    ];
    named.into_iter().filter(|(_, is_set)| *is_set).map(|(rule, _)| format!("table: {rule}")).collect()
}
