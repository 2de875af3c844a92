//! Deletes what retention does not keep: records it in the log first, then removes the files.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use trackway_core::Timestamp;
use trackway_store::Writer;

use crate::error::{CheckpointError, Result};
use crate::history::entry::Body;
use crate::history::{CommitRecord, History};
use crate::reading::view::CheckpointView;
use crate::retention::{Age, MIN_KEPT, Retention, RetentionPlan, plan};

/// Applies retention to a root, and remembers what it verified: a commit is read back once, and again only when its
/// files were touched since.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    verified: BTreeMap<u64, Vec<FileMark>>,
}

/// What changes when a file is written again: its inode, its size and the time of its last write.
type FileMark = (u64, u64, i64, i64);

/// What is deleted.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RetentionDone {
    pub plan: RetentionPlan,
    /// Numbers whose files were removed.
    pub removed: Vec<u64>,
    /// Commits found not to verify and marked suspect.
    pub suspects: Vec<u64>,
    /// Why nothing was deleted, when nothing was.
    pub refused: Option<String>,
}

impl Keeper {
    /// Deletes what `policy` does not keep. Does nothing unless [`MIN_KEPT`] that stay verify: those that do not are
    /// marked suspect, and the next ones take their place.
    pub fn apply(
        &mut self,
        view: &mut CheckpointView,
        writer: Writer<'_>,
        policy: &Retention,
        now: Timestamp,
        age: Option<Age>,
    ) -> Result<RetentionDone> {
        let mut done = RetentionDone::default();
        view.refresh()?;
        loop {
            // Planned in each turn: one that was marked suspect does not count among those that stay.
            done.plan = plan(view.history(), policy, now, age);
            let leftover = leftovers(view.history(), age);
            if done.plan.retire.is_empty() && leftover.is_empty() {
                return Ok(done);
            }
            match self.unverified(view, &done.plan)? {
                Verdict::Enough => break,
                Verdict::TooFew => {
                    done.refused = Some(format!("fewer than {MIN_KEPT} of the remaining checkpoints verify"));
                    done.plan.retire.clear();
                    return Ok(done);
                }
                Verdict::Damaged { number, why } => {
                    append(view, writer, |_| Some(Body::suspect(number, &why)))?;
                    done.suspects.push(number);
                }
            }
        }
        self.retire_and_delete(view, writer, policy, now, age, &mut done)?;
        Ok(done)
    }

    fn retire_and_delete(
        &self,
        view: &mut CheckpointView,
        writer: Writer<'_>,
        policy: &Retention,
        now: Timestamp,
        age: Option<Age>,
        done: &mut RetentionDone,
    ) -> Result<()> {
        let left = leftovers(view.history(), age);
        let (gone, there): (Vec<u64>, Vec<u64>) = left.into_iter().partition(|number| is_gone(view, *number));
        // Before the entry that calls them swept: after it they are never looked at again.
        sync_above(view, &gone)?;
        // Decided again in knowledge of every entry before it: a pin that was added meanwhile is seen. What was retired
        // before is named again, because an entry that was merely read may not be durable, and this one makes it so.
        let mut retired = RetentionPlan::default();
        append(view, writer, |history| {
            retired = plan(history, policy, now, age);
            // This plan may keep others than those that were read.
            if self.verified_in(history, &retired) < MIN_KEPT {
                retired.retire.clear();
            }
            let again = there.iter().filter(|number| history.commit(**number).is_some());
            let commits: Vec<u64> = retired.retire.keys().chain(again).copied().collect();
            (!commits.is_empty() || !there.is_empty() || !gone.is_empty())
                .then(|| Body::Retire { commits, swept: gone.clone() })
        })?;
        done.plan = retired;
        // After the entry: no resume may choose a commit whose files are half gone.
        for number in there.iter().chain(done.plan.retire.keys()) {
            remove_files(view, *number)?;
            done.removed.push(*number);
        }
        Ok(())
    }

    /// Whether enough of what stays verifies, reading what this keeper has not read yet, newest first.
    fn unverified(&mut self, view: &CheckpointView, plan: &RetentionPlan) -> Result<Verdict> {
        let mut found = 0;
        for number in whole_enough(view.history()).filter(|number| plan.keep.contains_key(number)) {
            if found == MIN_KEPT {
                break;
            }
            let marks = marks(view, number);
            if self.verified.get(&number) != Some(&marks) {
                // Until it is read to its end: an error on the way must not leave it verified.
                self.verified.remove(&number);
                match view.try_load(number) {
                    Ok(_) => drop(self.verified.insert(number, marks)),
                    Err(defect) if defect.is_damage() => {
                        return Ok(Verdict::Damaged { number, why: defect.to_string() });
                    }
                    Err(defect) => {
                        // A disk that does not answer proves no damage: nothing is marked, and nothing deleted.
                        let step = view.commit_step(number)?;
                        return Err(CheckpointError::Damaged { step, defect });
                    }
                }
            }
            found += 1;
        }
        Ok(if found >= MIN_KEPT { Verdict::Enough } else { Verdict::TooFew })
    }

    fn verified_in(&self, history: &History, plan: &RetentionPlan) -> usize {
        let kept = whole_enough(history).filter(|number| plan.keep.contains_key(number));
        kept.filter(|number| self.verified.contains_key(number)).count()
    }
}

/// What must be read before anything else is deleted, in this order: what a resume could take, then what is unsafe.
fn whole_enough(history: &History) -> impl Iterator<Item = u64> + use<> {
    history.live_chain().into_iter().chain(history.unsafe_commits())
}

/// The marks of the files of a commit, by name.
fn marks(view: &CheckpointView, number: u64) -> Vec<FileMark> {
    let Some(record) = view.history().commit(number) else { return Vec::new() };
    let entries = std::fs::read_dir(view.root().join(record.folder())).into_iter().flatten();
    let mut found: Vec<_> = entries.flatten().map(|entry| (entry.file_name(), entry.metadata())).collect();
    found.sort_by(|left, right| left.0.cmp(&right.0));
    let mark = |metadata: std::fs::Metadata| {
        (metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec())
    };
    found.into_iter().filter_map(|(_, metadata)| metadata.ok().map(mark)).collect()
}

/// Whether enough checkpoints stay that are whole.
pub(crate) enum Verdict {
    Enough,
    TooFew,
    Damaged { number: u64, why: String },
}

/// Numbers whose files may be removed: of retired commits, of abandoned saves, and of what fenced epochs left behind,
/// the last only when it is old enough: its writer may not yet know that it is fenced.
pub(crate) fn leftovers(history: &History, age: Option<Age>) -> Vec<u64> {
    let retired = history.commits().filter(|(_, record)| record.retired && !record.swept);
    let abandoned = history.begun().filter(|(_, record)| {
        let old = age.is_some_and(|age| age.has_passed(&record.at));
        !record.swept && (record.abandoned.is_some() || (history.is_abandoned(record) && old))
    });
    retired.map(|(number, _)| number).chain(abandoned.map(|(number, _)| number)).collect()
}

/// Where the files of a commit, or of something begun, are; `None`: a live checkpoint is there, or nothing is known.
fn folder_of(view: &CheckpointView, number: u64) -> Option<PathBuf> {
    let history = view.history();
    let committed = history.commit(number).map(CommitRecord::folder);
    let begun = || history.begun().find(|(begun, _)| *begun == number).map(|(_, it)| &*it.body.object_prefix);
    let prefix = committed.or_else(begun)?;
    (!history.prefix_is_live(prefix)).then(|| view.root().join(prefix))
}

fn is_gone(view: &CheckpointView, number: u64) -> bool {
    folder_of(view, number).is_none_or(|folder| !folder.exists())
}

/// Makes the removal of folders durable, also of those that other processes removed: what is recorded as swept is never
/// looked at again.
fn sync_above(view: &CheckpointView, gone: &[u64]) -> Result<()> {
    let folders = gone.iter().filter_map(|number| folder_of(view, *number));
    let mut above: BTreeSet<PathBuf> =
        folders.filter_map(|folder| Some(folder.parent()?.to_owned())).collect();
    above.retain(|folder| folder.exists());
    if !gone.is_empty() {
        above.insert(view.root().to_owned());
    }
    for folder in above {
        view.sync_folder(&folder)?;
    }
    Ok(())
}

/// Removes the files of a retired commit or of something begun, durably, unless a live checkpoint has them too.
fn remove_files(view: &CheckpointView, number: u64) -> Result<()> {
    let Some(folder) = folder_of(view, number).filter(|folder| folder.exists()) else { return Ok(()) };
    view.remove_folder(&folder).map_err(CheckpointError::storage("delete", &folder))?;
    let step_folder = folder.parent().unwrap_or(view.root());
    // Before it may be called swept: a power cut would bring the files back.
    view.sync_folder(step_folder)?;
    // The folder of the step is deleted with its last checkpoint; while it has another, this fails, and that is right.
    let _ = view.owned(step_folder).and_then(|owned| owned.remove_if_empty(step_folder));
    Ok(())
}

/// Adds the entry that `decide` returns for the state.
pub(crate) fn append(
    view: &mut CheckpointView,
    writer: Writer<'_>,
    mut decide: impl FnMut(&History) -> Option<Body>,
) -> Result<Option<u64>> {
    view.log.append(writer, |history| Ok::<_, CheckpointError>(decide(history)))
}
