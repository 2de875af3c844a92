//! What attempts are launched with: the launcher of each engine, by the engine's name.

use std::collections::BTreeMap;
use std::sync::Arc;

use trackway_core::text::quoted_list;
use trackway_formats::runfile::{EngineName, nearest};
use trackway_formats::settings::EngineSettings;
use trackway_launch::{Launcher, LocalLauncher, Placement};
use trackway_ledger::AttemptRow;

use crate::error::{AppError, ErrorKind};

/// What attempts are launched with.
pub(crate) struct Launchers {
    /// Those of the default engines, by the names of their kinds.
    kinds: BTreeMap<&'static str, Arc<dyn Launcher>>,
    /// Those of the other engines of the settings.
    engines: BTreeMap<String, Arc<dyn Launcher>>,
}

/// The engine of an attempt, by its name in the settings or by its kind; none: the default one of this machine.
pub(crate) fn engine_of(row: &AttemptRow) -> Option<&str> {
    let instance = row.engine_instance.as_deref()?;
    Some(instance.split_once(':').map_or(instance, |(engine, _)| engine))
}

/// The launcher of this machine, as these settings have it: an engine with the name of its kind is the default one.
pub(super) fn local_engine(
    local: LocalLauncher,
    name: &EngineName,
    settings: &EngineSettings,
) -> LocalLauncher {
    let local = local.with_gpus(settings.gpus);
    if name.as_str() == settings.kind.as_str() { local } else { local.named(name.as_str()) }
}

impl Launchers {
    /// These, by the names they give themselves; of several with one name the last.
    pub fn new(launchers: impl IntoIterator<Item = Arc<dyn Launcher>>) -> Self {
        let mut found = Self { kinds: BTreeMap::new(), engines: BTreeMap::new() };
        for launcher in launchers {
            match launcher.engine().map(str::to_owned) {
                Some(engine) => found.engines.insert(engine, launcher),
                None => found.kinds.insert(launcher.name(), launcher),
            };
        }
        found
    }

    /// That of an engine: one of the settings, or the default one of a kind.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for an engine that is not there.
    pub fn engine(&self, name: &str) -> Result<&dyn Launcher, AppError> {
        let found = self.engines.get(name).or_else(|| self.kinds.get(name));
        found.map(|launcher| &**launcher).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> AppError {
        let named = self.engines.keys().map(String::as_str);
        let known: Vec<&str> = self.kinds.keys().copied().chain(named).collect();
        let error = AppError::new(
            ErrorKind::Usage,
            format!("the settings have no engine `{name}` (`launch.engine`)"),
        );
        let error = match nearest(name, known.iter().copied()) {
            Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
            None => error,
        };
        error.hint(format!(
            "the engines are {}; a section `[engines.NAME]` of a settings file adds one, and `trackway config` lists them",
            quoted_list(&known)
        ))
        .hint("a resume needs that section for the engine of its run; a command that has `--set`, such as an evaluation, may use another engine: `--set launch.engine=local`")
    }

    /// The one that launched an attempt, or is to launch it.
    ///
    /// # Errors
    /// As for [`Self::of`].
    pub fn of_attempt(&self, row: &AttemptRow) -> Result<&dyn Launcher, AppError> {
        self.made_by(engine_of(row), &row.launcher)
    }

    /// The one that made a placement.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when this version has no launcher of its kind.
    pub fn of(&self, placement: &Placement) -> Result<&dyn Launcher, AppError> {
        self.made_by(placement.engine.as_deref(), &placement.launcher)
    }

    /// Where the settings do not have the engine any more, the default one of its kind may know the attempt as well.
    fn made_by(&self, engine: Option<&str>, kind: &str) -> Result<&dyn Launcher, AppError> {
        let engine = engine.and_then(|engine| self.engines.get(engine));
        let found = engine.filter(|launcher| launcher.name() == kind).or_else(|| self.kinds.get(kind));
        found.map(|launcher| &**launcher).ok_or_else(|| {
            let known: Vec<&str> = self.kinds.keys().copied().collect();
            AppError::new(ErrorKind::Usage, format!("this version of Trackway has no launcher `{kind}`"))
                .hint(format!("it has: {}; use the version that launched the attempt", known.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use trackway_formats::runfile::LaunchOn;
    use trackway_launch::Accelerators;
    use trackway_launch::testing::FakeEngine;

    use super::*;

    fn launchers() -> Launchers {
        let local = || LocalLauncher::new("/no/such/program");
        let settings = |gpus| EngineSettings { kind: LaunchOn::Local, gpus };
        let workstation = local_engine(local(), &"workstation".parse().unwrap(), &settings(Some(3)));
        let default = local_engine(local(), &"local".parse().unwrap(), &settings(Some(2)));
        Launchers::new([
            Arc::new(local()) as Arc<dyn Launcher>,
            Arc::new(FakeEngine::default().launcher()),
            Arc::new(workstation),
            Arc::new(default),
        ])
    }

    /// Proves that an engine is found by its name or its kind, with its settings, and that for an unknown one the
    /// nearest name and those there are are said, with what a resume needs, which has no `--set`.
    #[test]
    fn engines_are_found_by_their_names() {
        let launchers = launchers();
        let gpus = |engine: &str| {
            let offer = launchers.engine(engine).unwrap().offer(Path::new("/")).unwrap();
            (offer.launcher, offer.engine, offer.gpus)
        };
        assert_eq!(gpus("local"), ("local", None, Accelerators::UpTo(2)));
        assert_eq!(gpus("workstation"), ("local", Some("workstation".into()), Accelerators::UpTo(3)));
        let unknown = |name: &str| launchers.engine(name).err().unwrap();
        let error = unknown("workstaton");
        assert_eq!((error.kind, error.hints[0].as_str()), (ErrorKind::Usage, "did you mean `workstation`?"));
        let error = unknown("slurm");
        assert!(error.to_string().contains("no engine `slurm`") && error.hints.len() == 2, "{error:?}");
        assert!(error.hints[0].contains("`fake`, `local`, `workstation`"), "{error:?}");
        let both = ["a resume needs that section", "`--set launch.engine=local`"];
        assert!(both.iter().all(|words| error.hints[1].contains(words)), "{error:?}");
    }

    /// Proves that a placement finds the launcher that made it, also where its engine is not in the settings any more,
    /// and that an unknown one is named with those there are.
    #[test]
    fn launchers_are_found_by_their_placements() {
        let launchers = launchers();
        let placement = |launcher: &str| Placement {
            launcher: launcher.into(),
            engine: None,
            job_id: "1".into(),
            queue: None,
            extra: serde_json::Value::Null,
        };
        for name in ["local", "fake"] {
            assert_eq!(launchers.of(&placement(name)).unwrap().name(), name);
        }
        for (engine, found) in [("workstation", Some("workstation")), ("gone", None)] {
            let placement = Placement { engine: Some(engine.into()), ..placement("local") };
            assert_eq!(launchers.of(&placement).unwrap().engine(), found);
        }
        let Err(error) = launchers.of(&placement("slurm")) else { panic!("there is none of that name") };
        assert!(error.to_string().contains("`slurm`") && error.hints[0].contains("fake, local"), "{error:?}");
    }
}
