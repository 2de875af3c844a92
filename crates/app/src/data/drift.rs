//! Whether data still has the distribution of other data.

use std::path::Path;

use trackway_data::drift::{DriftSettings, compare};
use trackway_data::profile::Profile;

pub use trackway_data::drift::{ColumnDrift, DriftReport, Role};

use super::snapshot::{self, kept_profile};
use super::table::{Onlooker, TableRequest, data_error};
use crate::error::{AppError, ErrorKind};
use crate::home::Home;

/// Compares two data sets, each by its profile: one that was kept (a `.json` file, or a snapshot of the home), or one
/// that is made now.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for data that cannot be read as a table, or
/// a file that holds no profile.
pub fn drift(
    home: &Home,
    base: &Path,
    (reference, current): (&TableRequest, &TableRequest),
    label: Option<&str>,
    onlooker: &Onlooker<'_>,
) -> Result<DriftReport, AppError> {
    let store = snapshot::store(home);
    let profile = |request: &TableRequest, set: &str| match kept_profile(&store, base, request, label)? {
        Some(kept) => Ok(kept),
        None => profile_of(base, request, set, onlooker),
    };
    let (reference, current) = (profile(reference, "reference")?, profile(current, "current")?);
    Ok(compare(&reference, &current, label, &DriftSettings::default()))
}

/// The profile of a data set: one that was kept, or one that is made now. `set` is what errors call it.
pub(crate) fn profile_of(
    base: &Path,
    request: &TableRequest,
    set: &str,
    onlooker: &Onlooker<'_>,
) -> Result<Profile, AppError> {
    if let [only] = request.paths.as_slice()
        && only.ends_with(".json")
    {
        let path = base.join(only);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| AppError::file("read the profile in", &path, &error))?;
        let usage = |error: trackway_data::profile::ProfileError| {
            AppError::new(ErrorKind::Usage, format!("`{only}`: {error}"))
        };
        return Profile::from_json(&text).map_err(usage);
    }
    let mut source = request.open(base, set)?;
    // Correlations with a label are not compared.
    let (profile, _) = Profile::of(&mut source, None, &onlooker.watch()).map_err(data_error)?;
    Ok(profile)
}
