//! The kernel's own answer to who started whom (its process connector): for root only. By it a process is known that
//! had ended before what it wrote could be looked at.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use rustix::net::netlink::{CONNECTOR, SocketAddrNetlink};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

use super::family::{Family, Kin};

/// The group of the connector, and its number in messages.
const PROCESSES: u32 = 1;
const LISTEN: u32 = 1;
const IGNORE: u32 = 2;
/// The event of a new process or thread.
const FORK: u32 = 1;
/// Where the event is in a message: behind the headers of netlink and of the connector.
const EVENT_AT: usize = 36;
/// Where the processes are in an event: parent and its group, child and its group.
const FORKED_AT: usize = EVENT_AT + 16;
/// A message is smaller.
const MESSAGE_BYTES: usize = 256;
/// What the kernel keeps while it is not read.
const KEPT_BYTES: usize = 4 << 20;
/// Processes of the attempt that are remembered, the newest, and as many others.
const REMEMBERED_MAX: usize = 16_384;
/// The inode of the first namespace of processes: in another one the numbers of events are not ours.
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// The processes that were started since it was opened.
#[derive(Debug)]
pub(super) struct Births {
    socket: OwnedFd,
    lineage: Lineage,
}

impl Births {
    /// None where the kernel refuses, as it does all users but root, and in a container.
    pub fn open() -> Option<Self> {
        if fs::metadata("/proc/self/ns/pid").ok()?.ino() != FIRST_NAMESPACE {
            return None;
        }
        let kind = (AddressFamily::NETLINK, SocketType::DGRAM);
        let socket = socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, Some(CONNECTOR)).ok()?;
        bind(&socket, &SocketAddrNetlink::new(0, PROCESSES)).ok()?;
        set_socket_recv_buffer_size_force(&socket, KEPT_BYTES).ok();
        send(&socket, &request(LISTEN), SendFlags::empty()).ok()?;
        Some(Self { socket, lineage: Lineage::below(std::process::id() as i32) })
    }

    /// What a process is that has ended; none if events were lost, and it is not known to be the attempt's.
    pub fn kin(&mut self, pid: i32, family: &mut Family) -> Option<Kin> {
        self.take();
        self.lineage.kin(pid, &mut |parent| family.kin(parent))
    }

    /// Takes in what happened since.
    pub fn take(&mut self) {
        let mut message = [0; MESSAGE_BYTES];
        loop {
            match recv(&self.socket, &mut message[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => self.lineage.take(message.get(..length).unwrap_or_default()),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::NOBUFS) => self.lineage.is_whole = false,
                Err(_) => return,
            }
        }
    }
}

impl Drop for Births {
    fn drop(&mut self) {
        // Without it older kernels continue to count a listener.
        send(&self.socket, &request(IGNORE), SendFlags::empty()).ok();
    }
}

/// A message to the connector.
fn request(operation: u32) -> Vec<u8> {
    const HEADER_BYTES: u32 = 16;
    const CONNECTOR_BYTES: u32 = 20;
    const DONE: u32 = 3;
    let operation_bytes = size_of::<u32>() as u32;
    let words = [
        // The header of netlink: length, kind and flags, number, sender.
        HEADER_BYTES + CONNECTOR_BYTES + operation_bytes,
        u32::from_ne_bytes(halves(DONE as u16, 0)),
        0,
        0,
        // The connector's: group and number in it, sequence, answer, length and flags.
        PROCESSES,
        PROCESSES,
        0,
        0,
        u32::from_ne_bytes(halves(operation_bytes as u16, 0)),
        operation,
    ];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn halves(first: u16, second: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (first.to_ne_bytes(), second.to_ne_bytes());
    [a, b, c, d]
}

/// Which processes come from the shim, of those that were started since.
#[derive(Debug)]
struct Lineage {
    shim: i32,
    own: Remembered,
    parents: HashMap<i32, i32>,
    others: VecDeque<i32>,
    /// Whether no event was lost.
    is_whole: bool,
}

/// The newest of many.
#[derive(Debug, Default)]
struct Remembered {
    all: HashSet<i32>,
    order: VecDeque<i32>,
}

impl Remembered {
    fn add(&mut self, pid: i32) {
        if self.order.len() == REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
        if self.all.insert(pid) {
            self.order.push_back(pid);
        }
    }

    fn remove(&mut self, pid: i32) {
        if self.all.remove(&pid) {
            self.order.retain(|one| *one != pid);
        }
    }
}

impl Lineage {
    fn below(shim: i32) -> Self {
        let (own, parents, others) = (Remembered::default(), HashMap::new(), VecDeque::new());
        Self { shim, own, parents, others, is_whole: true }
    }

    fn take(&mut self, message: &[u8]) {
        let word = |at: usize| Some(u32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?));
        if word(EVENT_AT) != Some(FORK) {
            return;
        }
        let (Some(parent), Some(child), Some(group)) =
            (word(FORKED_AT + 4), word(FORKED_AT + 8), word(FORKED_AT + 12))
        else {
            return;
        };
        // A thread is of the same process.
        if child == group {
            self.began(child as i32, parent as i32);
        }
    }

    fn began(&mut self, pid: i32, parent: i32) {
        if parent == self.shim || self.own.all.contains(&parent) {
            self.parents.remove(&pid);
            self.own.add(pid);
            return;
        }
        // A number is given again.
        self.own.remove(pid);
        if self.parents.insert(pid, parent).is_none() {
            self.others.push_back(pid);
        }
        if self.others.len() > REMEMBERED_MAX
            && let Some(oldest) = self.others.pop_front()
        {
            self.parents.remove(&oldest);
        }
    }

    /// `kin_of`: what a living process is.
    fn kin(&self, pid: i32, kin_of: &mut dyn FnMut(i32) -> Option<Kin>) -> Option<Kin> {
        if self.own.all.contains(&pid) {
            return Some(Kin::Own);
        }
        let parent = self.parents.get(&pid)?;
        match kin_of(*parent) {
            // It belongs to the attempt by its environment.
            Some(Kin::Own) => Some(Kin::Own),
            Some(Kin::Stranger(who)) => Some(Kin::Stranger(format!("process {pid}, a child of {who},"))),
            _ if self.is_whole => Some(Kin::Stranger(format!("process {pid}, which has ended,"))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fork(parent: u32, child: u32, group: u32) -> Vec<u8> {
        let mut message = vec![0; EVENT_AT];
        for word in [FORK, 0, 0, 0, parent, parent, child, group] {
            message.extend(word.to_ne_bytes());
        }
        message
    }

    /// Proves that children of children of the shim are the attempt's after their end, that others are not, that a
    /// number which is given again is another process, that threads are none, and that with lost events nothing is said
    /// of others.
    #[test]
    fn the_lineage_tells_who_a_process_was() {
        let mut lineage = Lineage::below(10);
        for (parent, child, group) in [(10, 20, 20), (20, 21, 21), (5, 30, 30), (20, 22, 20)] {
            lineage.take(&fork(parent, child, group));
        }
        let mut unknown = |_| None;
        assert_eq!(lineage.kin(20, &mut unknown), Some(Kin::Own));
        assert_eq!(lineage.kin(21, &mut unknown), Some(Kin::Own));
        assert!(
            matches!(lineage.kin(30, &mut unknown), Some(Kin::Stranger(who)) if who.contains("process 30"))
        );
        assert_eq!(lineage.kin(30, &mut |_| Some(Kin::Own)), Some(Kin::Own), "by its parent's environment");
        assert_eq!(lineage.kin(22, &mut unknown), None, "a thread");
        lineage.take(&fork(5, 21, 21));
        assert!(matches!(lineage.kin(21, &mut unknown), Some(Kin::Stranger(_))));
        lineage.is_whole = false;
        assert_eq!(lineage.kin(30, &mut unknown), None);
        assert_eq!(lineage.kin(20, &mut unknown), Some(Kin::Own));
        lineage.take(b"short");
    }

    /// Proves that what is remembered is bounded.
    #[test]
    fn the_lineage_is_bounded() {
        let mut lineage = Lineage::below(10);
        for pid in 0..3 * REMEMBERED_MAX as u32 {
            lineage.take(&fork(if pid % 2 == 0 { 10 } else { 5 }, 100 + pid, 100 + pid));
        }
        assert!(lineage.own.all.len() <= REMEMBERED_MAX && lineage.own.order.len() <= REMEMBERED_MAX);
        assert!(lineage.parents.len() <= REMEMBERED_MAX && lineage.others.len() <= REMEMBERED_MAX);
    }

    /// Proves, where the kernel lets us, that a child which has ended is known by its birth.
    #[test]
    fn a_child_is_known_after_its_end() {
        let Some(mut births) = Births::open() else {
            trackway_skip::skip!("the process connector is for root outside of containers");
            return;
        };
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        child.wait().unwrap();
        let mut family = Family::of_this_process("att_x".into(), None, super::super::MainProcess::default());
        assert_eq!(births.kin(pid, &mut family), Some(Kin::Own));
    }
}
