use super::*;

use std::fs::File;
use std::io::Write as _;

/// Proves that the shim gets what was opened, in order, that both sides work after the way through the socket, and that a descriptor
/// that is none of these sockets means: no terminals.
#[test]
fn terminals_reach_the_shim() {
    let streams = TerminalStreams { stderr: true, ..TerminalStreams::default() };
    let terminal = Terminal::open(streams).unwrap();
    assert!(!terminal.is_used() && terminal.shows(Stream::Stderr) && !terminal.shows(Stream::Stdout));
    let socket = terminal.hand_over().unwrap().unwrap();
    assert!(terminal.is_used());
    assert!(terminal.hand_over().unwrap().is_none(), "there is one shim");
    let side = ShimSide::receive(socket.as_fd());
    assert!(side.stdin.is_none() && side.stdout.is_none());
    let OutputEnds { master, script, display } = side.stderr.unwrap();
    File::from(script).write_all(b"a\nb").unwrap();
    let mut read = [0; 9];
    let count = File::from(master).read(&mut read).unwrap();
    assert_eq!(&read[..count], b"a\nb", "line ends are as the script writes them");
    File::from(display).write_all(b"shown").unwrap();
    let shown = Mutex::new(Vec::new());
    terminal.follow(&|stream, bytes| lock(&shown).push((stream, bytes.to_vec())), &AtomicBool::new(false));
    assert_eq!(*lock(&shown), [(Stream::Stderr, b"shown".to_vec())]);

    let null = File::open("/dev/null").unwrap();
    let side = ShimSide::receive(null.as_fd());
    assert!(side.stdin.is_none() && side.stdout.is_none() && side.stderr.is_none());
}

/// Proves that what is typed arrives at the script's input, and that its input is at its end when the supervisor is gone.
#[test]
fn the_input_of_the_script_ends_with_the_supervisor() {
    let streams = TerminalStreams { stdin: true, stdout: true, ..TerminalStreams::default() };
    let terminal = Terminal::open(streams).unwrap();
    let side = ShimSide::receive(terminal.hand_over().unwrap().unwrap().as_fd());
    let mut stdin = File::from(side.stdin.unwrap());
    let typed =
        lock(&terminal.ours).as_ref().unwrap().keyboard.as_ref().unwrap().terminal().try_clone_to_owned();
    File::from(typed.unwrap()).write_all(b"yes\n").unwrap();
    let mut read = [0; 9];
    let count = stdin.read(&mut read).unwrap();
    assert_eq!(&read[..count], b"yes\n");
    drop(terminal);
    assert_eq!(stdin.read(&mut read).unwrap(), 0);
}

/// Proves that what is piped in is handed to the shim itself, without a terminal, and that nothing is to be shown then.
#[test]
fn piped_input_is_handed_over() {
    let streams = TerminalStreams { is_piped: true, ..TerminalStreams::default() };
    let terminal = Terminal::open(streams).unwrap();
    assert!(!terminal.shows(Stream::Stdout) && !terminal.shows(Stream::Stderr));
    let side = ShimSide::receive(terminal.hand_over().unwrap().unwrap().as_fd());
    assert!(side.stdin.is_some() && side.stdout.is_none() && side.stderr.is_none());
    terminal.follow(&|_, _| panic!("nothing is shown"), &AtomicBool::new(false));
}
