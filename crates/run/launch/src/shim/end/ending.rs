//! When and how the attempt is brought to its end. Decisions only: times come in as numbers, what to do goes out.
//!
//! - A stop sends SIGTERM to the script's process group, or SIGINT, as Ctrl-C does, and SIGTERM after half of the grace
//!   period; after the grace period, or at a second request, SIGKILL goes to every process of the attempt. Two plain
//!   signals within a second are one request: Slurm sends SIGTERM twice in a row at a time limit (`_rpc_timelimit`,
//!   then `_rpc_terminate_job` in its `slurmd/req.c`).
//! - The attempt continues while the main process lives. When that ended with code 0 and other processes still hold its
//!   output open (a script that starts the real work and exits), they may continue as long as they work, up to the linger limit: a viewer
//!   or another helper that only waits does not keep the attempt. Where only processes in separate sessions are left (a TensorBoard, a Ray,
//!   an agent), they may continue for a short time.
//! - Every other remaining process gets SIGTERM, the grace period, SIGKILL.

use nix::sys::signal::Signal;

use crate::exit_record::SignalReason;

/// Processes that are still there so long after SIGKILL hang in the kernel; the shim does not wait for them.
pub(super) const KILL_SECONDS_MAX: i64 = 30;
/// Plain stop signals that are closer together than this are one request.
const SAME_REQUEST_MICROS: i64 = 1_000_000;
/// So long after the main process ended with code 0, what only processes in separate sessions hold open keeps the attempt.
pub(super) const APART_SECONDS: i64 = 15;
/// What the main process left when it ended with code 0 keeps the attempt so long after it was last seen to work.
pub(super) const IDLE_SECONDS: i64 = 10;
/// How often SIGKILL is repeated, for processes that were being born during the last pass.
const KILL_EVERY_MICROS: i64 = 50_000;

const MICROS: i64 = 1_000_000;

/// What the loop must do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shim) enum Step {
    /// Nothing before the next event or deadline.
    Wait,
    /// This signal to the script's process group.
    SignalGroup(Signal),
    /// SIGTERM to every process of the attempt, for this reason.
    TerminateTree(SignalReason),
    /// SIGKILL to every process of the attempt, for this reason.
    KillTree(SignalReason),
    /// Stop waiting for what SIGKILL does not end.
    GiveUp,
    /// Everything has ended.
    Done,
}

/// What is known about the attempt's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shim) struct Tree {
    /// The main process: `None` while it lives, then whether it ended with code 0.
    pub main_succeeded: Option<bool>,
    /// Some process of the attempt is alive.
    pub any_left: bool,
    /// Some process holds the output open.
    pub output_open: bool,
    /// Every process that is left is in another session than the main process was.
    pub apart: bool,
    /// When what the main process left was last seen to work; none: not since that ended.
    pub worked_at: Option<i64>,
}

#[derive(Debug)]
pub(in crate::shim) struct Ending {
    grace_micros: i64,
    linger_micros: Option<i64>,
    /// When a stop was requested first.
    stop_wanted_at: Option<i64>,
    kill_wanted: bool,
    /// What the script's process group gets next, and from when on.
    group_gets: Option<(Signal, i64)>,
    tree_reported: bool,
    deadline: Option<i64>,
    /// Since when processes linger.
    lingers_since: Option<i64>,
    linger_until: Option<i64>,
    next_kill: i64,
    kill_until: Option<i64>,
    killed_after_grace: bool,
}

impl Ending {
    pub fn new(grace_seconds: f64, linger_seconds: Option<f64>) -> Self {
        let micros = |seconds: f64| (seconds.clamp(0.0, 1e9) * 1e6) as i64;
        Self {
            grace_micros: micros(grace_seconds),
            linger_micros: linger_seconds.map(micros),
            stop_wanted_at: None,
            kill_wanted: false,
            group_gets: None,
            tree_reported: false,
            deadline: None,
            lingers_since: None,
            linger_until: None,
            next_kill: i64::MIN,
            kill_until: None,
            killed_after_grace: false,
        }
    }

    /// A stop was requested at `now`: gently at first, then (or with no grace at all) at once. `grace_millis` comes
    /// from a sender that knows the shim; its second request is never taken for the first one.
    pub fn stop(&mut self, now: i64, first: Signal, grace_millis: Option<i32>) {
        if let Some(millis) = grace_millis {
            self.grace_micros = i64::from(millis.max(0)) * 1000;
        }
        let is_second = self
            .stop_wanted_at
            .is_some_and(|first| grace_millis.is_some() || now - first >= SAME_REQUEST_MICROS);
        self.kill_wanted |= is_second || self.grace_micros == 0;
        if self.stop_wanted_at.is_none() {
            (self.stop_wanted_at, self.group_gets) = (Some(now), Some((first, now)));
        }
    }

    pub fn killed_after_grace(&self) -> bool {
        self.killed_after_grace
    }

    /// What to do at `now` (monotonic microseconds). Call it again after doing it.
    pub fn next(&mut self, now: i64, tree: Tree) -> Step {
        if tree.main_succeeded.is_some() && !tree.any_left {
            return Step::Done;
        }
        if self.kill_until.is_some() || self.kill_wanted {
            return self.kill(now, SignalReason::KillRequested);
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.killed_after_grace = true;
            return self.kill(now, SignalReason::GraceEnded);
        }
        match tree.main_succeeded {
            None => self.signal_group(now),
            Some(succeeded) => self.leftovers(now, succeeded && tree.output_open, tree),
        }
    }

    /// A script that ignores Ctrl-C, as background processes of a shell do, gets SIGTERM too.
    fn signal_group(&mut self, now: i64) -> Step {
        let Some((signal, _)) = self.group_gets.filter(|(_, at)| now >= *at) else { return Step::Wait };
        self.deadline.get_or_insert(now + self.grace_micros);
        let then = (Signal::SIGTERM, now + self.grace_micros / 2);
        self.group_gets = (signal == Signal::SIGINT).then_some(then);
        Step::SignalGroup(signal)
    }

    fn leftovers(&mut self, now: i64, may_linger: bool, tree: Tree) -> Step {
        if self.tree_reported {
            return Step::Wait;
        }
        if may_linger && self.stop_wanted_at.is_none() {
            let until = self.linger_until(now, tree);
            self.linger_until = Some(until);
            if now < until {
                return Step::Wait;
            }
        }
        self.tree_reported = true;
        self.deadline.get_or_insert(now + self.grace_micros);
        let why = match self.stop_wanted_at {
            Some(_) => SignalReason::StopRequested,
            None => SignalReason::Leftover,
        };
        Step::TerminateTree(why)
    }

    fn linger_until(&mut self, now: i64, tree: Tree) -> i64 {
        let since = *self.lingers_since.get_or_insert(now);
        let apart_until = tree.apart.then_some(since + APART_SECONDS * MICROS);
        let most_until = self.linger_micros.map(|micros| since + micros);
        let idle_until = tree.worked_at.unwrap_or(since).max(since) + IDLE_SECONDS * MICROS;
        [apart_until, most_until].into_iter().flatten().fold(idle_until, i64::min)
    }

    fn kill(&mut self, now: i64, why: SignalReason) -> Step {
        let until = *self.kill_until.get_or_insert(now + KILL_SECONDS_MAX * MICROS);
        if now >= until {
            return Step::GiveUp;
        }
        if now < self.next_kill {
            return Step::Wait;
        }
        self.next_kill = now + KILL_EVERY_MICROS;
        Step::KillTree(if self.killed_after_grace { SignalReason::GraceEnded } else { why })
    }

    /// When `next` must be called again even if nothing happens; `None`: only after an event.
    pub fn wake_at(&self) -> Option<i64> {
        let kill = self.kill_until.map(|_| self.next_kill);
        let lingering = if self.tree_reported { None } else { self.linger_until };
        let ending = [self.deadline, self.group_gets.map(|(_, at)| at)].into_iter().flatten().min();
        [kill, ending.filter(|_| kill.is_none()), lingering].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIVE: Tree =
        Tree { main_succeeded: None, any_left: true, output_open: true, apart: false, worked_at: None };
    const SECOND: i64 = MICROS;

    fn left(succeeded: bool, output_open: bool) -> Tree {
        Tree { main_succeeded: Some(succeeded), output_open, ..ALIVE }
    }

    /// Proves that a stop is gentle, then forced, and that the forced end repeats and gives up in bounded time.
    #[test]
    fn a_stop_goes_from_term_to_kill() {
        let mut ending = Ending::new(5.0, None);
        assert_eq!(ending.next(0, ALIVE), Step::Wait);
        assert_eq!(ending.wake_at(), None);
        ending.stop(1, Signal::SIGTERM, None);
        assert_eq!(ending.next(1, ALIVE), Step::SignalGroup(Signal::SIGTERM));
        assert_eq!(ending.next(2, ALIVE), Step::Wait);
        assert_eq!(ending.wake_at(), Some(5 * SECOND + 1));
        assert_eq!(ending.next(5 * SECOND + 1, ALIVE), Step::KillTree(SignalReason::GraceEnded));
        assert_eq!(ending.next(5 * SECOND + 2, ALIVE), Step::Wait);
        assert_eq!(ending.next(6 * SECOND, ALIVE), Step::KillTree(SignalReason::GraceEnded));
        assert!(ending.killed_after_grace());
        assert_eq!(ending.next(36 * SECOND, ALIVE), Step::GiveUp);
        assert_eq!(ending.next(36 * SECOND, Tree { any_left: false, ..left(false, false) }), Step::Done);
    }

    /// Proves that an interruption is SIGINT first, then SIGTERM for who ignores it, then the forced end, and that a script that ended
    /// meanwhile gets no SIGTERM.
    #[test]
    fn an_interruption_goes_from_int_to_term_to_kill() {
        let mut ending = Ending::new(60.0, None);
        ending.stop(0, Signal::SIGINT, Some(4_000));
        assert_eq!(ending.next(0, ALIVE), Step::SignalGroup(Signal::SIGINT));
        assert_eq!((ending.next(1, ALIVE), ending.wake_at()), (Step::Wait, Some(2 * SECOND)));
        let mut ended = Ending::new(60.0, None);
        ended.stop(0, Signal::SIGINT, Some(4_000));
        assert_eq!(ended.next(0, ALIVE), Step::SignalGroup(Signal::SIGINT));
        assert_eq!(
            ended.next(2 * SECOND, left(false, false)),
            Step::TerminateTree(SignalReason::StopRequested)
        );
        assert_eq!(ending.next(2 * SECOND, ALIVE), Step::SignalGroup(Signal::SIGTERM));
        assert_eq!((ending.next(3 * SECOND, ALIVE), ending.wake_at()), (Step::Wait, Some(4 * SECOND)));
        assert_eq!(ending.next(4 * SECOND, ALIVE), Step::KillTree(SignalReason::GraceEnded));
    }

    /// Proves that what only waits after a successful script, as a viewer does, is ended a short time after the script
    /// or after its last sign of work, and that processes of a script that lives are never ended for that.
    #[test]
    fn what_only_waits_does_not_keep_the_attempt() {
        let mut script = Ending::new(1.0, None);
        assert_eq!(script.next(i64::MAX / 4, ALIVE), Step::Wait);

        let (mut viewer, waits) = (Ending::new(1.0, None), left(true, true));
        let until = 7 + IDLE_SECONDS * SECOND;
        assert_eq!((viewer.next(7, waits), viewer.wake_at()), (Step::Wait, Some(until)));
        assert_eq!(viewer.next(until - 1, waits), Step::Wait);
        let worked = Tree { worked_at: Some(until - 1), ..waits };
        let later = until - 1 + IDLE_SECONDS * SECOND;
        assert_eq!((viewer.next(until, worked), viewer.wake_at()), (Step::Wait, Some(later)));
        assert_eq!(viewer.next(later, worked), Step::TerminateTree(SignalReason::Leftover));
        assert_eq!(viewer.next(later + SECOND, worked), Step::KillTree(SignalReason::GraceEnded));
    }

    /// Proves that a second request, or one without grace, kills at once, and that a sender's grace wins.
    #[test]
    fn a_second_stop_kills_now() {
        for (second, grace_millis) in [(SECOND, None), (1, Some(1_000))] {
            let mut ending = Ending::new(60.0, None);
            ending.stop(0, Signal::SIGTERM, None);
            assert_eq!(ending.next(0, ALIVE), Step::SignalGroup(Signal::SIGTERM));
            ending.stop(second, Signal::SIGTERM, grace_millis);
            assert_eq!(ending.next(second, ALIVE), Step::KillTree(SignalReason::KillRequested));
            assert!(!ending.killed_after_grace());
        }
        let mut ending = Ending::new(60.0, None);
        ending.stop(0, Signal::SIGTERM, Some(0));
        assert_eq!(ending.next(0, ALIVE), Step::KillTree(SignalReason::KillRequested));
        let mut ending = Ending::new(60.0, None);
        ending.stop(0, Signal::SIGTERM, Some(1_000));
        assert_eq!(ending.next(0, ALIVE), Step::SignalGroup(Signal::SIGTERM));
        assert_eq!(ending.wake_at(), Some(SECOND));
    }

    /// Proves that two plain signals in a row, as Slurm sends them at a time limit, leave the whole grace period.
    #[test]
    fn two_signals_in_a_row_are_one_request() {
        let mut ending = Ending::new(60.0, None);
        ending.stop(0, Signal::SIGTERM, None);
        ending.stop(SECOND - 1, Signal::SIGTERM, None);
        assert_eq!(ending.next(SECOND, ALIVE), Step::SignalGroup(Signal::SIGTERM));
        assert_eq!(ending.next(60 * SECOND, ALIVE), Step::Wait);
        assert_eq!(ending.next(61 * SECOND, ALIVE), Step::KillTree(SignalReason::GraceEnded));
    }

    /// Proves that processes that hold the output of a successful script continue while they work, within the linger
    /// limit, those in separate sessions for a short time whatever they do, and that all others are ended at once.
    #[test]
    fn leftovers_linger_only_after_success_and_with_output() {
        let working = |now| Tree { worked_at: Some(now), ..left(true, true) };
        let mut unlimited = Ending::new(1.0, None);
        for now in [0, IDLE_SECONDS * SECOND - 1, IDLE_SECONDS * SECOND * 2, i64::MAX / 4] {
            assert_eq!(unlimited.next(now, working(now)), Step::Wait);
        }
        assert_eq!(unlimited.next(1, left(true, false)), Step::TerminateTree(SignalReason::Leftover));

        let apart = |now| Tree { apart: true, ..working(now) };
        let until = 7 + APART_SECONDS * SECOND;
        let mut daemon = Ending::new(1.0, None);
        assert_eq!(daemon.next(7, left(true, true)), Step::Wait);
        assert_eq!((daemon.next(until - 1, apart(until - 1)), daemon.wake_at()), (Step::Wait, Some(until)));
        assert_eq!(
            daemon.next(until, working(until)),
            Step::Wait,
            "one in the session of the script came back"
        );
        assert_eq!(daemon.next(until, apart(until)), Step::TerminateTree(SignalReason::Leftover));

        let mut limited = Ending::new(1.0, Some(3.0));
        assert_eq!(limited.next(0, left(true, true)), Step::Wait);
        assert_eq!(limited.wake_at(), Some(3 * SECOND));
        assert_eq!(limited.next(3 * SECOND, left(true, true)), Step::TerminateTree(SignalReason::Leftover));
        assert_eq!(limited.next(4 * SECOND, left(true, true)), Step::KillTree(SignalReason::GraceEnded));

        let mut failed = Ending::new(1.0, None);
        assert_eq!(failed.next(0, left(false, true)), Step::TerminateTree(SignalReason::Leftover));

        let mut stopped = Ending::new(1.0, None);
        assert_eq!(stopped.next(0, left(true, true)), Step::Wait);
        stopped.stop(0, Signal::SIGTERM, None);
        assert_eq!(stopped.next(1, left(true, true)), Step::TerminateTree(SignalReason::StopRequested));
    }
}
