//! What a command that ran without a run file showed, and the step that comes after it. Pure.

use trackway_core::Step;

/// Metrics and data files that are named; more are counted.
const NAMED_MAX: usize = 3;

/// What is known of a run without a run file when it has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunShown {
    /// Whether it completed.
    pub is_completed: bool,
    /// The names of the metrics that were recorded, without those of the machine.
    pub metrics: Vec<String>,
    /// What its record has not, in a sentence; none: it has all that was recorded and printed.
    pub not_kept: Option<String>,
    /// How many checkpoints were committed.
    pub checkpoint_count: u64,
    /// The newest committed step, from which it can be resumed.
    pub resume_step: Option<Step>,
    /// The newest checkpoint that is unsafe: no attempt continues from it.
    pub unsafe_step: Option<Step>,
    /// What that checkpoint lacks, as it holds weights without it: a retry starts this over.
    pub starts_over: Vec<String>,
    /// Whether the script read no checkpoint when it was last to continue from one.
    pub reads_none: bool,
    /// The arguments by which it would continue, as its text declares them; empty: it declares none.
    pub resume_arguments: Vec<String>,
    /// A checkpoint that the script wrote and that was not committed, and why.
    pub not_committed: Option<(String, String)>,
    /// Data files that its command or its script names.
    pub data: Vec<String>,
}

/// Two sentences: what was found, and the command that comes next, with its reason.
#[must_use]
pub fn next_step(shown: &RunShown) -> [String; 2] {
    [format!("{}; {}", metrics(shown), checkpoints(shown)), next(shown)]
}

fn metrics(shown: &RunShown) -> String {
    match shown.metrics.len() {
        0 => match &shown.not_kept {
            Some(not_kept) => format!("no metrics are in the record: {not_kept}"),
            None => "found no metrics: lines such as `step 20 loss 0.31` are recorded".to_owned(),
        },
        1 => format!("found the metric {}", shown.metrics[0]),
        count => format!("found {count} metrics ({})", listed(&shown.metrics)),
    }
}

fn checkpoints(shown: &RunShown) -> String {
    let lacked = shown.starts_over.join(", ");
    let used = match shown.reads_none {
        true => "but the script read none when it was resumed".to_owned(),
        false if lacked.is_empty() => "from which a retry continues".to_owned(),
        false => format!("with weights and without {lacked}: a retry starts these over"),
    };
    match (shown.resume_step, shown.checkpoint_count, &shown.not_committed) {
        (Some(step), 1, _) => format!("a checkpoint of step {step}, {used}"),
        (Some(step), count, _) => format!("{count} checkpoints, the newest of step {step}, {used}"),
        (None, _, Some((path, why))) => format!("`{path}` is not a checkpoint to continue from: {why}"),
        (None, _, None) => match shown.unsafe_step {
            Some(step) => {
                format!("checkpoints, of which none is safe (the newest is of step {step}): a retry begins again")
            }
            None => "no checkpoint that Trackway recognises: a retry begins again, unless the script finds one itself"
                .to_owned(),
        },
    }
}

fn next(shown: &RunShown) -> String {
    let parts: Vec<&str> = [
        Some("its command"),
        (!shown.data.is_empty()).then_some("its data"),
        shown.resume_step.map(|_| "its checkpoints"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let contents = match parts.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    };
    let file =
        format!("`trackway init --from last` writes a run file with {contents}, for retries and checks");
    match shown.resume_step {
        Some(_) if shown.reads_none => {
            format!("next: {file}; {}", option_to_continue(&shown.resume_arguments))
        }
        Some(_) if !shown.starts_over.is_empty() => format!("next: {file}"),
        Some(step) if !shown.is_completed => {
            format!(
                "next: `trackway resume last` continues from step {step} if the script reads its checkpoint, which its first step shows; {file}"
            )
        }
        _ => format!("next: {file}"),
    }
}

/// What to do about a script that read no checkpoint when it was to continue.
#[must_use]
pub fn option_to_continue(arguments: &[String]) -> String {
    match arguments {
        [] => "name the script's option to continue in its `checkpoint.resume`".to_owned(),
        found => format!("pass the script's option `{}` in `checkpoint.resume`", found.join(" ")),
    }
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        _ => format!("{shown}, …"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Proves what is said of metrics: of none how to print them or what could not be kept, of few their names, of many also
    /// how many there are.
    #[test]
    fn metrics_are_named() {
        let cases: [(&[&str], &str); 4] = [
            (&[], "found no metrics: lines such as `step 20 loss 0.31` are recorded; "),
            (&["loss"], "found the metric loss; "),
            (&["a", "b", "c"], "found 3 metrics (a, b, c); "),
            (&["a", "b", "c", "d"], "found 4 metrics (a, b, c, …); "),
        ];
        for (names, expected) in cases {
            let [found, _] = next_step(&RunShown { metrics: strings(names), ..RunShown::default() });
            assert!(found.starts_with(expected), "{found}");
        }
        let not_kept = Some("2 values could not be kept".to_owned());
        let [found, _] = next_step(&RunShown { not_kept, ..RunShown::default() });
        assert!(found.starts_with("no metrics are in the record: 2 values could not be kept; "), "{found}");
    }

    /// Proves what is said of checkpoints: how many there are and the step that a retry continues from, why the one
    /// that was written does not count, or that there is none.
    #[test]
    fn checkpoints_are_what_a_retry_continues_from() {
        let torn = Some(("ckpt.pt".to_owned(), "it ends early".to_owned()));
        for (checkpoint_count, resume_step, not_committed, expected) in [
            (1, Some(20), None, "a checkpoint of step 20, from which a retry continues"),
            (3, Some(60), torn.clone(), "3 checkpoints, the newest of step 60, from which a retry continues"),
            (0, None, torn, "`ckpt.pt` is not a checkpoint to continue from: it ends early"),
            (
                0,
                None,
                None,
                "no checkpoint that Trackway recognises: a retry begins again, unless the script finds one itself",
            ),
        ] {
            let shown = RunShown { checkpoint_count, resume_step, not_committed, ..RunShown::default() };
            let [found, _] = next_step(&shown);
            assert!(found.ends_with(expected), "{found}");
        }
        let [found, _] = next_step(&RunShown { unsafe_step: Some(60), ..RunShown::default() });
        assert!(found.ends_with("none is safe (the newest is of step 60): a retry begins again"), "{found}");
    }

    /// Proves that of a checkpoint with weights alone, such as a model that a library wrote, it is said what a retry starts over, and that
    /// nothing promises to continue from its step.
    #[test]
    fn what_a_checkpoint_lacks_is_said() {
        let starts_over = strings(&["optimizer", "rng"]);
        let shown =
            RunShown { checkpoint_count: 1, resume_step: Some(40), starts_over, ..RunShown::default() };
        let [found, next] = next_step(&shown);
        let expected =
            "a checkpoint of step 40, with weights and without optimizer, rng: a retry starts these over";
        assert!(found.ends_with(expected), "{found}");
        assert!(!next.contains("continues from"), "{next}");
    }

    /// Proves that a script which read none of its checkpoints when it was resumed is not promised to continue from them, however its last
    /// attempt ended, and that what it lacks is named.
    #[test]
    fn a_script_that_reads_no_checkpoint_is_not_promised_to_continue() {
        for (is_completed, checkpoint_count) in [(false, 2), (true, 1)] {
            let resume_step = Some(40);
            let shown = RunShown {
                is_completed,
                checkpoint_count,
                resume_step,
                reads_none: true,
                ..RunShown::default()
            };
            let [found, next] = next_step(&shown);
            assert!(found.ends_with("of step 40, but the script read none when it was resumed"), "{found}");
            assert!(
                !next.contains("trackway resume") && next.ends_with("in its `checkpoint.resume`"),
                "{next}"
            );
        }
    }

    /// Proves that the run file is offered with what would be in it, and the resume of a run that did not complete before it.
    #[test]
    fn the_run_file_is_offered_with_its_contents() {
        let of = |is_completed: bool, data: &[&str], resume_step: Option<Step>| {
            let shown = RunShown { is_completed, data: strings(data), resume_step, ..RunShown::default() };
            next_step(&shown)[1].clone()
        };
        let file = |contents: &str| {
            format!("`trackway init --from last` writes a run file with {contents}, for retries and checks")
        };
        assert_eq!(of(true, &[], None), format!("next: {}", file("its command")));
        assert_eq!(
            of(true, &["train.csv"], Some(60)),
            format!("next: {}", file("its command, its data and its checkpoints"))
        );
        assert_eq!(of(false, &[], None), format!("next: {}", file("its command")));
        assert_eq!(
            of(false, &[], Some(60)),
            format!(
                "next: `trackway resume last` continues from step 60 if the script reads its checkpoint, which its first step shows; {}",
                file("its command and its checkpoints")
            )
        );
    }
}
