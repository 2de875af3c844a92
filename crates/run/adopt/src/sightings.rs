//! What was seen of the writers where an attempt has its checkpoints: by file, and of processes beside the attempt by time.

use std::collections::HashMap;

use trackway_formats::writers::{OthersTime, WritersRecord};

use crate::amounts::{Amount, Amounts, Less, Span, Sufficient};
use crate::owner::{Company, Writers};
use crate::steps::TICK_NS;

/// Most files of which the writers are remembered; those that were written to longest ago are forgotten first.
const FILES_MAX: usize = 8192;
/// Most writers that are remembered of a file.
const WRITERS_MAX: usize = 8;
/// Most times of others that are remembered; the oldest are forgotten first.
const OTHERS_MAX: usize = 4096;

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
}

impl WrittenFile {
    /// When the last of its bytes were written. A time before it was made is that of the file it was copied from.
    fn written_ns(&self) -> i64 {
        let is_copied = self.born_ns.is_some_and(|born_ns| self.modified_ns < born_ns);
        if is_copied { self.changed_ns } else { self.modified_ns }
    }
}

/// What was seen of a checkpoint's writers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
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

/// What was seen in the life of one attempt.
#[derive(Debug, Default)]
pub struct Sightings {
    files: HashMap<(u64, u64), Vec<Sighting>>,
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

    /// What the attempt's processes write is counted as it reaches these devices.
    pub fn counts_on(&mut self, devices: Vec<u64>) {
        self.devices = devices;
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

    /// What is known of the writers of these files. `since_ns`: what was seen before then is of an earlier state of them. `is_last`: there will be no
    /// further look.
    #[must_use]
    pub fn of(&self, files: &[WrittenFile], since_ns: i64, is_last: bool) -> Seen {
        let (mut kernel, mut open) = (Writers::default(), Writers::default());
        for file in files {
            let from_ns = since_ns.max(file.born_ns.unwrap_or(0)).saturating_sub(TICK_NS);
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
        let (company, sufficient) = (self.company(files, is_last), self.sufficient(files));
        match (company, sufficient) {
            (Company::Alone, Sufficient::NotYet) if !is_last => {
                Seen { kernel, open, company: Company::NotYet, less: None }
            }
            (company, Sufficient::No(less)) => Seen { kernel, open, company, less: Some(less) },
            (company, _) => Seen { kernel, open, company, less: None },
        }
    }

    /// Whether the attempt wrote enough to have written these files. Where a file was made before it was renamed, what was written to it since counts.
    fn sufficient(&self, files: &[WrittenFile]) -> Sufficient {
        let is_counted = |file: &WrittenFile| self.devices.contains(&file.id.0);
        let born: Option<Vec<i64>> =
            files.iter().map(|file| file.born_ns.filter(|_| is_counted(file))).collect();
        let Some(from_ns) = born.and_then(|born| born.into_iter().min()) else {
            return Sufficient::NotKnown;
        };
        let until_ns = files.iter().map(WrittenFile::written_ns).max().unwrap_or(from_ns);
        let bytes = files.iter().map(|file| file.bytes).sum();
        self.amounts.sufficient(Span { from_ns, until_ns, bytes })
    }

    fn company(&self, files: &[WrittenFile], is_last: bool) -> Company {
        let Some(looked_until_ns) = self.looked_until_ns else {
            return Company::NotKnown("the processes of this machine cannot be looked at".into());
        };
        if files.iter().any(|file| self.user.is_some_and(|user| user != file.user)) {
            return Company::NotKnown("it belongs to another user".into());
        }
        let moments = files.iter().flat_map(|file| [file.modified_ns, file.changed_ns]);
        // The time of a file is up to a tick before its write.
        let last = moments.clone().max().unwrap_or(0);
        match is_last {
            true if last > looked_until_ns => Company::Ended,
            false if last.saturating_add(TICK_NS) > looked_until_ns => Company::NotYet,
            _ => company(&self.others, self.since_ns, moments).unwrap_or(Company::Alone),
        }
    }
}

/// What the recorded times of others say about these moments in nanoseconds since 1970; none: no other process wrote.
pub(crate) fn company(
    others: &[OthersTime],
    since_ns: i64,
    mut moments: impl Iterator<Item = i64> + Clone,
) -> Option<Company> {
    if moments.clone().any(|at_ns| at_ns < since_ns.saturating_sub(TICK_NS)) {
        return Some(Company::Before);
    }
    let wrote = |at_ns: i64| {
        let meets = |one: &&OthersTime| one.from_ns <= at_ns + TICK_NS && at_ns - TICK_NS <= one.until_ns;
        others.iter().rev().find(meets)
    };
    moments.find_map(wrote).map(|one| Company::With(one.who.clone()))
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
    let found = company(&record.others, since_ns, moments);
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
        WrittenFile { id: (1, inode), born_ns: Some(at * MS), modified_ns, changed_ns, user: 0, bytes: 4_000 }
    }

    /// Proves that a file is the attempt's by one sighting of one of its files, that what was seen of an earlier state or an earlier file of the same number
    /// does not count, and that another writer is found beside an own one.
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

    /// Proves that an attempt is alone only where it was looked at since, that a process which wrote at the same time is named, and that what is older than the
    /// attempt or belongs to another user is not its by that.
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

    /// Proves that a file is not the attempt's by being alone where the attempt wrote less than it has, also if it was moved there later, that it is waited
    /// for the look that shows it, and that nothing follows on a device where nothing is counted.
    #[test]
    fn an_attempt_that_wrote_less_did_not_write_it() {
        let mut seen = Sightings::since(0, Some(0));
        seen.counts_on(vec![1]);
        let count = |at: i64, bytes| {
            let (from_ns, until_ns) = (at * MS, at * MS);
            Amount { from_ns, until_ns, bytes, is_whole: true, series: 0 }
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
        let less = Some(Less { wrote: 90, bytes: 4_000 });
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

    /// Proves that what was written after the last sign of life of an attempt is not its own, what was written after the last look at the machine is not
    /// known, and that before that it was alone.
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
