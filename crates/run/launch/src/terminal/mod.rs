//! The terminals of a script that a person watches from a terminal: a pseudo-terminal for each of its streams.
//!
//! The supervisor opens them and hands them to the shim before the script starts. From then on the shim alone reads what
//! the script prints: it stores it, and passes it through a pipe to the supervisor, which shows it. What is typed goes from
//! the supervisor to the script. When the supervisor ends, the script continues: its input is at its end, and its output is
//! stored as before.

mod handover;
mod keyboard;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    OptionalActions, OutputModes, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};

use crate::Stream;
pub(crate) use handover::{OutputEnds, ShimSide};
use keyboard::Keyboard;

/// How long nothing is looked at but what arrives: the size of the person's terminal, and how the script set its own.
const TURN_MILLIS: u16 = 100;
/// Bytes that are shown in one piece.
const PIECE_BYTES: usize = 64 << 10;
/// So many pieces of one stream are taken before the other streams are looked at.
const PIECES_AT_ONCE: usize = 16;
/// So many pieces, 16 MiB at most, wait for a terminal that takes nothing.
const PIECES_MAX: usize = 256;

/// A part of what the script printed.
type Piece = (Stream, Vec<u8>);

/// Which streams of a script are terminals, and whether it reads what is piped in. None by default: its outputs are
/// pipes, and its input is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalStreams {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
    /// Whether standard input is a pipe or a file, which the script reads itself.
    pub is_piped: bool,
}

/// The terminals of one attempt, as its supervisor has them.
#[derive(Debug)]
pub struct Terminal {
    streams: TerminalStreams,
    /// Taken when it is followed.
    ours: Mutex<Option<Ours>>,
    /// Taken when it is handed to the shim.
    shims: Mutex<Option<ShimSide>>,
}

/// What the supervisor keeps.
#[derive(Debug)]
struct Ours {
    keyboard: Option<Keyboard>,
    outputs: Vec<ScriptOutput>,
    size: Option<Winsize>,
}

/// An output of the script on its way to the person.
#[derive(Debug)]
struct ScriptOutput {
    stream: Stream,
    /// What the script printed, from the shim.
    display: File,
    /// For its size alone; the shim reads it.
    master: OwnedFd,
    /// What waits for a place.
    held: Option<Piece>,
}

impl Terminal {
    /// Opens the pseudo-terminals, as large as the terminal of this process.
    ///
    /// # Errors
    /// The system has none left.
    pub fn open(streams: TerminalStreams) -> io::Result<Self> {
        let (mut shims, mut outputs) = (ShimSide::default(), Vec::new());
        // What is printed on both at about the same time is shown in this order: a question follows what was complained before it.
        for (stream, is_wanted, ends) in [
            (Stream::Stderr, streams.stderr, &mut shims.stderr),
            (Stream::Stdout, streams.stdout, &mut shims.stdout),
        ] {
            if is_wanted {
                let (shown, shims) = open_output(stream)?;
                outputs.push(shown);
                *ends = Some(shims);
            }
        }
        if streams.is_piped {
            shims.stdin = Some(io::stdin().as_fd().try_clone_to_owned()?);
        }
        let mut keyboard = None;
        if streams.stdin {
            let (master, script) = pair()?;
            keyboard = Some(Keyboard::new(master)?);
            shims.stdin = Some(script);
        }
        let mut ours = Ours { keyboard, outputs, size: None };
        ours.resize();
        Ok(Self { streams, ours: Mutex::new(Some(ours)), shims: Mutex::new(Some(shims)) })
    }

    /// Whether this output of the script is shown by [`Self::follow`].
    #[must_use]
    pub fn shows(&self, stream: Stream) -> bool {
        match stream {
            Stream::Stdout => self.streams.stdout,
            Stream::Stderr => self.streams.stderr,
        }
    }

    /// Whether a shim has it: not where the launcher has no use for terminals, or the attempt was launched before.
    #[must_use]
    pub fn is_used(&self) -> bool {
        lock(&self.shims).is_none()
    }

    /// The side of the shim, once, in a socket that becomes its standard input.
    pub(crate) fn hand_over(&self) -> io::Result<Option<OwnedFd>> {
        lock(&self.shims).take().map(|side| side.send()).transpose()
    }

    /// Shows what the script prints and passes on what is typed, until its outputs have ended or it is `over`, which takes at
    /// most a tenth of a second to be seen.
    pub fn follow(&self, show: &(dyn Fn(Stream, &[u8]) + Sync), over: &AtomicBool) {
        let Some(mut ours) = lock(&self.ours).take() else { return };
        std::thread::scope(|scope| {
            let (pieces, waiting) = sync_channel::<Piece>(PIECES_MAX);
            let show_all = || {
                let is_wanted = |_: &Piece| !over.load(Ordering::Relaxed);
                waiting.into_iter().filter(is_wanted).for_each(|(stream, bytes)| show(stream, &bytes));
            };
            // A terminal that takes nothing blocks this thread alone.
            if std::thread::Builder::new().name("screen".into()).spawn_scoped(scope, show_all).is_err() {
                return;
            }
            while !ours.outputs.is_empty() && !over.load(Ordering::Relaxed) {
                ours.turn(&pieces);
            }
        });
    }
}

impl Ours {
    /// Passes on what is there, and waits for more.
    fn turn(&mut self, pieces: &SyncSender<Piece>) {
        self.resize();
        if let Some(keyboard) = &mut self.keyboard {
            keyboard.turn();
        }
        let typed = self.wait();
        self.outputs.retain_mut(|output| output.pass_on(pieces));
        let hears = self.keyboard.as_mut().is_none_or(|keyboard| keyboard.take(typed));
        if !hears {
            self.keyboard = None;
        }
    }

    /// Gives the terminals of the script the size of the person's.
    fn resize(&mut self) {
        let size = own_size();
        if size == self.size {
            return;
        }
        self.size = size;
        let Some(size) = size else { return };
        let inputs = self.keyboard.iter().map(Keyboard::terminal);
        for terminal in self.outputs.iter().map(|output| output.master.as_fd()).chain(inputs) {
            // A terminal of another size is better than none.
            let _ = tcsetwinsize(terminal, size);
        }
    }

    /// Waits until something is printed or typed; gives what is known of the latter.
    fn wait(&self) -> PollFlags {
        let stdin = io::stdin();
        let listens = self.keyboard.as_ref().is_some_and(Keyboard::listens);
        let outputs = self.outputs.iter().filter(|output| output.held.is_none());
        let outputs = outputs.map(|output| output.display.as_fd());
        let inputs = listens.then(|| stdin.as_fd());
        let mut looked_at: Vec<PollFd<'_>> =
            outputs.chain(inputs).map(|it| PollFd::new(it, PollFlags::POLLIN)).collect();
        // An interrupted wait is one that was short.
        let _ = poll(&mut looked_at, PollTimeout::from(TURN_MILLIS));
        let typed = looked_at.last().filter(|_| listens).and_then(PollFd::revents);
        typed.unwrap_or(PollFlags::empty())
    }
}

impl ScriptOutput {
    /// Passes on what is there and has a place. False when the output has ended.
    fn pass_on(&mut self, pieces: &SyncSender<Piece>) -> bool {
        for _ in 0..PIECES_AT_ONCE {
            let piece = match self.held.take() {
                Some(piece) => piece,
                None => {
                    let mut bytes = vec![0; PIECE_BYTES];
                    match self.display.read(&mut bytes) {
                        Ok(0) => return false,
                        Ok(count) => bytes.truncate(count),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                        Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
                    }
                    (self.stream, bytes)
                }
            };
            match pieces.try_send(piece) {
                Ok(()) => {}
                Err(TrySendError::Full(piece)) => {
                    self.held = Some(piece);
                    return true;
                }
                Err(TrySendError::Disconnected(_)) => return false,
            }
        }
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pseudo-terminal: the end that reads and writes for the script's terminal, and the script's end. Neither becomes the
/// controlling terminal of a process.
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let script = ioctl_tiocgptpeer(&master, flags)?;
    Ok((master, script))
}

/// A terminal for an output. Its bytes arrive as the script writes them: the person's own terminal turns line ends into its.
fn open_output(stream: Stream) -> io::Result<(ScriptOutput, OutputEnds)> {
    let (master, script) = pair()?;
    let mut modes = tcgetattr(&script)?;
    modes.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&script, OptionalActions::Now, &modes)?;
    let (display, shims_display) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    let shown = ScriptOutput { stream, display: display.into(), master: master.try_clone()?, held: None };
    Ok((shown, OutputEnds { master, script, display: shims_display }))
}

/// Whether something that was piped into this process waits to be read.
#[must_use]
pub fn input_waits() -> bool {
    let stdin = io::stdin();
    let mut looked_at = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let found = poll(&mut looked_at, PollTimeout::ZERO).unwrap_or(0);
    found > 0 && looked_at[0].revents().is_some_and(|found| found.contains(PollFlags::POLLIN))
}

/// The size of the terminal that a person sees.
fn own_size() -> Option<Winsize> {
    let (stdout, stderr) = (tcgetwinsize(io::stdout()), tcgetwinsize(io::stderr()));
    stdout.or(stderr).or_else(|_| tcgetwinsize(io::stdin())).ok()
}

#[cfg(test)]
mod tests;
