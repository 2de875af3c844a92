//! The blind spots of evaluated rows: [`super::find`] over every column without another role, with the errors of the
//! evaluation itself.

use trackway_core::text::counted;
use trackway_data::model::{Cells, Frame, FrameColumn};
use trackway_results::search::{BlindSpots, Loss};
use trackway_tables::ColumnType;

use super::held_out::HeldOut;
use super::{ErrorSource, Roles, SearchObserver, Settings, find};

/// The metric of a blind spot, in tables and gates.
pub const ERROR_METRIC: &str = "error";
/// With more columns than these only single values and pairs of them are searched: triples would be too many.
pub const COLUMNS_OF_TRIPLES_MAX: usize = 64;
/// Half of fewer rows has no slice that could be measured.
const ROWS_MIN: usize = 100;
const LEVELS_OF_MANY_COLUMNS: usize = 2;

/// The rows whose blind spots are searched.
pub(crate) struct Searched<'s> {
    /// The table.
    pub frame: &'s Frame,
    /// What an error is.
    pub loss: Loss,
    /// The error of each row of the table; NaN if it is not known.
    pub errors: Vec<f64>,
    /// Columns that slices are not made of.
    pub others: Vec<&'s str>,
    /// The column whose equal values belong together.
    pub group: Option<&'s str>,
    /// Decides which rows are held out.
    pub seed: u64,
}

/// Searches them; a sentence where they cannot be searched: no columns, too few rows, cancelled.
pub(crate) fn blind_spots(of: Searched<'_>, watch: &SearchObserver<'_>) -> Result<BlindSpots, String> {
    let Searched { frame, loss, errors, others, group, seed } = of;
    let is_feature = |column: &&FrameColumn| !others.contains(&column.name.as_str());
    let mut columns: Vec<FrameColumn> = frame.columns().iter().filter(is_feature).cloned().collect();
    if columns.is_empty() {
        return Err("the rows have no columns beside those of the evaluation".into());
    }
    let rows = errors.iter().filter(|error| !error.is_nan()).count();
    if rows < ROWS_MIN {
        return Err(format!("{} with an error are too few", counted(rows as u64, "row")));
    }
    let max_level = match columns.len() > COLUMNS_OF_TRIPLES_MAX {
        true => LEVELS_OF_MANY_COLUMNS,
        false => Settings::default().max_level,
    };
    let name = unused_name("error", frame);
    columns.push(FrameColumn {
        name: name.clone(),
        kind: ColumnType::Float,
        cells: Cells::Numbers(errors.clone()),
    });
    let at = group.and_then(|group| frame.index_of(group));
    columns.extend(at.map(|index| frame.columns()[index].clone()));
    let group_keys = at.map(|index| frame.group_keys(index));
    let roles = Roles {
        error: ErrorSource::Column(name),
        baseline: None,
        group: at.and(group).map(str::to_owned),
        features: Vec::new(),
        skip: Vec::new(),
        categorical: Vec::new(),
    };
    let settings = Settings { seed, max_level, merges_alike: true, ..Settings::default() };
    let found = find(Frame::of_columns(columns), &roles, &settings, None, watch);
    let found = found.map_err(|error| error.to_string())?;
    let rows: Vec<u32> = (0..errors.len() as u32).filter(|row| !errors[*row as usize].is_nan()).collect();
    let all = HeldOut { rows: &rows, values: &errors, groups: group_keys.as_deref(), is_paired: false, seed };
    Ok(BlindSpots {
        loss,
        error: all.average(&rows).ok_or("no row has an error")?,
        searched: found.searched,
        held_out: found.held_out,
        min_support: found.min_support,
        max_level,
        is_complete: found.is_complete,
        slices: found.slices,
    })
}

fn unused_name(name: &str, frame: &Frame) -> String {
    let mut name = name.to_owned();
    while frame.index_of(&name).is_some() {
        name.push('_');
    }
    name
}
