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
/// With less room than this on the disk of the home a seal failed for that, and the next command tries it again: there may be more by then.
const ROOM_BYTES_MIN: u64 = 16 << 20;
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
            Err(error) => {
                let after = match error.kind.is_passing() {
                    // A ledger that is away says nothing about the attempt: the try does not count.
                    true => before,
                    false => Some(self.failed_try(begun, before.as_ref(), &error)),
                };
                // Else what was written before the try would stay, as of a command that was killed.
                if !after.is_some_and(|after| write(&path, &after)) {
                    forget(&path);
                }
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
        let pause = if try_count <= UNFINISHED_FREE { 0.0 } else { pause_seconds(try_count, true) };
        SetAside {
            id: id.into(),
            why: "the command that tried to seal it ended before it was done".into(),
            try_count,
            first_tried_at: before.map_or(now, |before| before.first_tried_at),
            next_try_at: after(now, pause),
        }
    }

    fn failed_try(&self, begun: SetAside, before: Option<&SetAside>, error: &AppError) -> SetAside {
        let why = self.redactor.text(&error.to_string()).chars().take(WHY_CHARS_MAX).collect();
        let has_room = has_room(&self.home);
        let try_count = counted_tries(&begun, before, has_room);
        let pause = pause_seconds(try_count, has_room);
        SetAside { why, try_count, next_try_at: after(self.clock.now(), pause), ..begun }
    }

    fn set_aside_path(&self, id: &str) -> PathBuf {
        self.home.layout.set_aside_file(id)
    }
}

/// Whether a seal that failed did not fail for want of room on the disk of the home.
#[must_use]
pub fn has_room(home: &Home) -> bool {
    let disk = nix::sys::statvfs::statvfs(home.folder());
    // A file system that counts no blocks says nothing of its room.
    disk.map_or(true, |disk| {
        disk.blocks() == 0 || disk.blocks_available().saturating_mul(disk.fragment_size()) >= ROOM_BYTES_MIN
    })
}

/// The tries after one that failed. One without room says nothing about the attempt, and does not count beside others.
fn counted_tries(begun: &SetAside, before: Option<&SetAside>, has_room: bool) -> u32 {
    before.filter(|_| !has_room).map_or(begun.try_count, |before| before.try_count)
}

fn pause_seconds(try_count: u32, has_room: bool) -> f64 {
    if !has_room {
        return 0.0;
    }
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

/// Best effort: where the file cannot be written, the next command tries at once. Whether it was.
fn write(path: &std::path::Path, aside: &SetAside) -> bool {
    let Ok(text) = serde_json::to_vec_pretty(aside) else { return false };
    let folder = path.parent().unwrap_or(path);
    make_folders(folder).and_then(|()| TempFile::write_cache(path, &text)).is_ok()
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

    /// Proves that the pause between two tries grows from seconds to an hour and no further, and that on a full disk there is none.
    #[test]
    fn the_pause_is_bounded() {
        assert_eq!(pause_seconds(1, true), 10.0);
        assert_eq!(pause_seconds(3, true), 40.0);
        assert_eq!(pause_seconds(u32::MAX, true), 3600.0);
        assert_eq!(pause_seconds(3, false), 0.0);
    }

    /// Proves that tries on a full disk do not make the pause longer that follows once there is room again.
    #[test]
    fn a_try_without_room_does_not_count() {
        let at = Timestamp::from_micros(0);
        let tried = |try_count| SetAside {
            id: "a".into(),
            why: "x".into(),
            try_count,
            first_tried_at: at,
            next_try_at: at,
        };
        assert_eq!(counted_tries(&tried(5), Some(&tried(4)), true), 5);
        assert_eq!(counted_tries(&tried(5), Some(&tried(4)), false), 4);
        assert_eq!([true, false].map(|has_room| counted_tries(&tried(1), None, has_room)), [1, 1]);
    }
}
