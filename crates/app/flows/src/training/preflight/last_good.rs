//! The data of the last good run of a name: what the data of the next one is compared with when the run file names no reference.

use std::collections::BTreeSet;

use trackway_core::RunId;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::good_runs::good_runs;
use trackway_formats::runfile::DataRole;
use trackway_ledger::{RunDataRow, RunRow};
use trackway_tables::profile::Profile;

use crate::data::snapshot::{profile_of_data, store};

/// What there is to compare with.
pub enum LastGood {
    /// Data of a run, with its profile.
    Found {
        run_id: RunId,
        /// The name of the data set there.
        set_name: String,
        /// What was in it.
        profile: Box<Profile>,
    },
    /// Nothing.
    None { why: String },
}

/// Looks for what the newest good run of a name had in place of a data set.
///
/// # Errors
/// When the ledger or a stored profile cannot be read.
pub fn last_good(
    context: &Context,
    run_name: &str,
    set: (&str, Option<DataRole>),
    label: Option<&str>,
) -> Result<LastGood, AppError> {
    let store = store(&context.home);
    let mut is_profile_missing = false;
    for run in good_runs(context, run_name, None)? {
        let data = data_of(context, &run)?;
        let Some(same) = in_place_of(set, &data) else { continue };
        match profile_of_data(&store, &same.data_sha256, label)? {
            Some(profile) => {
                let (run_id, set_name) = (run.run_id, same.name.clone());
                return Ok(LastGood::Found { run_id, set_name, profile: Box::new(profile) });
            }
            None => is_profile_missing = true,
        }
    }
    let why = match is_profile_missing {
        true => format!("no profile of the data of earlier runs of `{run_name}` is kept"),
        false => format!("no good run of `{run_name}` before this one"),
    };
    Ok(LastGood::None { why })
}

/// The hashes of the data whose profiles the next run of a name may be compared with: of each data set the newest good run's.
pub fn needed_profiles(context: &Context, run_name: &str) -> Result<BTreeSet<String>, AppError> {
    let (mut names, mut needed) = (BTreeSet::new(), BTreeSet::new());
    for run in good_runs(context, run_name, None)? {
        for row in data_of(context, &run)? {
            if names.insert(row.name) {
                needed.insert(row.data_sha256);
            }
        }
    }
    Ok(needed)
}

/// What the attempt with which a run completed read; nothing where that is not known.
fn data_of(context: &Context, run: &RunRow) -> Result<Vec<RunDataRow>, AppError> {
    let last = context.attempts_of(run.run_id)?.pop();
    let read = context.sets_read(run, last.as_ref())?;
    let sets = read.sets.into_iter().filter(|_| read.doubt.is_none());
    Ok(sets.map(|(set, _)| set).collect())
}

/// The data set of a run with the same name, or else the only one with the same role.
fn in_place_of<'d>((name, role): (&str, Option<DataRole>), data: &'d [RunDataRow]) -> Option<&'d RunDataRow> {
    let role = role.map(DataRole::as_str);
    let has_role = |row: &&RunDataRow| role.is_some() && row.role.as_deref() == role;
    let named =
        data.iter().find(|row| row.name == name && (row.role.is_none() || row.role.as_deref() == role));
    named.or_else(|| {
        let mut alike = data.iter().filter(has_role);
        alike.next().filter(|_| alike.next().is_none())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, role: Option<&str>) -> RunDataRow {
        RunDataRow {
            run_id: "run_00000000000000000000000001".parse().unwrap(),
            name: name.into(),
            path: "p".into(),
            data_sha256: name.into(),
            role: role.map(str::to_owned),
        }
    }

    /// Proves that the set of the same name counts, else the only one of the same role, and that neither one of another role nor
    /// one of two is guessed.
    #[test]
    fn the_same_place_is_the_name_or_the_role() {
        let found =
            |set: &str, role, data: &[RunDataRow]| in_place_of((set, role), data).map(|row| row.name.clone());
        let data = [row("train", Some("train")), row("test", Some("test"))];
        let (train, test) = (Some(DataRole::Train), Some(DataRole::Test));
        assert_eq!(found("train", train, &data).as_deref(), Some("train"));
        assert_eq!(found("rows_2026", train, &data).as_deref(), Some("train"));
        assert_eq!(found("train", test, &data).as_deref(), Some("test"), "its role changed");
        assert_eq!(found("extra", None, &data), None);
        let two = [row("a", Some("train")), row("b", Some("train"))];
        assert_eq!(found("c", train, &two), None);
        assert_eq!(found("old", None, &[row("old", None)]).as_deref(), Some("old"));
    }
}
