//! When the supervisor ends an attempt by its own decision: a pure function of what is known and what is allowed.

use trackway_core::Step;

use super::inject::{Fault, Injection, InjectionTime};

/// The limits the run file sets; none means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// Longest an attempt may take, in seconds.
    pub timeout_seconds: Option<f64>,
    /// Longest without a new step or heartbeat, in seconds. Off by default: silence proves nothing.
    pub hang_after_seconds: Option<f64>,
    /// How long the start may take.
    pub start: Option<StartLimit>,
    /// Money left to the run, in US dollars; less than 0 where more than its limit is spent.
    pub usd_left: Option<f64>,
    /// What the attempt costs a second, in US dollars.
    pub usd_per_second: f64,
    /// GPU seconds left to the run, as [`Self::usd_left`].
    pub gpu_seconds_left: Option<f64>,
    /// Wall seconds left to the run, as [`Self::usd_left`].
    pub seconds_left: Option<f64>,
    /// GPUs the attempt holds.
    pub gpus: f64,
    /// Longest until the script speaks to the recorder, in seconds: a rehearsal is pointless without.
    pub handshake_seconds: Option<f64>,
    /// The last step that is needed, of a launch that only observes.
    pub last_step: Option<Step>,
}

/// How long an attempt may take until its first step or heartbeat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StartLimit {
    /// `supervise.start_within`: so long after the launch, whatever is printed.
    Step {
        /// Seconds, greater than 0.
        seconds: f64,
    },
    /// `supervise.hang_after`: so long after the launch, or after what was printed last.
    Sign {
        /// Seconds, greater than 0.
        seconds: f64,
    },
}

/// What is known of the attempt now. All seconds are on a clock that never goes backwards.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Vitals {
    /// Since the attempt was launched.
    pub running_seconds: f64,
    /// Since the last step or heartbeat; none before the first one.
    pub quiet_seconds: Option<f64>,
    /// Since something was printed, or since the launch.
    pub unprinted_seconds: f64,
    /// The last step the attempt reported.
    pub step: Option<Step>,
    /// The last step it committed.
    pub committed_step: Option<Step>,
    /// The step of a save that is held before its commit, for a rehearsal.
    pub held_in_save: Option<Step>,
    /// Whether the script spoke to the recorder.
    pub handshake_seen: bool,
    /// Whether the script itself ended well: what is silent since then is what it left behind, which the shim ends.
    pub script_ended: bool,
}

/// Why the supervisor ends the attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Intervention {
    /// A fault requested with `--inject`.
    Inject(Fault),
    /// The time limit is reached.
    Timeout,
    /// Nothing moved for too long.
    Hang,
    /// The script did not speak to the recorder in time.
    NoHandshake,
    /// All steps that are needed were made.
    Enough,
    /// Money, GPU time or wall time is spent.
    Budget,
}

/// The first reason to intervene, if there is one; `why` is for the receipt.
#[must_use]
pub fn intervention(
    vitals: &Vitals,
    limits: &Limits,
    injection: Option<&Injection>,
) -> Option<(Intervention, String)> {
    // The fault first: a test of it means nothing where another limit ended the attempt.
    injected(vitals, injection)
        .or_else(|| passed(vitals, limits))
        .or_else(|| timed_out(vitals, limits))
        .or_else(|| spent(vitals, limits))
        .or_else(|| stalled(vitals, limits))
}

fn injected(vitals: &Vitals, injection: Option<&Injection>) -> Option<(Intervention, String)> {
    let injection = injection?;
    let reached = |seen: Option<Step>, asked| seen.filter(|step| *step >= asked);
    let why = match injection.moment {
        InjectionTime::Step(asked) => {
            format!("`--inject {injection}`, seen at step {}", reached(vitals.step, asked)?)
        }
        InjectionTime::Save(asked) => {
            format!("`--inject {injection}`, in the save of step {}", reached(vitals.held_in_save, asked)?)
        }
        InjectionTime::StepAfterCommit { step, committed } => {
            let step = reached(vitals.step, step)?;
            reached(vitals.committed_step, committed)?;
            format!("the proof kills it at step {step}, after the commit of step {committed}")
        }
    };
    Some((Intervention::Inject(injection.fault), why))
}

/// A script with the recorder ends at its last step by itself; the step after it is the sign of one that does not.
fn passed(vitals: &Vitals, limits: &Limits) -> Option<(Intervention, String)> {
    let last = limits.last_step.filter(|last| vitals.step.is_some_and(|step| step > *last))?;
    Some((Intervention::Enough, format!("step {last} was the last one that is needed")))
}

fn timed_out(vitals: &Vitals, limits: &Limits) -> Option<(Intervention, String)> {
    let timeout_seconds = limits.timeout_seconds.filter(|limit| vitals.running_seconds >= *limit)?;
    Some((Intervention::Timeout, format!("`supervise.timeout` of {timeout_seconds} s is reached")))
}

fn spent(vitals: &Vitals, limits: &Limits) -> Option<(Intervention, String)> {
    let spent_usd = vitals.running_seconds * limits.usd_per_second;
    if let Some(usd_left) = limits.usd_left.filter(|left| limits.usd_per_second > 0.0 && spent_usd >= *left) {
        return Some((Intervention::Budget, format!("`retry.max_usd`: {}", all_spent(usd_left, "USD"))));
    }
    if let Some(left) = limits.seconds_left.filter(|left| vitals.running_seconds >= *left) {
        let why = format!("`retry.max_hours`: {}", all_spent(left / 3600.0, "hours"));
        return Some((Intervention::Budget, why));
    }
    let gpu_seconds = vitals.running_seconds * limits.gpus;
    let left = limits.gpu_seconds_left.filter(|left| limits.gpus > 0.0 && gpu_seconds >= *left)?;
    let why = format!("`retry.max_gpu_hours`: {}", all_spent(left / 3600.0, "GPU hours"));
    Some((Intervention::Budget, why))
}

fn all_spent(left: f64, unit: &str) -> String {
    match left > 0.0 {
        true => format!("the remaining {left:.2} {unit} are spent"),
        false => format!("no {unit} were left"),
    }
}

/// Nothing moves; what a script that ended left behind need not.
fn stalled(vitals: &Vitals, limits: &Limits) -> Option<(Intervention, String)> {
    if vitals.script_ended {
        return None;
    }
    hung(vitals, limits).or_else(|| silent(vitals, limits))
}

fn hung(vitals: &Vitals, limits: &Limits) -> Option<(Intervention, String)> {
    let Some(quiet) = vitals.quiet_seconds else { return not_started(vitals, limits.start?) };
    let limit = limits.hang_after_seconds.filter(|limit| quiet >= *limit)?;
    Some((
        Intervention::Hang,
        format!("no step or heartbeat for {quiet:.0} s (`supervise.hang_after` is {limit} s)"),
    ))
}

/// A rendezvous, a mount, a lock or the first batch: where most hangs are.
fn not_started(vitals: &Vitals, limit: StartLimit) -> Option<(Intervention, String)> {
    let (waited, seconds, why) = match limit {
        StartLimit::Step { seconds } => {
            (vitals.running_seconds, seconds, "since the launch (`supervise.start_within`")
        }
        StartLimit::Sign { seconds } => {
            (vitals.unprinted_seconds, seconds, "nor output, before the first one (`supervise.hang_after`")
        }
    };
    (waited >= seconds).then(|| {
        (Intervention::Hang, format!("no step or heartbeat for {waited:.0} s {why} is {seconds} s)"))
    })
}

fn silent(vitals: &Vitals, limits: &Limits) -> Option<(Intervention, String)> {
    let limit = limits.handshake_seconds.filter(|limit| vitals.running_seconds >= *limit)?;
    let why =
        format!("the script did not speak to the recorder within {limit} s, and its rehearsal needs that");
    (!vitals.handshake_seen).then_some((Intervention::NoHandshake, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Vitals = Vitals {
        running_seconds: 10.0,
        quiet_seconds: Some(5.0),
        unprinted_seconds: 5.0,
        step: Some(7),
        committed_step: Some(4),
        held_in_save: None,
        handshake_seen: true,
        script_ended: false,
    };

    fn decided(vitals: Vitals, limits: Limits) -> Option<Intervention> {
        intervention(&vitals, &limits, None).map(|(intervention, _)| intervention)
    }

    /// Proves that nothing happens without a limit, however long and silent the attempt is.
    #[test]
    fn silence_alone_is_no_reason() {
        let vitals = Vitals {
            running_seconds: 1e9,
            quiet_seconds: Some(1e9),
            unprinted_seconds: 1e9,
            ..Vitals::default()
        };
        assert_eq!(decided(vitals, Limits::default()), None);
    }

    /// Proves each limit on both of its sides.
    #[test]
    fn limits_bite_when_reached_and_not_before() {
        let limits = |change: fn(&mut Limits)| {
            let mut limits = Limits::default();
            change(&mut limits);
            limits
        };
        let table: [(Limits, Option<Intervention>); 10] = [
            (limits(|l| l.last_step = Some(6)), Some(Intervention::Enough)),
            (limits(|l| l.last_step = Some(7)), None),
            (limits(|l| l.timeout_seconds = Some(10.0)), Some(Intervention::Timeout)),
            (limits(|l| l.timeout_seconds = Some(10.1)), None),
            (limits(|l| l.hang_after_seconds = Some(5.0)), Some(Intervention::Hang)),
            (limits(|l| l.hang_after_seconds = Some(5.1)), None),
            (limits(|l| (l.usd_left, l.usd_per_second) = (Some(1.0), 0.1)), Some(Intervention::Budget)),
            (limits(|l| (l.usd_left, l.usd_per_second) = (Some(0.0), 0.0)), None),
            (limits(|l| (l.gpu_seconds_left, l.gpus) = (Some(80.0), 8.0)), Some(Intervention::Budget)),
            (limits(|l| (l.gpu_seconds_left, l.gpus) = (Some(0.0), 0.0)), None),
        ];
        for (limits, expected) in table {
            assert_eq!(decided(CALM, limits), expected, "{limits:?}");
        }
    }

    /// Proves that an attempt which began with nothing left of a budget, or less, is ended with words that have no number below 0.
    #[test]
    fn what_is_left_is_not_below_nothing() {
        let why = |limits| intervention(&CALM, &limits, None).unwrap().1;
        for left in [0.0, -1.0] {
            let limits = Limits { seconds_left: Some(left), ..Limits::default() };
            assert_eq!(why(limits), "`retry.max_hours`: no hours were left");
            let limits = Limits { usd_left: Some(left), usd_per_second: 0.1, ..Limits::default() };
            assert_eq!(why(limits), "`retry.max_usd`: no USD were left");
            let limits = Limits { gpu_seconds_left: Some(left), gpus: 8.0, ..Limits::default() };
            assert_eq!(why(limits), "`retry.max_gpu_hours`: no GPU hours were left");
        }
        let limits = Limits { usd_left: Some(0.5), usd_per_second: 0.1, ..Limits::default() };
        assert_eq!(why(limits), "`retry.max_usd`: the remaining 0.50 USD are spent");
    }

    /// Proves that an attempt hangs before its first step if it reports and prints nothing for too long, or, where a limit for the start is
    /// set, whatever it prints; and that neither counts once it has begun.
    #[test]
    fn a_start_may_hang() {
        let (step, sign) = (|seconds| StartLimit::Step { seconds }, |seconds| StartLimit::Sign { seconds });
        let starting = Vitals { quiet_seconds: None, ..CALM };
        for (limit, hangs) in [(step(10.0), true), (step(10.1), false), (sign(5.0), true), (sign(5.1), false)]
        {
            let limits = Limits { start: Some(limit), ..Limits::default() };
            assert_eq!(decided(starting, limits).is_some(), hangs, "{limit:?}");
            assert_eq!(decided(CALM, limits), None, "{limit:?}");
        }
        let only_later = Limits { hang_after_seconds: Some(1.0), ..Limits::default() };
        assert_eq!(decided(starting, only_later), None);
    }

    /// Proves that a script which ended well neither hangs nor is silent, whatever it left behind does, while the
    /// limits of time and money still hold.
    #[test]
    fn what_a_script_leaves_does_not_hang() {
        let hangs = Limits { hang_after_seconds: Some(5.0), ..Limits::default() };
        let starts = Limits { start: Some(StartLimit::Step { seconds: 5.0 }), ..Limits::default() };
        let speaks = Limits { handshake_seconds: Some(5.0), ..Limits::default() };
        let timeout = Limits { timeout_seconds: Some(5.0), ..Limits::default() };
        let begun = Vitals { handshake_seen: false, ..CALM };
        let starting = Vitals { quiet_seconds: None, ..begun };
        let table = [
            (begun, hangs, Intervention::Hang, false),
            (starting, starts, Intervention::Hang, false),
            (begun, speaks, Intervention::NoHandshake, false),
            (begun, timeout, Intervention::Timeout, true),
        ];
        for (vitals, limits, expected, still_holds) in table {
            assert_eq!(decided(vitals, limits), Some(expected.clone()), "{limits:?}");
            let ended = Vitals { script_ended: true, ..vitals };
            assert_eq!(decided(ended, limits), Some(expected).filter(|_| still_holds), "{limits:?}");
        }
    }

    /// Proves that an injected fault happens at its step or at the first one seen after it.
    #[test]
    fn faults_happen_at_or_after_their_step() {
        let injection = Injection { fault: Fault::Kill, moment: InjectionTime::Step(7) };
        let at = |step| {
            intervention(&Vitals { step, ..CALM }, &Limits::default(), Some(&injection))
                .map(|(found, _)| found)
        };
        assert_eq!(at(Some(6)), None);
        assert_eq!(at(None), None);
        assert_eq!(at(Some(7)), Some(Intervention::Inject(Fault::Kill)));
        assert_eq!(at(Some(9)), Some(Intervention::Inject(Fault::Kill)));
    }

    /// Proves that a fault in a save waits until a save of that step, or a later one, is held.
    #[test]
    fn faults_in_a_save_wait_for_it() {
        let injection = Injection { fault: Fault::Kill, moment: InjectionTime::Save(300) };
        let in_save_of = |held_in_save| {
            intervention(&Vitals { held_in_save, ..CALM }, &Limits::default(), Some(&injection))
                .map(|(_, why)| why)
        };
        assert_eq!(in_save_of(None), None);
        assert_eq!(in_save_of(Some(200)), None);
        assert_eq!(in_save_of(Some(300)).unwrap(), "`--inject kill@save=300`, in the save of step 300");
    }

    /// Proves that the kill of a proof waits for the commit it resumes from, and that silence ends a rehearsal only.
    #[test]
    fn a_rehearsal_waits_for_its_commit_and_for_a_handshake() {
        let killed = |after, committed_step| {
            let moment = InjectionTime::StepAfterCommit { step: 7, committed: after };
            let injection = Injection { fault: Fault::Kill, moment };
            intervention(&Vitals { committed_step, ..CALM }, &Limits::default(), Some(&injection)).is_some()
        };
        assert!(killed(4, Some(4)) && killed(4, Some(6)));
        assert!(!killed(4, Some(3)) && !killed(4, None));
        let limits = Limits { handshake_seconds: Some(10.0), ..Limits::default() };
        assert_eq!(decided(CALM, limits), None);
        let silent = Vitals { handshake_seen: false, ..CALM };
        assert_eq!(decided(silent, limits), Some(Intervention::NoHandshake));
        assert_eq!(decided(Vitals { running_seconds: 9.9, ..silent }, limits), None);
    }
}
