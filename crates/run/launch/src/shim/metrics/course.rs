//! How the printed steps of a training are counted, kept for the attempt that continues it: steps that begin again in
//! each epoch say only with the attempt before how many there were.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trackway_core::Step;
use trackway_files::TempFile;
use trackway_formats::layout::{HomeLayout, RunLayout};
use trackway_formats::printed::PrintedCourse;

use crate::StoredLaunch;
use crate::files::read_json;

/// How often it is written at most while the script prints: a machine may be lost.
const WRITE_EVERY_MICROS: i64 = 1_000_000;

/// The file in the run's folder, and what was written to it.
#[derive(Debug, Clone)]
pub(in crate::shim) struct KeptCourse {
    path: PathBuf,
    kept: PrintedSteps,
    write_at: i64,
}

/// What the file has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct PrintedSteps {
    /// The folder of the checkpoints of the same kind of launch and rung.
    of: String,
    course: PrintedCourse,
}

/// What the steps of a run are, by what its last attempt printed ([`PrintedCourse::steps_are`]). `highest`: the highest of its steps.
#[must_use]
pub fn steps_are(run: &RunLayout, highest: Option<Step>) -> Option<&'static str> {
    printed_course(run).steps_are(highest)
}

/// How the printed steps of a run are counted, as far as its last attempt shows it.
#[must_use]
pub fn printed_course(run: &RunLayout) -> PrintedCourse {
    let kept: Option<PrintedSteps> = read_json(&run.printed_steps_json()).ok().flatten();
    kept.unwrap_or_default().course
}

impl KeptCourse {
    /// Reads what the attempt before left; nothing where it was of another kind or rung.
    pub fn of(launch: &StoredLaunch) -> Self {
        let run = HomeLayout::new(launch.home()).run(launch.run_id);
        Self::read(run.printed_steps_json(), &launch.checkpoint_root)
    }

    pub(super) fn read(path: PathBuf, checkpoint_root: &Path) -> Self {
        let of = checkpoint_root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let before: Option<PrintedSteps> = read_json(&path).ok().flatten();
        let kept = before.filter(|kept| kept.of == of);
        Self {
            path,
            kept: kept.unwrap_or(PrintedSteps { of, ..PrintedSteps::default() }),
            write_at: i64::MIN,
        }
    }

    /// What to count on from.
    pub fn course(&self) -> PrintedCourse {
        self.kept.course
    }

    /// Writes what changed, not too often. A file that cannot be written stays as it is: the next attempt counts from its own epochs.
    pub fn keep(&mut self, course: PrintedCourse, now_micros: i64) {
        if now_micros < self.write_at || course == self.kept.course {
            return;
        }
        self.write_at = now_micros.saturating_add(WRITE_EVERY_MICROS);
        self.kept.course = course;
        let bytes = serde_json::to_vec(&self.kept).unwrap_or_default();
        TempFile::write_cache(&self.path, &bytes).ok();
    }
}

#[cfg(test)]
mod tests {
    use trackway_formats::printed::{Printed, PrintedReader};

    use super::*;

    /// Proves that the next attempt of the same kind and rung gets what was kept, another one nothing, and that it is
    /// not written too often.
    #[test]
    fn the_next_attempt_of_the_rung_counts_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.json");
        let course = |text: &str| {
            let mut reader = PrintedReader::default();
            reader.push(Printed::Stdout, text.as_bytes(), |_| {});
            reader.course()
        };
        let (first, later) = (course("epoch 1 step 10 loss 1\n"), course("epoch 1 step 20 loss 1\n"));
        let read = |rung: &str| KeptCourse::read(path.clone(), Path::new(rung)).course();
        let mut kept = KeptCourse::read(path.clone(), Path::new("c/train-100%"));
        assert_eq!(kept.course(), PrintedCourse::default());
        kept.keep(first, 0);
        kept.keep(later, 1);
        assert_eq!(read("c/train-100%"), first);
        kept.keep(later, WRITE_EVERY_MICROS);
        assert_eq!(read("c/train-100%"), later);
        assert_eq!(read("c/train-1%"), PrintedCourse::default());
        std::fs::write(&path, "{\"course\": 5").unwrap();
        assert_eq!(read("c/train-100%"), PrintedCourse::default());
    }
}
