//! Whether data still has the distribution of other data.

use std::path::Path;

pub use trackway_data::drift::{
    ColumnDrift, ColumnImportance, DriftReport, DriftTest, JointDrift, Role, UNKNOWN_FRACTION_MIN,
};
use trackway_data::drift::{JointError, KnownColumns, SAMPLED_ROWS_MIN, compare_known, joint_drift};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::home::Home;
use trackway_tables::profile::Profile;
use trackway_tables::read::{ReadNote, sentences};

use super::snapshot::{self, aligned, kept_profile};
use super::table::{ReadObserver, TableRequest, data_error};

/// The request for a comparison.
#[derive(Debug, Clone, Copy, Default)]
pub struct DriftRequest<'r> {
    /// The column to be predicted.
    pub label: Option<&'r str>,
    /// Columns that are not compared.
    pub skip: &'r [String],
    /// Whether a model has to separate the sides; rows of both are read once more for it.
    pub joint: bool,
    /// Whether the numbers of every row are compared, not those of a [sample](Profile::sampled).
    pub all_rows: bool,
}

/// Compares two data sets, each by its profile: one that was kept (a `.json` file, or a snapshot of the home), or one
/// that is made now.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for data that cannot be read as a table,
/// or a file that holds no profile; for a column that neither side has; for a joint shift of profiles, or of too few rows;
/// [`ErrorKind::Blocked`] when every row of a side was rejected.
pub fn drift(
    home: &Home,
    base: &Path,
    (reference, current): (&TableRequest, &TableRequest),
    asked: DriftRequest<'_>,
    observer: &ReadObserver<'_>,
) -> Result<DriftReport, AppError> {
    let profile = |request: &TableRequest, set: &str| {
        if asked.joint && (is_profile(request) || is_snapshot(home, base, request)?) {
            let message = "multivariate drift (`--joint`) needs the rows of both data sets, not a saved profile or snapshot";
            return Err(AppError::new(ErrorKind::Usage, message.to_owned()));
        }
        if let Some(kept) = kept(home, base, request)? {
            return Ok(kept);
        }
        let mut source = request.open(base, set)?;
        let watch = observer.watch();
        let profile = match asked.all_rows {
            true => Profile::of(&mut source, None, &watch).map(|(profile, _)| profile),
            false => Profile::sampled(&mut source, SAMPLED_ROWS_MIN, &watch),
        };
        let profile = profile.map_err(data_error)?;
        match profile.rows == 0 && profile.rows_rejected > 0 {
            true => Err(all_rejected(set, profile.rows_rejected, &source.reading())),
            false => Ok(profile),
        }
    };
    let (before, after) = aligned(home, profile(reference, "reference")?, profile(current, "current")?)?;
    for (profile, set) in [(&before, "reference"), (&after, "current")] {
        if profile.rows == 0 {
            let message = format!("the {set} side has no rows: nothing can be compared");
            return Err(AppError::new(ErrorKind::Usage, message));
        }
    }
    for (name, role) in asked
        .label
        .map(|label| (label, "label"))
        .into_iter()
        .chain(asked.skip.iter().map(|skip| (skip.as_str(), "skipped")))
    {
        if before.column(name).is_none() && after.column(name).is_none() {
            let message = format!("neither side has the {role} column `{name}`");
            return Err(AppError::new(ErrorKind::Usage, message));
        }
    }
    let known = KnownColumns { label: asked.label, skip: asked.skip, ..KnownColumns::default() };
    let report = compare_known(&before, &after, known);
    Ok(if asked.joint {
        let mut sides = (reference.open(base, "reference")?, current.open(base, "current")?);
        let found = joint_drift(&mut sides.0, &mut sides.1, known, &observer.watch());
        report.with_joint(found.map_err(|error| match error {
            JointError::Data(error) => data_error(error),
            other => AppError::of(ErrorKind::Usage, other),
        })?)
    } else {
        report
    })
}

/// That no row of a side can be compared, with what reading said of it: how it is read, it may be.
fn all_rejected(set: &str, count: u64, reading: &[ReadNote]) -> AppError {
    let said = sentences(reading.iter()).join("; ");
    let message =
        format!("none of the {count} rows of the {set} side can be read, so nothing can be compared: {said}");
    AppError::new(ErrorKind::Blocked, message)
}

fn is_snapshot(home: &Home, base: &Path, request: &TableRequest) -> Result<bool, AppError> {
    let [word] = request.paths.as_slice() else { return Ok(false) };
    Ok(snapshot::find(&snapshot::store(home), base, word)?.is_some())
}

fn is_profile(request: &TableRequest) -> bool {
    matches!(request.paths.as_slice(), [only] if only.ends_with(".json"))
}

/// The profile of a data set: one that was kept, in a file or with a snapshot, or one that is made now. `set` is what errors call it.
pub(crate) fn profile_of(
    home: &Home,
    base: &Path,
    request: &TableRequest,
    set: &str,
    observer: &ReadObserver<'_>,
) -> Result<Profile, AppError> {
    if let Some(kept) = kept(home, base, request)? {
        return Ok(kept);
    }
    let mut source = request.open(base, set)?;
    // Correlations with a label are not compared.
    let (profile, _) = Profile::of(&mut source, None, &observer.watch()).map_err(data_error)?;
    Ok(profile)
}

/// The profile that a request names: in a file, or with a snapshot.
fn kept(home: &Home, base: &Path, request: &TableRequest) -> Result<Option<Profile>, AppError> {
    if is_profile(request) {
        let only = &request.paths[0];
        let path = base.join(only);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| AppError::file("read the profile in", &path, error))?;
        let usage = |error: trackway_tables::profile::ProfileError| {
            AppError::new(ErrorKind::Usage, format!("`{only}`")).because(error)
        };
        return Profile::from_json(&text).map(Some).map_err(usage);
    }
    kept_profile(&snapshot::store(home), base, request)
}
