//! What was seen of the writers where an attempt has its checkpoints: by file, and of processes beside the attempt by time.

use std::collections::{HashMap, HashSet, VecDeque};

use trackway_formats::writers::{OthersTime, WritersRecord};

use super::amounts::{
    Amount, Amounts, Less, OtherWrites, Span, Sufficient, added_on_disk_at_least, on_disk_at_least,
};
use super::owner::{Company, Writers};
use super::steps::TICK_NS;

/// Most files of which the writers are remembered; those that were written to longest ago are forgotten first.
const FILES_MAX: usize = 8192;
/// Most writers that are remembered of a file.
const WRITERS_MAX: usize = 8;
/// Most times of others that are remembered; the oldest are forgotten first.
const OTHERS_MAX: usize = 4096;

/// Most writes to files that are remembered; the oldest are forgotten first.
const NOTICED_MAX: usize = 4096;

/// A script gives its signs of life beside its saves, at most so long before or after them.
const SIGN_EVERY_NS: i64 = 100_000_000;

/// How a writer was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The kernel named it.
    Kernel,
    /// It had the file open.
    Open,
}

/// A writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// A process of the attempt.
    Own,
    /// Another process, as a reader sees it.
    Other(String),
    /// A process that had ended.
    Unknown,
}

/// A file that was written by a process. Times are in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenFile {
    /// Device and inode.
    pub id: (u64, u64),
    /// When it was made, where the file system says so.
    pub born_ns: Option<i64>,
    /// When it was last written to.
    pub modified_ns: i64,
    /// When it was last written to, renamed or given to another user.
    pub changed_ns: i64,
    /// Its owner.
    pub user: u32,
    /// What it takes on the disk, at most its size.
    pub bytes: u64,
    /// When an earlier state of the checkpoint was seen that was finished: what was written to the file later is this state; 0: none was.
    pub since_ns: i64,
}

impl WrittenFile {
    /// When the last of its bytes were written. A time before it was made is that of the file it was copied from.
    fn written_ns(&self) -> i64 {
        let is_copied = self.born_ns.is_some_and(|born_ns| self.modified_ns < born_ns);
        if is_copied { self.changed_ns } else { self.modified_ns }
    }

    /// Since when what was seen is of this state of it, if an earlier one was judged then.
    fn seen_since(&self, judged_ns: i64) -> i64 {
        let finished_ns = if self.written_ns() > self.since_ns { self.since_ns } else { 0 };
        judged_ns.max(finished_ns).max(self.born_ns.unwrap_or(0))
    }
}

/// What was seen of a checkpoint's writers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterEvidence {
    /// Whom the kernel named.
    pub kernel: Writers,
    /// Who had its files open.
    pub open: Writers,
    /// Who else wrote then.
    pub company: Company,
    /// What the attempt wrote then, if that is known to be less than the files have.
    pub less: Option<Less>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Sighting {
    how: How,
    who: Who,
    at_ns: i64,
}

/// Something that was written to a file, by whomever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WriteSighting {
    file: WrittenFile,
    /// What was written since is this.
    from_ns: i64,
    bytes: u64,
    is_new_file: bool,
    /// When it was seen that this state of the file was there and its writer had closed it.
    finished_ns: Option<i64>,
}

impl WriteSighting {
    /// When all of it was written: the time of a file is up to a tick before its write.
    fn written_ns(&self) -> i64 {
        let tick_ns = self.file.written_ns().saturating_add(TICK_NS);
        self.finished_ns.map_or(tick_ns, |finished_ns| finished_ns.min(tick_ns))
    }

    fn is_of(&self, file: &WrittenFile) -> bool {
        (self.file.id, self.file.born_ns) == (file.id, file.born_ns)
    }

    fn is_state(&self, file: &WrittenFile) -> bool {
        let state = |file: &WrittenFile| (file.modified_ns, file.changed_ns, file.bytes);
        self.is_of(file) && state(&self.file) == state(file)
    }
}

/// What was seen in the life of one attempt.
#[derive(Debug, Default)]
pub struct Sightings {
    files: HashMap<(u64, u64), Vec<Sighting>>,
    /// What was written in the region, oldest first.
    noticed: VecDeque<WriteSighting>,
    /// Which files are of checkpoints: they are written whole again, others may grow.
    judged: HashSet<(u64, u64)>,
    others: Vec<OthersTime>,
    /// When it began.
    since_ns: i64,
    /// The user of its processes, if a file of another one says something.
    user: Option<u32>,
    /// Until when the processes of the machine were looked at; none if they cannot be.
    looked_until_ns: Option<i64>,
    /// How much the attempt wrote by when.
    amounts: Amounts,
    /// The devices on which that counts.
    devices: Vec<u64>,
    /// Whether what is written there is in what reaches a disk.
    on_disk: bool,
}

impl Sightings {
    /// For an attempt that begins now, with processes of this user; none in a container, where users are others.
    #[must_use]
    pub fn since(since_ns: i64, user: Option<u32>) -> Self {
        Self { since_ns, user, ..Self::default() }
    }

    /// A process wrote to a file, or had it open for that.
    pub fn saw(&mut self, how: How, id: (u64, u64), who: Who, at_ns: i64) {
        if self.files.len() >= FILES_MAX && !self.files.contains_key(&id) {
            self.forget_the_older_half();
        }
        if let Who::Other(other) = &who
            && how == How::Kernel
        {
            // What it wrote, it wrote before it closed the file.
            self.wrote_beside(other, at_ns.saturating_sub(TICK_NS), at_ns);
        }
        let all = self.files.entry(id).or_default();
        all.retain(|one| (one.how, &one.who) != (how, &who));
        if all.len() == WRITERS_MAX {
            all.remove(0);
        }
        all.push(Sighting { how, who, at_ns });
    }

    fn forget_the_older_half(&mut self) {
        let last = |all: &[Sighting]| all.iter().map(|one| one.at_ns).max().unwrap_or(0);
        let mut times: Vec<i64> = self.files.values().map(|all| last(all)).collect();
        let middle = times.len() / 2;
        let (_, middle_ns, _) = times.select_nth_unstable(middle);
        let middle_ns = *middle_ns;
        self.files.retain(|_, all| last(all) >= middle_ns);
    }

    /// A process beside the attempt wrote something between these times.
    pub fn wrote_beside(&mut self, who: &str, from_ns: i64, until_ns: i64) {
        let same = self.others.iter_mut().rev().take(64).find(|one| one.who == who);
        match same {
            Some(last) if from_ns <= last.until_ns && last.from_ns <= until_ns => {
                (last.from_ns, last.until_ns) = (from_ns.min(last.from_ns), until_ns.max(last.until_ns));
            }
            _ => {
                if self.others.len() == OTHERS_MAX {
                    self.others.remove(0);
                }
                self.others.push(OthersTime { who: who.to_owned(), from_ns, until_ns });
            }
        }
    }

    /// The processes of the machine were looked at until then.
    pub fn looked(&mut self, until_ns: i64) {
        self.looked_until_ns = Some(until_ns);
    }

    /// What the attempt's processes write to these devices is counted. `on_disk`: as what reaches a disk, too.
    pub fn counts_on(&mut self, devices: Vec<u64>, on_disk: bool) {
        (self.devices, self.on_disk) = (devices, on_disk);
    }

    /// A file of the region was written or renamed before `now_ns`, by whomever. `is_finished`: its writer closed it.
    pub fn noticed(&mut self, file: WrittenFile, is_finished: bool, now_ns: i64) {
        let finished_ns = is_finished.then_some(now_ns);
        let last = self.noticed.iter_mut().rev().find(|one| one.is_of(&file));
        let is_young = file.born_ns.is_some_and(|born_ns| born_ns >= self.since_ns.saturating_sub(TICK_NS));
        let is_new_file = last.is_none() && is_young;
        let is_of_checkpoint = self.judged.contains(&file.id);
        let from_ns = last.as_ref().map_or(file.born_ns.unwrap_or(0), |last| last.file.written_ns());
        let bytes = match &last {
            Some(last) if file.bytes > last.file.bytes && !is_of_checkpoint => file.bytes - last.file.bytes,
            // How much of it is new is not known.
            None if !is_young && !is_of_checkpoint => 0,
            _ => file.bytes,
        };
        if let Some(last) = last
            && (last.file.modified_ns, last.file.bytes) == (file.modified_ns, file.bytes)
        {
            let is_known = last.finished_ns.is_some() && last.is_state(&file);
            (last.file, last.finished_ns) = (file, if is_known { last.finished_ns } else { finished_ns });
            return;
        }
        if self.noticed.len() == NOTICED_MAX {
            self.noticed.pop_front();
        }
        self.noticed.push_back(WriteSighting { file, from_ns, bytes, is_new_file, finished_ns });
    }

    /// These are files of a checkpoint.
    pub fn judges(&mut self, files: &[WrittenFile]) {
        if self.judged.len() > FILES_MAX {
            self.judged.clear();
        }
        self.judged.extend(files.iter().map(|file| file.id));
    }

    /// When this state of a file was seen to be finished.
    fn finished_ns(&self, file: &WrittenFile) -> Option<i64> {
        self.noticed.iter().rev().find(|one| one.is_state(file))?.finished_ns
    }

    /// What may have been written to files beside these between two looks, but for what only others are seen to write.
    /// What is added to a file, as to a log, counts where it is as much as half of these have.
    fn beside(&self, files: &[WrittenFile], (from_ns, until_ns): (i64, i64)) -> OtherWrites {
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let is_others = |one: &WriteSighting| {
            let all = self.files.get(&one.file.id).into_iter().flatten();
            let mut all = all.filter(|seen| seen.at_ns >= one.from_ns).peekable();
            all.peek().is_some() && all.all(|seen| matches!(seen.who, Who::Other(_)))
        };
        let counts = |one: &&WriteSighting| {
            let is_one_of_these = files.iter().any(|file| one.file.id == file.id);
            let meets = one.written_ns() >= from_ns && one.from_ns <= until_ns;
            let is_much =
                one.is_new_file || self.judged.contains(&one.file.id) || one.bytes >= bytes.div_ceil(2);
            meets && !is_one_of_these && is_much && !is_others(one)
        };
        let to_disk = |one: &WriteSighting| match one.is_new_file {
            true => on_disk_at_least(one.bytes),
            false => added_on_disk_at_least(one.bytes),
        };
        self.noticed.iter().filter(counts).fold(OtherWrites::default(), |sum, one| OtherWrites {
            bytes: sum.bytes.saturating_add(one.bytes),
            to_disk: sum.to_disk.saturating_add(to_disk(one)),
        })
    }

    /// The attempt's processes had written so much by then.
    pub fn counted(&mut self, amount: Amount) {
        self.amounts.put(amount);
    }

    /// When others wrote, for the record.
    #[must_use]
    pub fn others(&self) -> &[OthersTime] {
        &self.others
    }

    /// Until when the processes of the machine were looked at, in nanoseconds since 1970; none if they cannot be.
    #[must_use]
    pub fn looked_until_ns(&self) -> Option<i64> {
        self.looked_until_ns
    }

    /// What is known of the writers of these files. `since_ns`: what was seen before then is of an earlier state of
    /// them. `is_last`: there will be no further look.
    #[must_use]
    pub fn of(&self, files: &[WrittenFile], since_ns: i64, is_last: bool) -> WriterEvidence {
        let (mut kernel, mut open) = (Writers::default(), Writers::default());
        for file in files {
            let from_ns = file.seen_since(since_ns).saturating_sub(TICK_NS);
            let sightings = self.files.get(&file.id).into_iter().flatten();
            for seen in sightings.filter(|seen| seen.at_ns >= from_ns) {
                let writers = if seen.how == How::Kernel { &mut kernel } else { &mut open };
                match &seen.who {
                    Who::Own => writers.own = true,
                    Who::Other(who) => writers.other = Some(who.clone()),
                    Who::Unknown => writers.unknown = true,
                }
            }
        }
        let (company, sufficient) = (self.company(files, is_last), self.sufficient(files, since_ns, is_last));
        match (company, sufficient) {
            (Company::Alone, Sufficient::NotYet) if !is_last => {
                WriterEvidence { kernel, open, company: Company::NotYet, less: None }
            }
            (company, Sufficient::No(less)) => WriterEvidence { kernel, open, company, less: Some(less) },
            (company, _) => WriterEvidence { kernel, open, company, less: None },
        }
    }

    /// Whether the attempt wrote enough to have written these files, but for those that are unchanged since an earlier
    /// state. Where a file was made before it was renamed, what was written to it since counts.
    fn sufficient(&self, files: &[WrittenFile], since_ns: i64, is_last: bool) -> Sufficient {
        let is_counted = |file: &WrittenFile| file.born_ns.is_some() && self.devices.contains(&file.id.0);
        if !files.iter().all(is_counted) {
            return Sufficient::NotKnown;
        }
        let spans = files.iter().map(|file| Span {
            from_ns: file.seen_since(since_ns),
            until_ns: file.written_ns(),
            finished_ns: self.written_by_ns(file, file.written_ns()),
            bytes: file.bytes,
            is_rewritten: file.born_ns.is_some_and(|born_ns| born_ns < file.seen_since(since_ns)),
        });
        let all = spans.filter(|span| span.from_ns <= span.until_ns).reduce(|one, other| Span {
            from_ns: one.from_ns.min(other.from_ns),
            until_ns: one.until_ns.max(other.until_ns),
            finished_ns: one.finished_ns.max(other.finished_ns),
            bytes: one.bytes + other.bytes,
            is_rewritten: one.is_rewritten || other.is_rewritten,
        });
        let beside = |from_ns, until_ns| self.beside(files, (from_ns, until_ns));
        let flags = (is_last, self.on_disk);
        all.map_or(Sufficient::NotKnown, |span| self.amounts.sufficient(span, flags, beside))
    }

    /// Until when what has this time in a file was written: up to a tick later, unless it was seen to be finished before.
    fn written_by_ns(&self, file: &WrittenFile, at_ns: i64) -> i64 {
        let tick_ns = at_ns.saturating_add(TICK_NS);
        self.finished_ns(file).map_or(tick_ns, |finished_ns| finished_ns.min(tick_ns))
    }

    fn company(&self, files: &[WrittenFile], is_last: bool) -> Company {
        let Some(looked_until_ns) = self.looked_until_ns else {
            return Company::NotKnown("the processes of this machine cannot be looked at".into());
        };
        if files.iter().any(|file| self.user.is_some_and(|user| user != file.user)) {
            return Company::NotKnown("it belongs to another user".into());
        }
        let times = |file: &WrittenFile| {
            [file.modified_ns, file.changed_ns].map(|at_ns| (at_ns, self.written_by_ns(file, at_ns)))
        };
        let moments = files.iter().flat_map(times);
        // The time of a file is up to a tick before its write.
        let last = moments.clone().map(|(at_ns, _)| at_ns).max().unwrap_or(0);
        match is_last {
            true if last > looked_until_ns => Company::Ended,
            false if last.saturating_add(TICK_NS) > looked_until_ns => Company::NotYet,
            _ => company(&self.others, self.since_ns, moments).unwrap_or(Company::Alone),
        }
    }
}

/// What the recorded times of others say about writes, each between two times in nanoseconds since 1970; none: no other process wrote.
pub(crate) fn company(
    others: &[OthersTime],
    since_ns: i64,
    mut writes: impl Iterator<Item = (i64, i64)> + Clone,
) -> Option<Company> {
    if writes.clone().any(|(at_ns, _)| at_ns < since_ns.saturating_sub(TICK_NS)) {
        return Some(Company::Before);
    }
    let wrote = |(from_ns, until_ns): (i64, i64)| {
        let meets = |one: &&OthersTime| one.from_ns <= until_ns && from_ns <= one.until_ns;
        others.iter().rev().find(meets)
    };
    writes.find_map(wrote).map(|one| Company::With(one.who.clone()))
}

/// What a record of an attempt that has ended says of files with these times. `alive_until_ns`: its last sign of life.
pub(crate) fn company_in(
    record: &WritersRecord,
    (since_ns, alive_until_ns): (i64, i64),
    moments: impl Iterator<Item = i64> + Clone,
) -> Company {
    let last_ns = moments.clone().max().unwrap_or(0);
    if last_ns > lived_until(record, alive_until_ns) {
        return Company::Ended;
    }
    let writes = moments.map(|at_ns| (at_ns, at_ns.saturating_add(TICK_NS)));
    let found = company(&record.others, since_ns, writes);
    match (found, record.looked_until_ns) {
        (Some(found), _) => found,
        (None, Some(until_ns)) if last_ns <= until_ns => Company::Alone,
        (None, Some(_)) => {
            Company::NotKnown("the processes of its machine were not looked at any more".into())
        }
        (None, None) => Company::NotKnown("the processes of its machine could not be looked at".into()),
    }
}

/// Until when an attempt can have written: a little after its last sign of life, which it gives beside its saves.
pub(crate) fn lived_until(record: &WritersRecord, alive_until_ns: i64) -> i64 {
    record.looked_until_ns.unwrap_or(0).max(alive_until_ns.saturating_add(SIGN_EVERY_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn file(inode: u64, at: i64) -> WrittenFile {
        let (modified_ns, changed_ns) = (at * MS, at * MS);
        let (born_ns, bytes) = (Some(at * MS), 4_000);
        WrittenFile { id: (1, inode), born_ns, modified_ns, changed_ns, user: 0, bytes, since_ns: 0 }
    }

    /// Proves that a file is the attempt's by one sighting of one of its files, that what was seen of an earlier state
    /// or an earlier file of the same number does not count, and that another writer is found beside an own one.
    #[test]
    fn only_sightings_of_this_state_count() {
        let mut seen = Sightings::since(0, Some(0));
        seen.looked(10_000 * MS);
        seen.saw(How::Open, (1, 5), Who::Own, 100 * MS);
        let own = |files: &[WrittenFile], since| seen.of(files, since * MS, false).open.own;
        assert!(own(&[file(5, 90), file(6, 95)], 0));
        assert!(!own(&[file(5, 90)], 200), "an earlier state of it");
        assert!(!own(&[file(5, 150)], 0), "an earlier file");
        let mut both = Sightings::since(0, Some(0));
        both.saw(How::Kernel, (1, 5), Who::Own, 100 * MS);
        both.saw(How::Kernel, (1, 5), Who::Other("b".into()), 101 * MS);
        let kernel = both.of(&[file(5, 90)], 0, false).kernel;
        assert!(kernel.own && kernel.other.as_deref() == Some("b"));
    }

    /// Proves that an attempt is alone only where it was looked at since, that a process which wrote at the same time
    /// is named, and that what is older than the attempt or belongs to another user is not its by that.
    #[test]
    fn company_is_who_wrote_at_the_same_time() {
        let mut seen = Sightings::since(50 * MS, Some(0));
        let company = |seen: &Sightings, file| seen.of(&[file], 0, false).company;
        assert!(matches!(company(&seen, file(1, 100)), Company::NotKnown(why) if why.contains("looked")));
        seen.looked(90 * MS);
        assert_eq!(company(&seen, file(1, 100)), Company::NotYet);
        assert_eq!(seen.of(&[file(1, 100)], 0, true).company, Company::Ended, "after the last look");
        seen.wrote_beside("b", 200 * MS, 250 * MS);
        seen.wrote_beside("b", 250 * MS, 300 * MS);
        assert_eq!(seen.others().len(), 1, "one time without a gap");
        // A count that covers a time which was known in part.
        seen.wrote_beside("c", 600 * MS, 601 * MS);
        seen.wrote_beside("c", 500 * MS, 700 * MS);
        seen.looked(1_000 * MS);
        for (at, expected) in [
            (150, Company::Alone),
            (200, Company::With("b".into())),
            (400, Company::Alone),
            (510, Company::With("c".into())),
            (690, Company::With("c".into())),
        ] {
            assert_eq!(company(&seen, file(1, at)), expected, "written at {at}");
        }
        assert_eq!(company(&seen, file(1, 10)), Company::Before);
        let others = WrittenFile { user: 7, ..file(1, 400) };
        assert!(matches!(company(&seen, others), Company::NotKnown(why) if why.contains("user")));
        let moved = WrittenFile { changed_ns: 220 * MS, ..file(1, 150) };
        assert_eq!(company(&seen, moved), Company::With("b".into()), "renamed then");
    }

    /// Proves that a file is not the attempt's by being alone where the attempt wrote less than it has, also if it was
    /// moved there later, that it is waited for the look that shows it, and that nothing follows on a device where
    /// nothing is counted.
    #[test]
    fn an_attempt_that_wrote_less_did_not_write_it() {
        let mut seen = Sightings::since(0, Some(0));
        seen.counts_on(vec![1], false);
        let count = |at: i64, bytes| {
            let (from_ns, until_ns) = (at * MS, at * MS);
            Amount { from_ns, until_ns, chars: bytes, to_disk: 0, is_whole: true, series: 0 }
        };
        seen.counted(count(50, 0));
        seen.looked(10_000 * MS);
        let of = |seen: &Sightings, file, is_last| {
            let found = seen.of(&[file], 0, is_last);
            (found.company, found.less)
        };
        assert_eq!(of(&seen, file(1, 100), false), (Company::NotYet, None));
        assert_eq!(of(&seen, file(1, 100), true), (Company::Alone, None), "nothing is looked at later");
        seen.counted(count(150, 90));
        seen.counted(count(250, 5_000));
        let less = Some(Less { wrote: 90, bytes: 4_000, beside: 0 });
        assert_eq!(of(&seen, file(1, 100), false), (Company::Alone, less));
        let moved = WrittenFile { changed_ns: 240 * MS, ..file(1, 100) };
        assert_eq!(of(&seen, moved, false), (Company::Alone, less), "moved there later");
        assert_eq!(of(&seen, file(1, 200), false), (Company::Alone, None));
        let elsewhere = WrittenFile { id: (2, 1), ..file(1, 100) };
        assert_eq!(of(&seen, elsewhere, false), (Company::Alone, None));
        let unborn = WrittenFile { born_ns: None, ..file(1, 100) };
        assert_eq!(of(&seen, unborn, false), (Company::Alone, None));
        // With the time of the file that it was copied from.
        let copied = WrittenFile { modified_ns: 10 * MS, changed_ns: 200 * MS, ..file(1, 180) };
        assert_eq!(of(&seen, copied, false).1, None);
    }

    /// Proves that of two files between the same looks the attempt's own pays for one only, so that neither is its own;
    /// that what only another was seen to write needs no payment, nor what is added to a log; and that of a file that
    /// is written again all of it does.
    #[test]
    fn a_save_pays_for_one_file() {
        let count = |at: i64, chars| {
            let (from_ns, until_ns) = (at * MS, at * MS);
            Amount { from_ns, until_ns, chars, to_disk: 0, is_whole: true, series: 0 }
        };
        let seen = |beside: &[WrittenFile]| {
            let mut seen = Sightings::since(0, Some(0));
            seen.counts_on(vec![1], false);
            [count(50, 0), count(150, 4_030), count(250, 8_060)]
                .into_iter()
                .for_each(|one| seen.counted(one));
            seen.judges(&[file(7, 0)]);
            beside.iter().for_each(|file| seen.noticed(*file, true, 149 * MS));
            seen.looked(10_000 * MS);
            seen
        };
        let less = |seen: &Sightings, at| seen.of(&[file(1, at)], 0, false).less.map(|less| less.beside);
        let mut both = seen(&[file(2, 110)]);
        assert_eq!((less(&both, 100), less(&both, 200)), (Some(4_000), None));
        both.saw(How::Open, (1, 2), Who::Other("b".into()), 111 * MS);
        assert_eq!(less(&both, 100), None);
        let born = |inode, at, bytes| WrittenFile { born_ns: Some(10 * MS), bytes, ..file(inode, at) };
        let log = seen(&[born(2, 20, 9_000), born(2, 110, 9_100)]);
        assert_eq!(less(&log, 100), None);
        let old = seen(&[WrittenFile { born_ns: Some(-90 * MS), ..file(2, 110) }]);
        assert_eq!(less(&old, 100), None, "how much of it is new is not known");
        let again = seen(&[born(7, 20, 4_000), born(7, 110, 4_001)]);
        assert_eq!(less(&again, 100), Some(4_001));
        assert_eq!(seen(&[file(1, 100)]).of(&[file(1, 100)], 0, false).less, None, "the file itself");
    }

    /// Proves that a file that was seen to be finished is no longer written after that: what another writes within a
    /// tick of it, and what is counted then, is not of it; and that this holds for no other state of it.
    #[test]
    fn a_finished_file_is_not_written_later() {
        let mut seen = Sightings::since(0, Some(0));
        seen.counts_on(vec![1], false);
        let count = |at: i64, chars| {
            let (from_ns, until_ns) = (at * MS, at * MS);
            Amount { from_ns, until_ns, chars, to_disk: 0, is_whole: true, series: 0 }
        };
        [count(99, 0), count(102, 4_000), count(150, 4_000)].into_iter().for_each(|one| seen.counted(one));
        seen.wrote_beside("b", 102 * MS, 104 * MS);
        seen.looked(10_000 * MS);
        let of = |seen: &Sightings| {
            let found = seen.of(&[file(1, 100)], 0, false);
            (found.company, found.less)
        };
        assert_eq!(of(&seen), (Company::With("b".into()), None));
        seen.noticed(file(1, 100), true, 101 * MS);
        seen.noticed(file(2, 103), true, 104 * MS);
        assert_eq!(of(&seen), (Company::Alone, None), "the other file is not beside it");
        seen.noticed(WrittenFile { changed_ns: 102 * MS, ..file(1, 100) }, false, 103 * MS);
        assert_eq!(of(&seen).0, Company::With("b".into()), "it was renamed since");
    }

    /// Proves that of a file which is written over in place counts what was seen and written since an earlier state of
    /// it was finished, and of one that is unchanged since then what was seen before.
    #[test]
    fn a_state_in_place_begins_when_the_one_before_was_finished() {
        let mut seen = Sightings::since(0, Some(0));
        seen.counts_on(vec![1], false);
        let count = |at: i64, bytes| {
            let (from_ns, until_ns) = (at * MS, at * MS);
            Amount { from_ns, until_ns, chars: bytes, to_disk: 0, is_whole: true, series: 0 }
        };
        for (at, bytes) in [(50, 0), (150, 4_000), (250, 4_090), (400, 8_090)] {
            seen.counted(count(at, bytes));
        }
        seen.saw(How::Open, (1, 1), Who::Own, 100 * MS);
        seen.looked(10_000 * MS);
        let again = |at: i64, since: i64| WrittenFile {
            modified_ns: at * MS,
            changed_ns: at * MS,
            since_ns: since * MS,
            ..file(1, 90)
        };
        let of = |file: WrittenFile| {
            let found = seen.of(&[file], 0, false);
            (found.open.own, found.less)
        };
        let less = Some(Less { wrote: 90, bytes: 4_000, beside: 0 });
        assert_eq!(of(again(100, 0)), (true, None));
        assert_eq!(of(again(200, 160)), (false, less), "another wrote it");
        assert_eq!(of(again(300, 260)), (false, None), "it was written again");
        assert_eq!(of(again(100, 160)), (true, None), "a file beside it changed");
        assert_eq!(seen.of(&[again(200, 0)], 160 * MS, false).less, less, "the one before was judged");
    }

    /// Proves that what was written after the last sign of life of an attempt is not its own, what was written after
    /// the last look at the machine is not known, and that before that it was alone.
    #[test]
    fn a_record_says_nothing_of_what_came_after_it() {
        let record = WritersRecord { looked_until_ns: Some(1_000 * MS), ..WritersRecord::default() };
        let at = |ms: i64| company_in(&record, (0, 3_000 * MS), [ms * MS].into_iter());
        assert_eq!((at(900), at(3_200)), (Company::Alone, Company::Ended));
        assert!(matches!(at(2_900), Company::NotKnown(why) if why.contains("any more")));
        let unseen = company_in(&WritersRecord::default(), (0, 3_000 * MS), [MS].into_iter());
        assert!(matches!(unseen, Company::NotKnown(why) if why.contains("could not")));
    }

    /// Proves that of many files those that were written to longest ago are forgotten.
    #[test]
    fn memory_is_bounded() {
        let mut seen = Sightings::since(0, None);
        for inode in 0..=FILES_MAX as u64 {
            seen.saw(How::Kernel, (1, inode), Who::Own, 1 + inode as i64);
        }
        assert_eq!(seen.files.len(), FILES_MAX / 2 + 1);
        assert!(!seen.files.contains_key(&(1, 0)) && seen.files.contains_key(&(1, FILES_MAX as u64)));
    }
}
