//! The launchers of this version, by their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use trackway_launch::{Launcher, Placement};

use crate::error::{AppError, ErrorKind};

/// What attempts are launched with.
pub(crate) struct Launchers(BTreeMap<&'static str, Arc<dyn Launcher>>);

impl Launchers {
    /// These, by the names they give themselves.
    pub fn new(launchers: impl IntoIterator<Item = Arc<dyn Launcher>>) -> Self {
        Self(launchers.into_iter().map(|launcher| (launcher.name(), launcher)).collect())
    }

    /// The one of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when this version has none of that name.
    pub fn named(&self, name: &str) -> Result<&dyn Launcher, AppError> {
        self.0.get(name).map(|launcher| &**launcher).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().copied().collect();
            AppError::new(ErrorKind::Usage, format!("this version of Trackway has no launcher `{name}`"))
                .hint(format!("it has: {}; use the version that launched the attempt", known.join(", ")))
        })
    }

    /// The one that made a placement.
    ///
    /// # Errors
    /// As for [`Self::named`].
    pub fn of(&self, placement: &Placement) -> Result<&dyn Launcher, AppError> {
        self.named(&placement.launcher)
    }
}

#[cfg(test)]
mod tests {
    use trackway_launch::LocalLauncher;
    use trackway_launch::testing::FakeEngine;

    use super::*;

    /// Proves that a placement finds the launcher that made it, and that an unknown one is named with those there are.
    #[test]
    fn launchers_are_found_by_their_names() {
        let local: Arc<dyn Launcher> = Arc::new(LocalLauncher::new("/no/such/program"));
        let launchers = Launchers::new([local, Arc::new(FakeEngine::default().launcher())]);
        let placement = |launcher: &str| Placement {
            launcher: launcher.into(),
            job_id: "1".into(),
            queue: None,
            extra: serde_json::Value::Null,
        };
        for name in ["local", "fake"] {
            assert_eq!(launchers.of(&placement(name)).unwrap().name(), name);
        }
        let Err(error) = launchers.of(&placement("slurm")) else { panic!("there is none of that name") };
        assert!(error.message.contains("`slurm`") && error.hints[0].contains("fake, local"), "{error:?}");
    }
}
