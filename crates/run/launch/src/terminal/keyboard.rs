//! What a person types, on its way to the script.
//!
//! The person's terminal shows and edits lines by itself, as it always does, and Ctrl-C and Ctrl-Z are Trackway's. Only where
//! the script changes its own terminal, as a question for a password or an editor of lines does, the person's follows.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::PollFlags;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

/// Bytes that are taken at once: the longest line that a terminal edits.
const TYPED_BYTES: usize = 4096;
/// What a terminal takes for the end of the input, at the beginning of a line (Ctrl-D).
const END_OF_INPUT: u8 = 4;
/// The modes of the person's terminal that follow those of the script's.
const FOLLOWED: LocalModes = LocalModes::ICANON.union(LocalModes::ECHO);

/// The terminal that is the script's standard input, from its other side.
#[derive(Debug)]
pub(super) struct Keyboard {
    terminal: File,
    /// Typed, and not taken yet by the script's terminal, which is full.
    unsent: Vec<u8>,
    /// The person's terminal as it was, where it follows the script's now.
    original: Option<Termios>,
}

impl Keyboard {
    pub fn new(terminal: OwnedFd) -> io::Result<Self> {
        fcntl(&terminal, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self { terminal: terminal.into(), unsent: Vec::new(), original: None })
    }

    pub fn terminal(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }

    /// Whether what is typed is for this process and has a place: a process in the background that reads is stopped.
    pub fn listens(&self) -> bool {
        self.unsent.is_empty() && is_in_foreground()
    }

    /// What is due now and then.
    pub fn turn(&mut self) {
        self.send();
        // The script's terminal shows what is typed, too: the person has seen it.
        let mut echoed = [0; TYPED_BYTES];
        while self.terminal.read(&mut echoed).is_ok_and(|count| count > 0) {}
        self.follow_modes();
    }

    /// Takes what was typed. False when the person's terminal is gone.
    pub fn take(&mut self, seen: PollFlags) -> bool {
        if seen.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL) {
            return false;
        }
        if !seen.contains(PollFlags::POLLIN) {
            return true;
        }
        let mut typed = [0; TYPED_BYTES];
        match nix::unistd::read(io::stdin(), &mut typed) {
            Ok(0) => self.unsent.push(END_OF_INPUT),
            Ok(count) => self.unsent.extend_from_slice(&typed[..count]),
            Err(error) => {
                return matches!(
                    io::Error::from(error).kind(),
                    ErrorKind::Interrupted | ErrorKind::WouldBlock
                );
            }
        }
        self.send();
        true
    }

    fn send(&mut self) {
        while !self.unsent.is_empty() {
            match self.terminal.write(&self.unsent) {
                Ok(count) if count > 0 => drop(self.unsent.drain(..count)),
                _ => return,
            }
        }
    }

    fn follow_modes(&mut self) {
        if !is_in_foreground() {
            return;
        }
        let (Ok(scripts), Ok(now)) = (tcgetattr(&self.terminal), tcgetattr(io::stdin())) else { return };
        let original = self.original.as_ref().unwrap_or(&now).clone();
        let wanted = followed(scripts.local_modes, original.local_modes);
        if wanted == original.local_modes {
            self.restore();
        } else if wanted != now.local_modes {
            let mut modes = original.clone();
            modes.local_modes = wanted;
            if !wanted.contains(LocalModes::ICANON) {
                // Each key counts at once.
                modes.special_codes[SpecialCodeIndex::VMIN] = 1;
                modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            }
            if tcsetattr(io::stdin(), OptionalActions::Now, &modes).is_ok() {
                self.original = Some(original);
            }
        }
    }

    /// Gives the person's terminal back as it was.
    fn restore(&mut self) {
        if let Some(original) = self.original.take() {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &original);
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // In the background it is the shell's, which has restored it.
        if is_in_foreground() {
            self.restore();
        }
    }
}

/// The modes of the person's terminal: those that the script switched off in its own are off.
fn followed(scripts: LocalModes, original: LocalModes) -> LocalModes {
    original.difference(FOLLOWED.difference(scripts))
}

/// Whether the terminal is this process's to read and to change.
fn is_in_foreground() -> bool {
    let own = nix::unistd::getpgrp().as_raw();
    tcgetpgrp(io::stdin()).is_ok_and(|group| group.as_raw_nonzero().get() == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the person's terminal is left alone while the script's is as it was, that it follows a question for a password and an
    /// editor of lines, and that Ctrl-C always stays with Trackway.
    #[test]
    fn the_terminal_of_the_person_follows_that_of_the_script() {
        let original = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        assert_eq!(followed(original, original), original);
        let password = original.difference(LocalModes::ECHO);
        assert_eq!(followed(password, original), password);
        let others = LocalModes::ISIG | LocalModes::IEXTEN;
        assert_eq!(followed(LocalModes::empty(), original), others);
        assert_eq!(followed(original, others), others, "nothing is switched on");
    }
}
