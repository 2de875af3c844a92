//! How the shim gets its side of the terminals: in a socket that is its standard input.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The descriptors of all streams.
const DESCRIPTORS_MAX: usize = 7;
/// What is there, in the byte that comes with the descriptors; they follow in this order.
const STDIN: u8 = 1;
const STDOUT: u8 = 2;
const STDERR: u8 = 4;

/// What the shim has of the terminals of a script; nothing where it has none.
#[derive(Debug, Default)]
pub(crate) struct ShimSide {
    /// The script's standard input.
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<OutputEnds>,
    pub stderr: Option<OutputEnds>,
}

/// An output that is a terminal.
#[derive(Debug)]
pub(crate) struct OutputEnds {
    /// Where what the script prints is read.
    pub master: OwnedFd,
    /// Where the script prints.
    pub script: OwnedFd,
    /// Where it is shown to the person.
    pub display: OwnedFd,
}

impl OutputEnds {
    fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        [self.master.as_fd(), self.script.as_fd(), self.display.as_fd()]
    }

    fn received(descriptors: &mut impl Iterator<Item = OwnedFd>) -> Option<Self> {
        Some(Self { master: descriptors.next()?, script: descriptors.next()?, display: descriptors.next()? })
    }
}

impl ShimSide {
    /// Puts it into a socket; gives the end that is for the shim.
    pub fn send(self) -> io::Result<OwnedFd> {
        let (ours, shims) = UnixStream::pair()?;
        let outputs = [&self.stdout, &self.stderr].into_iter().flatten().flat_map(OutputEnds::descriptors);
        let descriptors: Vec<BorrowedFd<'_>> = self.stdin.iter().map(AsFd::as_fd).chain(outputs).collect();
        let there =
            [(self.stdin.is_some(), STDIN), (self.stdout.is_some(), STDOUT), (self.stderr.is_some(), STDERR)];
        let what = there.iter().filter(|(is_there, _)| *is_there).fold(0, |what, (_, bit)| what | bit);
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(&ours, &[IoSlice::new(&[what])], &mut control, SendFlags::empty())?;
        Ok(shims.into())
    }

    /// Takes it out of a descriptor that may be something else; then there are no terminals.
    pub fn receive(socket: BorrowedFd<'_>) -> Self {
        let mut what = [0];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        if recvmsg(socket, &mut [IoSliceMut::new(&mut what)], &mut control, flags).is_err() {
            return Self::default();
        }
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        let mut descriptors = descriptors.into_iter();
        let has = |bit| what[0] & bit != 0;
        Self {
            stdin: if has(STDIN) { descriptors.next() } else { None },
            stdout: if has(STDOUT) { OutputEnds::received(&mut descriptors) } else { None },
            stderr: if has(STDERR) { OutputEnds::received(&mut descriptors) } else { None },
        }
    }
}
