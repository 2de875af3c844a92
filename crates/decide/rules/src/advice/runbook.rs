//! What a person can do, per reason of an end.

use trackway_core::TerminationReason as Reason;

use super::lines::{Line, lines, optional};

/// What is known about the ends for one reason.
struct End {
    /// As the beginning of a sentence.
    meaning: &'static str,
    /// Short lines, most useful first. The long version is `docs/termination-reasons.md`.
    actions: &'static [Line],
}

macro_rules! ends {
    ($($reason:ident: $meaning:literal { $($lines:tt)* })+) => {
        const fn end(reason: Reason) -> End {
            match reason { $(Reason::$reason => End { meaning: $meaning, actions: lines! { $($lines)* } }),+ }
        }
    };
}

ends! {
    Completed: "Training finished" { "no action is needed" }
    EarlyStopped: "More training would not have helped" {
        "evaluate the best checkpoint, not the last" if Checkpoint,
        "look at the validation curve before giving more patience",
    }
    Cancelled: "A user requested the end" { "nothing is wrong: it was ended on request" }
    Preempted: "The machine was reclaimed" {
        "let it resume; if it never commits in time, save more often or at the preemption notice",
        "move to capacity with a higher priority if this repeats",
    }
    NodeFailure: "A machine, a device or its link broke" {
        "keep the named node or device out of the next placement",
        "have it checked (Xid, ECC, link counters) before it returns",
    }
    HostOom: "The memory of the host or container ran out" {
        "fewer loader workers or less prefetch; a larger memory request or a larger /dev/shm" [LoaderChanged],
        "watch memory over time: a steady rise is a leak" [MemoryGrew],
        "smaller batches, shorter rows or a smaller model" [SizeRaised],
        "add an entry to retry.host_oom.plan",
    }
    DeviceOom: "The memory of an accelerator ran out" {
        "smaller batch with gradient accumulation, then activation checkpointing, then sharding" [SizeRaised],
        "add entries to retry.device_oom.plan so that the next run falls back by itself",
        "check for other processes on the device and for tensors kept in lists" [MemoryGrew],
    }
    DataError: "The content of the data stopped the run" {
        "open the named file or row; quarantine it or repair the source",
        "find the rows with `trackway data check DATA`" if Data,
        "nothing is launched until the data, its schema or the code changes",
    }
    SchemaDrift: "The data no longer has the shape that the code expects" {
        "compare the schema with that of the last good run: it is among what changed" if Snapshots,
        "fix the producer, or change the contract and the code together",
    }
    CodeError: "The program failed" {
        "read the deciding line and the frame above it",
        "reproduce it with one batch: `trackway rehearse FILE`" if Rehearsal,
    }
    Hang: "Training made no progress" {
        "look where it waits: its stack",
        "a save, a download or a data loader that takes longer than the time-out looks the same" [Starved LoaderChanged],
        "of several ranks: which one is behind, and its last collective? same operations on each? uneven batches? set time-outs on \
         barriers" if Ranks,
    }
    Timeout: "A time limit was reached" {
        "raise the time limit, or make the work smaller",
        "or resume: commits before the limit are kept" if Checkpoint,
        "commit before the limit: act on the scheduler's warning signal",
    }
    NumericDivergence: "The loss or the gradients diverged" {
        "learning rate ÷ 10, clip gradients, longer warm-up" [RateRaised NumbersGrew],
        "check the inputs of the step for NaN and Inf" [DataNotFinite DataChanged],
        "resume from a checkpoint before the divergence" if Checkpoint,
        "where it computes in fp16, bf16 instead" [Halves],
    }
    Unhealthy: "A detector ended it because its input, its speed or its memory was not in order" {
        "look at what the detector found, with its cause and its advice: `trackway explain`",
        "repair the loader, the machine or the leak before it continues",
    }
    CheckpointError: "A checkpoint could not be saved, read or matched" {
        "which checkpoint was read? `trackway checkpoint verify RUN` reads those of the run" if Checkpoint,
        "model, world size or library version changed since it was written?" [SizeRaised PackageChanged],
    }
    StorageError: "A disk, file system or object store failed" {
        "free space or raise the quota; count inodes too",
        "check the mount or the bucket from the same node, then launch again",
    }
    NetworkError: "Machines could not reach each other or a service" {
        "is the service or the peer reachable from that node? name, port, proxy, certificate",
        "download models and data before the run, so that it needs no network",
    }
    EvaluatorError: "The evaluator that Trackway launched failed; the training is not affected" {
        "the training attempt is good: repeat the evaluation alone with `trackway eval run RUN`",
        "check the judge's quota, key and rate limit, the task's files, the metric's input",
    }
    BudgetExhausted: "Money, credit or quota was used up" {
        "raise the budget or the quota",
        "or stop here: what was committed is kept" if Checkpoint,
        "see which attempts spent it: `trackway explain`",
    }
    RungRejected: "The metrics of the rung do not meet the promotion rule" {
        "compare with the rung before: did the metric or only its interval move?",
        "change the recipe, or relax the promotion rule and document why",
    }
    Fenced: "A newer attempt owns the run's checkpoints" {
        "another attempt owns the run's checkpoints: look for a second launch",
        "ignore everything this attempt wrote after the fence",
    }
    Superseded: "It was replaced on purpose by another attempt" { "look at the attempt that replaced it" }
    Unknown: "The evidence does not show why it ended" {
        "look at the last lines and the launcher's records; the evidence did not decide",
        "if a signal ended it: check host memory, the scheduler's log and who was logged in",
    }
}

/// What is known about the ends by some rules, where it is closer than what is known about their reason.
struct Closer {
    rules: &'static [&'static str],
    /// As the beginning of a sentence; none: that of the reason holds.
    meaning: Option<&'static str>,
    actions: &'static [Line],
}

macro_rules! closer {
    ($($($rule:literal)* => $($meaning:literal)? { $($lines:tt)* })+) => {
        &[$(Closer { rules: &[$($rule),*], meaning: optional!($($meaning)?), actions: lines! { $($lines)* } }),+]
    };
}

const CREATE_OR_CORRECT: &str = "the path is resolved against the working directory of the run; create there what is missing, the file or its folder, or correct the path";

const BY_RULE: &[Closer] = closer! {
    "process.exit_0_after_traceback" => "Training ended with exit code 0 after a traceback, and whether that was handled cannot be known" {
        "a traceback was printed before the end: the evidence has its last line; if the script did not handle it, what follows it is \
         missing",
    }
    "process.exit_0_after_error" => "Training ended with exit code 0 after it logged an error, and whether that was handled cannot be known" {
        "an error was logged just before the end: the evidence has its line; if the result needs what failed there, it is missing",
    }
    "storage.file_size" "process.file_size_limit" => "A file was larger than the limit of file size" {
        "raise the limit of file size of the run (`ulimit -f`) or use a file system that takes such a file, or write smaller files",
    }
    "host_oom.loader_worker" => "A loader worker was killed, as the kernel does when memory runs out" {
        "was it memory? the kernel's log (`dmesg`) names a process that it killed for that; else see who sent the signal",
        "fewer loader workers or less prefetch; a larger memory request or a larger /dev/shm" [LoaderChanged],
    }
    "storage.no_space" "storage.quota" "storage.ephemeral_eviction" => { "free space or raise the quota; count inodes too" }
    "storage.permission" => "The run was refused a file or a store" {
        "give the user of the run the right to what was refused, or the credential of that store; or name another place",
    }
    "storage.io_error" "storage.stale_handle" "storage.read_only" "storage.mount" => {
        "check the mount from the same node, then launch again",
    }
    "storage.object_store" => { "check the bucket from the same node: its address, region, credential and limits; then launch again" }
    "code.import" => { "install what is missing where the run finds it, or correct its name; then launch again" }
    "code.syntax" => { "correct the named line: nothing of that file ran" }
    "code.arguments" => { "compare the command with what the script's own `--help` lists" }
    "checkpoint.unreadable_archive" => {
        "the file is torn or damaged: put it away and read an older one",
        "`trackway checkpoint verify RUN` shows which of the run are whole" if Checkpoint,
    }
    "checkpoint.absent_file" => "A checkpoint that the run needs is not there" {
        CREATE_OR_CORRECT,
        "`trackway checkpoint verify RUN` shows which of the run are whole" if Checkpoint,
    }
    "data.absent_file" "data.missing_file" => "A file that the run needs is not there" { CREATE_OR_CORRECT }
    "host_oom.cpu_allocator" "host_oom.memory_error" =>
        "One allocation was larger than what was left for this process, by a limit or of the memory" {
        "look at the shape of the array that did not fit, and at what it is computed from" [SizeRaised],
        "if it is not large, watch memory over time: a steady rise is a leak" [MemoryGrew],
    }
    "process.segmentation_fault" "process.illegal_instruction" "process.arithmetic_fault" "process.windows_crash" "code.crash" =>
        "Native code crashed" {
        "see which native code ran: the last lines, and with `PYTHONFAULTHANDLER=1` in its environment (Python's `faulthandler`) the \
         next time the frame",
        "compare the versions of native libraries with those of the last good run; try another machine" [PackageChanged],
    }
    "process.abort" => "Native code ended the process" {
        "see which native code ended it: the last lines, and with `PYTHONFAULTHANDLER=1` in its environment (Python's `faulthandler`) \
         the next time the frame",
    }
};

/// What a rule of data says of settings, which are the code's matter.
const OF_SETTINGS: &[Closer] = closer! {
    => "A setting cannot be read" {
        "correct the setting: the deciding line has its value, the frame above it shows which one it is",
        "read the deciding line and the frame above it",
    }
};

/// What is closer to an end than its reason. What to do about an evaluation does not depend on the rule.
fn closer_to(reason: Reason, rule: Option<&str>) -> Option<&'static Closer> {
    let rule = rule.filter(|_| reason != Reason::EvaluatorError)?;
    let of_settings = || reason == Reason::CodeError && rule.starts_with("data.");
    let by_rule = BY_RULE.iter().find(|closer| closer.rules.contains(&rule));
    by_rule.or_else(|| of_settings().then_some(&OF_SETTINGS[0]))
}

/// What must be done before a resume does better, as the beginning of a sentence. `None`: nothing has to be.
#[must_use]
pub fn before_resume(reason: Reason, rule: Option<&str>) -> Option<&'static str> {
    let rule = rule.unwrap_or_default();
    match (reason, rule) {
        (Reason::StorageError, "storage.no_space" | "storage.quota" | "storage.ephemeral_eviction") => {
            Some("when space is freed or the quota raised, ")
        }
        (Reason::StorageError, "storage.file_size" | "process.file_size_limit") => {
            Some("when the limit is raised, ")
        }
        (Reason::StorageError, "storage.permission") => Some("when the right or the credential is there, "),
        (Reason::StorageError, "storage.object_store") => Some("when the bucket answers again, "),
        (Reason::StorageError, _) => Some("when the storage works again, "),
        (Reason::HostOom, "host_oom.shared_memory" | "host_oom.bus_error" | "host_oom.loader_worker") => {
            Some("when there is a larger /dev/shm or memory, or there are fewer loader workers, ")
        }
        (Reason::HostOom, _) => Some("when more memory is given or less is needed, "),
        _ => None,
    }
}

/// What a person can do, most useful first. `rule`: the one that decided about the end, if it is known.
#[must_use]
pub fn next_actions(reason: Reason, rule: Option<&str>) -> &'static [Line] {
    closer_to(reason, rule).map_or(end(reason).actions, |closer| closer.actions)
}

/// What an end for `reason`, by `rule` if it is known, means, as the beginning of a sentence.
#[must_use]
pub fn meaning(reason: Reason, rule: Option<&str>) -> &'static str {
    closer_to(reason, rule).and_then(|closer| closer.meaning).unwrap_or(end(reason).meaning)
}

/// The section of the runbook about a reason, as a path from the root of the repository with a stable anchor.
#[must_use]
pub fn runbook_section(reason: Reason) -> String {
    format!("docs/termination-reasons.md#{reason}")
}

#[cfg(test)]
mod tests {
    use trackway_core::detect::Detector;

    use super::*;
    use crate::advice::lines::{Need, RankedLine, Sign, joined, likely, ranked};
    use crate::advice::symptoms::symptom_of_detector;

    fn texts(ranked: &[RankedLine<'_>]) -> Vec<String> {
        ranked.iter().map(ToString::to_string).collect()
    }

    /// Proves that causes with evidence come first, the strongest sign before the others and each with what was seen,
    /// and that it is said of those without that there is none.
    #[test]
    fn causes_are_ranked_by_evidence() {
        let causes = symptom_of_detector(Detector::NonFinite).causes;
        let plain = "learning rate too high; NaN or Inf in features; overflow or division by zero";
        assert_eq!(joined(causes), plain);
        assert_eq!(likely(causes, &[]), format!("{plain} (without evidence for one)"));
        let rate = (Sign::RateRaised, "lr: 1 → 9".to_owned());
        let data = (Sign::DataNotFinite, "NaN in row 20".to_owned());
        assert_eq!(
            likely(causes, &[rate.clone(), data]),
            "NaN or Inf in features (NaN in row 20); learning rate too high (lr: 1 → 9); without evidence: overflow or division by zero"
        );
        let of_memory = [rate, (Sign::MemoryGrew, "it grew".to_owned())];
        let actions = ranked(next_actions(Reason::DeviceOom, None), &of_memory, |_| true);
        assert!(texts(&actions)[0].ends_with("kept in lists (it grew)"), "{actions:?}");
        assert_eq!(likely(symptom_of_detector(Detector::DataStarvation).causes, &[]), "waiting for storage");
    }

    /// Proves that no advice names a checkpoint to continue from, or anything else that is to be filled in, where that is not there.
    #[test]
    fn advice_needs_what_it_names() {
        let of_detectors = Detector::ALL.iter().map(|it| symptom_of_detector(*it).try_first);
        let of_reasons = Reason::ALL.iter().map(|it| next_actions(*it, None));
        let of_rules = BY_RULE.iter().map(|closer| closer.actions);
        for line in of_detectors.chain(of_reasons).chain(of_rules).flatten() {
            let names = |words: &[&str]| words.iter().any(|word| line.text.contains(word));
            let need = match () {
                () if names(&["resume from", "or resume", "checkpoint verify", "restart from"]) => {
                    Some(Need::Checkpoint)
                }
                () if names(&[" DATA`"]) => Some(Need::Data),
                () if names(&[" FILE`"]) => Some(Need::Rehearsal),
                () if names(&["compare the schema"]) => Some(Need::Snapshots),
                () => continue,
            };
            assert_eq!(line.need, need, "{}", line.text);
            assert_eq!(texts(&ranked(&[*line], &[], |_| false)), Vec::<String>::new());
        }
    }

    /// Proves that the section of every reason exists in the runbook, and that no two reasons mean the same.
    #[test]
    fn every_reason_has_a_section() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        for reason in Reason::ALL {
            let section = runbook_section(*reason);
            let (file, anchor) = section.split_once('#').unwrap();
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            assert!(text.lines().any(|line| line == format!("## {anchor}")), "{section}");
            let alike = Reason::ALL.iter().filter(|other| meaning(**other, None) == meaning(*reason, None));
            assert_eq!(alike.count(), 1, "{reason}");
        }
    }

    /// Proves that closer advice is about rules that exist, each once, and that it comes in the place of that of the reason.
    #[test]
    fn closer_advice_is_about_rules() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let listed = std::fs::read_to_string(root.join("docs/termination-reasons.md")).unwrap();
        let mut rules: Vec<&str> = BY_RULE.iter().flat_map(|closer| closer.rules.iter().copied()).collect();
        for rule in &rules {
            assert!(listed.contains(&format!("| `{rule}` |")), "{rule}");
        }
        let count = rules.len();
        rules.sort_unstable();
        rules.dedup();
        assert_eq!(rules.len(), count);
        let general = next_actions(Reason::StorageError, None);
        assert_ne!(next_actions(Reason::StorageError, Some("storage.permission")), general);
        assert_eq!(next_actions(Reason::StorageError, Some("exception_name.storage")), general);
        let of_evaluation = next_actions(Reason::EvaluatorError, None);
        assert_eq!(next_actions(Reason::EvaluatorError, Some("storage.permission")), of_evaluation);
    }

    /// Proves that a value of the settings is advised about as a setting, and one of the data as data.
    #[test]
    fn a_setting_is_not_repaired_as_data() {
        let rule = Some("data.delimited_text");
        let says =
            |reason, words: &str| next_actions(reason, rule).iter().any(|line| line.text.contains(words));
        assert!(says(Reason::CodeError, "correct the setting") && !says(Reason::CodeError, "trackway data"));
        assert!(says(Reason::DataError, "trackway data check") && !says(Reason::DataError, "setting"));
        assert_eq!(meaning(Reason::CodeError, rule), "A setting cannot be read");
        let absent = meaning(Reason::CodeError, Some("data.absent_file"));
        assert_eq!(absent, "A file that the run needs is not there");
    }

    /// Proves that what has to be done before a resume is said where the machine is to be changed, by the rule, and nowhere else.
    #[test]
    fn a_machine_is_changed_before_a_resume() {
        let space = before_resume(Reason::StorageError, Some("storage.quota"));
        assert_eq!(space, Some("when space is freed or the quota raised, "));
        for reason in Reason::ALL.iter().copied() {
            let is_of_machine = matches!(reason, Reason::StorageError | Reason::HostOom);
            assert_eq!(before_resume(reason, None).is_some(), is_of_machine, "{reason}");
        }
        for rule in ["storage.permission", "storage.object_store"] {
            let of_rule = before_resume(Reason::StorageError, Some(rule));
            assert_ne!(of_rule, before_resume(Reason::StorageError, None), "{rule}");
        }
        let shared = before_resume(Reason::HostOom, Some("host_oom.shared_memory"));
        assert!(shared.is_some_and(|said| said.contains("/dev/shm")));
    }

    /// Proves that an end whose rule says more than its reason is called what it is, and another one by its reason.
    #[test]
    fn a_rule_may_say_more_than_its_reason() {
        let refused = meaning(Reason::StorageError, Some("storage.permission"));
        assert_eq!(refused, "The run was refused a file or a store");
        let absent = meaning(Reason::DataError, Some("data.absent_file"));
        assert_eq!(absent, "A file that the run needs is not there");
        let large = meaning(Reason::HostOom, Some("host_oom.cpu_allocator"));
        assert!(large.starts_with("One allocation was larger than what was left for this process"));
        for rule in [None, Some("code.import"), Some("exception_name.code")] {
            assert_eq!(meaning(Reason::CodeError, rule), "The program failed");
        }
    }
}
