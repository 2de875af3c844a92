//! When attempts ran in a folder, and the files that the output of their supervisors went to: a file that was written
//! meanwhile may be their output, and such a file is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use trackway_core::Timestamp;
use trackway_formats::layout::AttemptLayout;
use trackway_ledger::{AttemptFilter, AttemptRow};

use crate::Context;
use crate::capture::{Capture, is_python, script_of};
use crate::error::AppError;

/// Most attempts that are looked at, the newest first.
const ATTEMPTS_MAX: usize = 2000;
/// Most of them whose captures are read, the newest first.
const CAPTURES_MAX: usize = 200;

/// From when to when an attempt ran; one that has not ended has no second time.
type RunTime = (Timestamp, Option<Timestamp>);

/// When a file of two captures was written: none where it is not there, and no time where it is not known.
pub type Versions = [Option<Option<Timestamp>>; 2];

/// When attempts ran, and what their supervisors wrote to.
#[derive(Debug, Clone, Default)]
pub struct RunTimes {
    all: Vec<RunTime>,
    /// Those of one script.
    of_script: Vec<RunTime>,
    /// The files that the output of those of one script went to.
    outputs_of_script: BTreeSet<PathBuf>,
    /// The same of the others.
    outputs_of_others: BTreeSet<PathBuf>,
}

/// The part of a capture that is read here.
#[derive(Default, Deserialize)]
struct CapturedOutputs {
    #[serde(default)]
    outputs: Vec<PathBuf>,
}

impl RunTimes {
    /// When all of them ran and when those of the script did; the files that the output of the script's supervisors
    /// went to, and that of the others.
    #[must_use]
    pub fn new(
        all: Vec<RunTime>,
        of_script: Vec<RunTime>,
        [outputs_of_script, outputs_of_others]: [BTreeSet<PathBuf>; 2],
    ) -> Self {
        Self { all, of_script, outputs_of_script, outputs_of_others }
    }

    /// Of the attempts that ran in this folder, in one above it or in one below it, and which of them started this script.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn in_folder(context: &Context, folder: &Path, script: Option<&Path>) -> Result<Self, AppError> {
        let filter = AttemptFilter { limit: Some(ATTEMPTS_MAX), ..AttemptFilter::default() };
        let attempts = context.ledger_read(|ledger| ledger.list_attempts(&filter))?;
        let is_near = |attempt: &&AttemptRow| {
            let other = Path::new(&attempt.working_directory);
            folder.starts_with(other) || other.starts_with(folder)
        };
        let time = |attempt: &AttemptRow| Some((attempt.started_at?, attempt.ended_at));
        let is_same = |attempt: &AttemptRow| script_of_attempt(attempt).as_deref() == script;
        let is_of_script = |attempt: &&AttemptRow| script.is_some() && is_same(attempt);
        let (of_script, of_others): (Vec<&AttemptRow>, Vec<&AttemptRow>) =
            attempts.iter().filter(is_near).take(CAPTURES_MAX).partition(|attempt| is_same(attempt));
        let outputs = |of: Vec<&AttemptRow>| of.into_iter().flat_map(outputs_of).collect();
        let all = attempts.iter().filter(is_near).filter_map(time).collect();
        let times_of_script = attempts.iter().filter(is_of_script).filter_map(time).collect();
        Ok(Self::new(all, times_of_script, [of_script, of_others].map(outputs)))
    }

    /// Whether an attempt ran then. What a process writes it writes before its end is seen.
    #[must_use]
    pub fn has(&self, at: Timestamp) -> bool {
        covers(&self.all, at)
    }

    /// Whether one of the script did. A file that a command names may be written by another script and read by this one.
    #[must_use]
    pub fn has_of_script(&self, at: Timestamp) -> bool {
        covers(&self.of_script, at)
    }

    /// Whether an attempt may have written what differs of a file that no command names. A run writes no code that was there before.
    #[must_use]
    pub fn wrote(&self, path: &str, [then, now]: Versions) -> bool {
        let is_edited_code = then.is_some() && now.is_some() && is_python(path);
        !is_edited_code && now.or(then).flatten().is_some_and(|at| self.has(at))
    }

    /// Whether the output of one of these attempts, or of another one of the script, went to this file, by `>`, by `tee` or the like.
    #[must_use]
    pub fn is_output<'c>(&self, of: impl IntoIterator<Item = &'c Capture>, path: &Path) -> bool {
        let is_own = of.into_iter().any(|capture| capture.outputs.iter().any(|output| output == path));
        is_own || is_among(&self.outputs_of_script, path)
    }

    /// Whether that of an attempt of another script did, so that this one may read it.
    #[must_use]
    pub fn is_output_of_others(&self, path: &Path) -> bool {
        is_among(&self.outputs_of_others, path)
    }
}

fn is_among(outputs: &BTreeSet<PathBuf>, path: &Path) -> bool {
    !outputs.is_empty() && (outputs.contains(path) || outputs.contains(&without_links(path)))
}

/// The path without links, also of a file that is gone.
fn without_links(path: &Path) -> PathBuf {
    let of_folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(of_folder).unwrap_or_else(|| path.to_owned())
}

/// The files that the output of an attempt's supervisor went to, as far as its capture is there.
fn outputs_of(attempt: &AttemptRow) -> Vec<PathBuf> {
    let path = AttemptLayout::new(Path::new(&attempt.log_directory)).capture_json();
    // Most captures have none, and it takes longer to read all of one.
    let text = std::fs::read_to_string(path).ok().filter(|text| text.contains("\"outputs\""));
    let captured = text.and_then(|text| serde_json::from_str::<CapturedOutputs>(&text).ok());
    captured.unwrap_or_default().outputs
}

fn covers(times: &[RunTime], at: Timestamp) -> bool {
    times.iter().any(|(start, end)| *start <= at && end.is_none_or(|end| at <= end))
}

/// What the command of an attempt starts.
fn script_of_attempt(attempt: &AttemptRow) -> Option<PathBuf> {
    let command = attempt.config_json.pointer("/run/command")?.as_array()?;
    let words: Vec<String> = command.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    script_of(&words, Path::new(&attempt.working_directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a file is known as an output by its path without links, also when it is gone.
    #[test]
    fn outputs_are_known_by_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("work")).unwrap();
        std::os::unix::fs::symlink(real.join("work"), real.join("linked")).unwrap();
        let outputs = BTreeSet::from([real.join("work/train.log")]);
        for path in ["work/train.log", "linked/train.log"] {
            assert!(is_among(&outputs, &real.join(path)), "{path}");
        }
        assert!(!is_among(&outputs, &real.join("work/other.log")));
        assert!(!is_among(&BTreeSet::new(), &real.join("work/train.log")));
    }

    /// Proves that a new or changed file is an output by its last time, that one which is gone is by its own, and that
    /// code which was there before is none.
    #[test]
    fn what_an_attempt_wrote() {
        let at = |micros| Some(Some(Timestamp::from_micros(micros)));
        let times = RunTimes { all: vec![(Timestamp::from_micros(10), None)], ..RunTimes::default() };
        let cases = [
            ("log", [at(1), at(10)], true),
            ("log", [at(10), at(1)], false),
            ("log", [None, at(10)], true),
            ("log", [at(10), None], true),
            ("log", [at(10), Some(None)], false),
            ("m.py", [None, at(10)], true),
            ("m.py", [at(1), at(10)], false),
        ];
        for (path, versions, expected) in cases {
            assert_eq!(times.wrote(path, versions), expected, "{path} {versions:?}");
        }
    }

    /// Proves that a time counts from the start of an attempt to its end, and of one that has not ended for ever.
    #[test]
    fn an_attempt_ran_from_its_start_to_its_end() {
        let at = Timestamp::from_micros;
        let times = [(at(10), Some(at(20))), (at(40), None)];
        assert_eq!(
            [9, 10, 20, 21, 40, 99].map(|micros| covers(&times, at(micros))),
            [false, true, true, false, true, true]
        );
    }
}
