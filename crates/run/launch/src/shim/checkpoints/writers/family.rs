//! Which processes belong to the attempt: below the shim, or with the attempt in their environment, such as those in a container.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use trackway_formats::Variable;

use crate::process::{ProcessIdentity, ProcessStat};

/// Processes above a process that are looked at.
const PARENTS_MAX: usize = 64;
/// Processes that are remembered; above it those that have ended are forgotten.
const KNOWN_MAX: usize = 16_384;

/// An environment of so many bytes is read at once: the kernel does not say how long it is.
const ENVIRONMENT_BYTES: usize = 8 << 10;

/// What a process is to the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::shim) enum Kin {
    /// It belongs to it.
    Own,
    /// It is Trackway's own: a shim or a supervisor, of this run or another.
    Trackway,
    /// The run was started below it: the shell or the terminal that waits for it.
    Ancestor,
    /// None of these, as a reader sees it.
    Stranger(String),
}

#[derive(Debug, Clone)]
struct KnownProcess {
    start_ticks: u64,
    name: String,
    kin: Kin,
}

/// The main process of the attempt, once there is one: it may have ended before what it wrote is looked at.
pub(in crate::shim) type MainProcess = Arc<AtomicI32>;

/// What is known of processes.
#[derive(Debug)]
pub(in crate::shim) struct Family {
    shim: i32,
    main: MainProcess,
    attempt: String,
    ancestors: BTreeSet<ProcessIdentity>,
    program: Option<(u64, u64)>,
    known: HashMap<i32, KnownProcess>,
}

impl Family {
    /// Of the shim that calls it. `outside`: the process that is the attempt, if the shim did not start it.
    pub fn of_this_process(attempt: String, outside: Option<ProcessIdentity>, main: MainProcess) -> Self {
        let shim = std::process::id() as i32;
        let above = read(shim).map(|stat| parents(&stat, &read)).unwrap_or_default();
        let ancestors = above.iter().map(ProcessStat::identity).collect();
        let program = program(shim);
        let mut family = Self { shim, main, attempt, ancestors, program, known: HashMap::new() };
        if let Some(identity) = outside
            && let Ok(Some(stat)) = ProcessStat::read(identity.pid)
            && identity.matches(&stat)
        {
            let known = KnownProcess { start_ticks: stat.start_ticks, name: stat.name, kin: Kin::Own };
            family.known.insert(stat.pid, known);
        }
        family
    }

    /// The same, of another shim.
    #[cfg(test)]
    pub fn below(self, shim: i32) -> Self {
        Self { shim, ..self }
    }

    /// What a process is. None: it has ended, and was never seen before.
    pub fn kin(&mut self, pid: i32) -> Option<Kin> {
        match read(pid) {
            Some(stat) => Some(self.kin_of(&stat)),
            None if pid == self.main.load(Ordering::SeqCst) => Some(Kin::Own),
            None => self.known.get(&pid).map(|known| known.kin.clone()),
        }
    }

    /// What a process is that was just looked at.
    pub fn kin_of(&mut self, stat: &ProcessStat) -> Kin {
        self.kin_by(stat, &read)
    }

    /// The same of one of the processes that were looked at together: those above it are not read again.
    pub fn kin_among(&mut self, stat: &ProcessStat, all: &HashMap<i32, &ProcessStat>) -> Kin {
        self.kin_by(stat, &|pid| all.get(&pid).copied().cloned().or_else(|| read(pid)))
    }

    fn kin_by(&mut self, stat: &ProcessStat, read: &dyn Fn(i32) -> Option<ProcessStat>) -> Kin {
        let is_same =
            |known: &&KnownProcess| known.start_ticks == stat.start_ticks && known.name == stat.name;
        if let Some(known) = self.known.get(&stat.pid).filter(is_same) {
            return known.kin.clone();
        }
        let kin = self.find(stat, read);
        // A process that has ended shows neither its program nor its environment.
        if !stat.has_ended() || kin == Kin::Own {
            let known =
                KnownProcess { start_ticks: stat.start_ticks, name: stat.name.clone(), kin: kin.clone() };
            self.known.insert(stat.pid, known);
        }
        kin
    }

    fn find(&self, stat: &ProcessStat, read: &dyn Fn(i32) -> Option<ProcessStat>) -> Kin {
        if stat.pid == self.shim {
            return Kin::Trackway;
        }
        let is_own = |pid: i32, start_ticks: u64| {
            self.known
                .get(&pid)
                .is_some_and(|known| known.kin == Kin::Own && known.start_ticks == start_ticks)
        };
        let above = parents(stat, read);
        let is_below = stat.parent == self.shim
            || is_own(stat.pid, stat.start_ticks)
            || above.iter().any(|one| one.pid == self.shim || is_own(one.pid, one.start_ticks));
        if is_below {
            return Kin::Own;
        }
        let attempt = attempt_of(stat.pid);
        if attempt.as_ref() == Some(&self.attempt) {
            return Kin::Own;
        }
        if self.ancestors.contains(&stat.identity()) {
            return Kin::Ancestor;
        }
        let program = program(stat.pid);
        if stat.name.starts_with("trackway") || program.is_some() && program == self.program {
            return Kin::Trackway;
        }
        let of = attempt.map(|attempt| format!(" of attempt {attempt}")).unwrap_or_default();
        Kin::Stranger(format!("process {} (`{}`){of}", stat.pid, stat.name))
    }

    /// The living processes of the attempt that are known.
    pub fn own(&self) -> Vec<i32> {
        self.known.iter().filter(|(_, known)| known.kin == Kin::Own).map(|(pid, _)| *pid).collect()
    }

    /// Forgets processes that are not among these; those of the attempt only if there are very many.
    pub fn keep(&mut self, living: &BTreeSet<i32>) {
        let is_full = self.known.len() > KNOWN_MAX;
        self.known.retain(|pid, known| living.contains(pid) || known.kin == Kin::Own && !is_full);
    }
}

fn read(pid: i32) -> Option<ProcessStat> {
    ProcessStat::read(pid).ok().flatten()
}

/// The processes above one.
fn parents(stat: &ProcessStat, read: &dyn Fn(i32) -> Option<ProcessStat>) -> Vec<ProcessStat> {
    let mut above: Vec<ProcessStat> = Vec::new();
    let mut parent = stat.parent;
    while above.len() < PARENTS_MAX
        && parent > 1
        && let Some(stat) = read(parent)
    {
        parent = stat.parent;
        above.push(stat);
    }
    above
}

/// The program that a process runs, by device and inode.
fn program(pid: i32) -> Option<(u64, u64)> {
    let found = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((found.dev(), found.ino()))
}

/// The attempt that a process has in its environment.
fn attempt_of(pid: i32) -> Option<String> {
    let mut environment = Vec::with_capacity(ENVIRONMENT_BYTES);
    File::open(format!("/proc/{pid}/environ")).ok()?.read_to_end(&mut environment).ok()?;
    let mut entries = environment.split(|byte| *byte == 0);
    let name = Variable::Attempt.as_str().as_bytes();
    let value = entries.find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Proves that a child is the attempt's also when it has ended, that a process above is none of its writers, and
    /// that this process is Trackway's.
    #[test]
    fn processes_have_their_places() {
        let mut family = Family::of_this_process("att_x".into(), None, MainProcess::default());
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id() as i32;
        assert_eq!(family.kin(pid), Some(Kin::Own));
        assert_eq!(family.own(), [pid]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(family.kin(pid), Some(Kin::Own), "it is remembered");
        let me = std::process::id() as i32;
        assert_eq!(family.kin(me), Some(Kin::Trackway));
        if let Some(parent) = parents(&read(me).unwrap(), &read).first() {
            assert_eq!(family.kin(parent.pid), Some(Kin::Ancestor));
        }
        let mut other =
            Family { shim: 1, ..Family::of_this_process("att_x".into(), None, MainProcess::default()) };
        let mut stranger = Command::new("sleep").arg("60").env("TRACKWAY_ATTEMPT", "att_y").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        let kin = other.kin(stranger.id() as i32);
        assert!(matches!(&kin, Some(Kin::Stranger(who)) if who.ends_with("of attempt att_y")), "{kin:?}");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert_eq!(family.kin(-1), None);
    }

    /// Proves that of processes which were looked at together those above one are known without another look: here none
    /// of them is there any more.
    #[test]
    fn the_processes_above_are_not_read_again() {
        let mut family = Family::of_this_process("att_x".into(), None, MainProcess::default());
        let me = read(std::process::id() as i32).unwrap();
        let of = |pid: i32, parent: i32| ProcessStat { pid, parent, ..me.clone() };
        let all = [of(i32::MAX, i32::MAX - 1), of(i32::MAX - 1, i32::MAX - 2), of(i32::MAX - 2, me.pid)];
        let by_number: HashMap<i32, &ProcessStat> = all.iter().map(|stat| (stat.pid, stat)).collect();
        assert_eq!(family.kin_among(&all[0], &by_number), Kin::Own);
        let other = of(i32::MAX - 3, i32::MAX - 4);
        assert!(matches!(family.kin_among(&other, &by_number), Kin::Stranger(_) | Kin::Trackway));
    }

    /// Proves that the main process belongs to the attempt though it ended before it was looked at.
    #[test]
    fn the_main_process_is_known_after_its_end() {
        let mut ended = Command::new("true").spawn().unwrap();
        let pid = ended.id() as i32;
        ended.wait().unwrap();
        let main = MainProcess::default();
        let mut family = Family::of_this_process("att_x".into(), None, MainProcess::clone(&main));
        assert_eq!(family.kin(pid), None);
        main.store(pid, Ordering::SeqCst);
        assert_eq!(family.kin(pid), Some(Kin::Own));
    }
}
