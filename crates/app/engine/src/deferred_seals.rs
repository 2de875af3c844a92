//! Attempts and evaluations that cannot be sealed now: each has a small file in the home with the reason, how often it
//! was tried and when it is tried again. Meanwhile other commands are not affected; `trackway doctor` names them.
//!
//! A try is counted before it begins, so that one that ends the process counts too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trackway_core::{Clock as _, Timestamp};
use trackway_files::{TempFile, make_folders, unlink};

use crate::Context;
use crate::error::{AppError, ErrorKind};
use crate::home::Home;
use crate::json_file::read_if_sound;

/// The pause after the first try that failed; each further one doubles it.
const FIRST_PAUSE_SECONDS: f64 = 10.0;
/// The longest pause between two tries.
const PAUSE_SECONDS_MAX: f64 = 3600.0;
/// Unfinished tries (the command was killed) after which the next one is made at once.
const UNFINISHED_FREE: u32 = 2;
/// The longest reason that is kept, in characters.
const WHY_CHARS_MAX: usize = 2000;

/// What cannot be sealed now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAside {
    /// The attempt or the evaluation.
    pub id: String,
    /// Why the last try failed.
    pub why: String,
    /// How often it was tried.
    pub try_count: u32,
    pub first_tried_at: Timestamp,
    /// Before this no command tries again, unless it names this very run.
    pub next_try_at: Timestamp,
}

impl Context {
    /// Everything that is set aside in this home, by id.
    #[must_use]
    pub fn set_aside(&self) -> Vec<SetAside> {
        of_home(&self.home)
    }

    /// The next try is made at once.
    pub fn forget_set_aside(&self, id: &str) {
        forget(&self.set_aside_path(id));
    }

    /// Makes a try at sealing `id`, unless it is set aside until later. A try that fails or panics sets it aside; one that
    /// could not reach the ledger does not. Nothing is printed in either case, so there is nothing to answer.
    pub fn try_to_seal<T>(&self, id: &str, seal: impl FnOnce() -> Result<Option<T>, AppError>) -> Option<T> {
        let path = self.set_aside_path(id);
        let before: Option<SetAside> = read_if_sound(&path);
        let now = self.clock.now();
        if before.as_ref().is_some_and(|before| now < before.next_try_at) {
            return None;
        }
        let begun = self.begun(id, before.as_ref(), now);
        // Before the try: one that ends the process must count too.
        write(&path, &begun);
        let done = catch_unwind(AssertUnwindSafe(seal)).unwrap_or_else(|panic| {
            Err(AppError::new(ErrorKind::Fault, format!("sealing panicked: {}", message_of(&*panic))))
        });
        match done {
            Ok(done) => {
                forget(&path);
                done
            }
            Err(error) if error.kind.is_passing() => {
                match &before {
                    // A ledger that is away says nothing about the attempt: the try does not count.
                    Some(before) => write(&path, before),
                    None => forget(&path),
                }
                None
            }
            Err(error) => {
                write(&path, &self.failed_try(begun, &error));
                None
            }
        }
    }

    /// Forgets what was sealed meanwhile by another road.
    pub fn forget_sealed(&self, is_open: impl Fn(&str) -> bool) {
        for aside in self.set_aside().iter().filter(|aside| !is_open(&aside.id)) {
            forget(&self.set_aside_path(&aside.id));
        }
    }

    fn begun(&self, id: &str, before: Option<&SetAside>, now: Timestamp) -> SetAside {
        let try_count = before.map_or(1, |before| before.try_count.saturating_add(1));
        let pause = if try_count <= UNFINISHED_FREE { 0.0 } else { pause_seconds(try_count) };
        SetAside {
            id: id.into(),
            why: "the command that tried to seal it ended before it was done".into(),
            try_count,
            first_tried_at: before.map_or(now, |before| before.first_tried_at),
            next_try_at: after(now, pause),
        }
    }

    fn failed_try(&self, begun: SetAside, error: &AppError) -> SetAside {
        let why = self.redactor.text(&error.to_string()).chars().take(WHY_CHARS_MAX).collect();
        SetAside { why, next_try_at: after(self.clock.now(), pause_seconds(begun.try_count)), ..begun }
    }

    fn set_aside_path(&self, id: &str) -> PathBuf {
        self.home.layout.set_aside_file(id)
    }
}

fn pause_seconds(try_count: u32) -> f64 {
    let doublings = i32::try_from(try_count.saturating_sub(1).min(30)).unwrap_or(30);
    (FIRST_PAUSE_SECONDS * 2f64.powi(doublings)).min(PAUSE_SECONDS_MAX)
}

fn after(now: Timestamp, seconds: f64) -> Timestamp {
    Timestamp::from_micros(now.as_micros().saturating_add((seconds * 1e6) as i64))
}

/// Everything that is set aside in a home, by id; files that cannot be read are left out.
pub fn of_home(home: &Home) -> Vec<SetAside> {
    let entries = std::fs::read_dir(home.layout.set_aside()).into_iter().flatten().flatten();
    let mut found: Vec<SetAside> = entries.filter_map(|entry| read_if_sound(&entry.path())).collect();
    found.sort_by(|one, other| one.id.cmp(&other.id));
    found
}

/// Best effort: where the file cannot be written, the next command tries at once.
fn write(path: &std::path::Path, aside: &SetAside) {
    let Ok(text) = serde_json::to_vec_pretty(aside) else { return };
    let folder = path.parent().unwrap_or(path);
    let _ = make_folders(folder).and_then(|()| TempFile::write_cache(path, &text));
}

fn forget(path: &std::path::Path) {
    let _ = unlink(path);
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the pause between two tries grows from seconds to an hour and no further.
    #[test]
    fn the_pause_is_bounded() {
        assert_eq!(pause_seconds(1), 10.0);
        assert_eq!(pause_seconds(3), 40.0);
        assert_eq!(pause_seconds(u32::MAX), 3600.0);
    }
}
