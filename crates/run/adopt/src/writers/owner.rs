//! Who wrote a checkpoint: a decision over what was seen of its files, and nothing else.
//!
//! A file that is found where a script writes is not for that the script's. Without evidence it is a candidate: named,
//! and neither committed nor moved.

use trackway_core::Step;
use trackway_formats::writers::ShownBy;

use super::amounts::Less;

/// Whom one kind of evidence names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writers {
    /// A process of the attempt.
    pub own: bool,
    /// A process that does not belong to it.
    pub other: Option<String>,
    /// A process that had ended before it could be looked at.
    pub unknown: bool,
}

/// Who else could have written at the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Company {
    /// No process that can be seen.
    Alone,
    /// This one wrote something meanwhile.
    With(String),
    /// It is not known, for this reason.
    NotKnown(String),
    /// It was not looked at since.
    NotYet,
    /// Every process of the attempt had ended by then.
    Ended,
    /// The attempt had not begun by then.
    Before,
}

/// What is known of the writer of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The script or a callback in it reported the save.
    pub reported: bool,
    /// Whom the kernel named as the writer of its files.
    pub kernel: Writers,
    /// Who was seen with its files open for writing.
    pub open: Writers,
    /// Who else wrote at the time.
    pub company: Company,
    /// What the attempt wrote at the time, if that is known to be less than the files have.
    pub less: Option<Less>,
    /// Its step and the last one that the attempt had reached, if that is too far behind to have made it.
    pub beyond: Option<(Step, Step)>,
    /// Whether the run file names its path.
    pub is_named: bool,
}

/// Whose a checkpoint is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The attempt wrote it.
    Own {
        /// What shows it.
        by: ShownBy,
    },
    /// Another one wrote it.
    Other { who: String },
    /// It is not known who wrote it.
    Unknown {
        /// Why not.
        why: String,
    },
}

impl Owner {
    /// What shows that it is the attempt's own, if anything does.
    #[must_use]
    pub fn shown_by(&self) -> Option<ShownBy> {
        if let Self::Own { by } = self { Some(*by) } else { None }
    }

    /// Whether something shows it that was seen, and not only that the run file names it: then it may be moved.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.shown_by().is_some_and(|by| by != ShownBy::Claim)
    }

    /// Why it is not committed; none if it is the attempt's own.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Own { .. } => None,
            Self::Other { who } => Some(format!("{who} wrote it, which does not belong to this attempt")),
            Self::Unknown { why } => Some(format!("nothing shows that this attempt wrote it: {why}")),
        }
    }
}

/// Decides, the strongest evidence first. None: it has to be looked at once more.
#[must_use]
pub fn owner(evidence: &Evidence) -> Option<Owner> {
    let own = |by| Some(Owner::Own { by });
    let unknown = |why: String| Some(Owner::Unknown { why });
    let Evidence { reported, kernel, open, company, less, beyond, is_named } = evidence;
    if *reported {
        return own(ShownBy::Report);
    }
    if let Some(who) = kernel.other.as_ref().or(open.other.as_ref()) {
        return Some(Owner::Other { who: who.clone() });
    }
    if kernel.own {
        return own(ShownBy::Kernel);
    }
    if open.own {
        return own(ShownBy::Open);
    }
    // What was reached is looked up by the time of the file, and says nothing of one from before.
    if let Some((step, reached)) = beyond.filter(|_| *company != Company::Before) {
        return unknown(format!("it is of step {step}, and the attempt had reached step {reached}"));
    }
    match (company, less) {
        (Company::NotYet, _) => None,
        (Company::With(who), _) => unknown(format!("{who} may have written it at the same time")),
        (Company::Ended, _) => unknown("it was written after the attempt had ended".into()),
        (Company::Before, _) => unknown("it was written before the attempt began".into()),
        (_, Some(less)) => unknown(less_than_written(*less)),
        (Company::Alone, None) if !kernel.unknown => own(ShownBy::Alone),
        _ if *is_named => own(ShownBy::Claim),
        (Company::Alone, None) => {
            unknown("the process that wrote it had ended before it could be looked at".into())
        }
        (Company::NotKnown(why), None) => unknown(why.clone()),
    }
}

fn less_than_written(Less { wrote, bytes, beside }: Less) -> String {
    let (wrote, this, all) = (in_words(wrote), in_words(bytes), in_words(bytes.saturating_add(beside)));
    match beside {
        0 => format!("the attempt wrote {wrote} in the time in which this file of {this} was written"),
        _ => format!(
            "the attempt wrote {wrote} in the time in which {all} were written, {this} of them to this file"
        ),
    }
}

/// `1.2 kB`
fn in_words(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let scaled = |unit: usize| bytes as f64 / 1000_f64.powi(unit as i32 + 1);
    // What is rounded to 1000 is one of the next unit.
    let unit = (0..UNITS.len()).find(|unit| scaled(*unit) < 999.95).unwrap_or(UNITS.len() - 1);
    format!("{:.1} {}", scaled(unit), UNITS[unit])
}

/// Whose several files are that are one checkpoint: another's if one of them is, and the attempt's own only if all are,
/// by the weakest of what shows it.
#[must_use]
pub(crate) fn owner_of_all(owners: &[Option<Owner>]) -> Option<Owner> {
    let first = |is: fn(&Owner) -> bool| owners.iter().flatten().find(|owner| is(owner)).cloned();
    let others = first(|owner| matches!(owner, Owner::Other { .. }));
    if others.is_some() || owners.iter().any(Option::is_none) {
        return others;
    }
    let weakest = || owners.iter().flatten().max_by_key(|owner| owner.shown_by()).cloned();
    first(|owner| matches!(owner, Owner::Unknown { .. })).or_else(weakest)
}

/// The step of a checkpoint and the one that was reached when it was written, if no script that prints its steps is so far ahead of them.
///
/// `slack`: how far the printed steps may be behind; at least two, since a script may save a step before it prints it.
#[must_use]
pub fn beyond(step: Step, reached: Option<Step>, slack: Step) -> Option<(Step, Step)> {
    let reached = reached?;
    (step > reached.saturating_add(slack.max(2))).then_some((step, reached))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Evidence {
        Evidence {
            reported: false,
            kernel: Writers::default(),
            open: Writers::default(),
            company: Company::NotKnown("no /proc".into()),
            less: None,
            beyond: None,
            is_named: false,
        }
    }

    /// Proves, row by row, that stronger evidence wins: a report over everything, another writer over everything but
    /// that, a writer of the attempt over what else is known; that a claim holds only where nothing contradicts it; and
    /// that without evidence nothing is the attempt's.
    #[test]
    fn the_strongest_evidence_decides() {
        let own = || Writers { own: true, ..Writers::default() };
        let other = || Writers { other: Some("python (7)".into()), ..Writers::default() };
        let both = || Writers { own: true, ..other() };
        let gone = || Writers { unknown: true, ..Writers::default() };
        let with = || Company::With("python (7)".into());
        let named = |evidence: Evidence| Evidence { is_named: true, ..evidence };
        let alone = || Evidence { company: Company::Alone, ..nothing() };
        let less =
            |evidence| Evidence { less: Some(Less { wrote: 30, bytes: 4_000, beside: 0 }), ..evidence };
        let rows: Vec<(Evidence, &str)> = vec![
            (nothing(), "unknown"),
            (named(nothing()), "claim"),
            (alone(), "alone"),
            (named(alone()), "alone"),
            (Evidence { company: with(), ..nothing() }, "unknown"),
            (named(Evidence { company: with(), ..nothing() }), "unknown"),
            (Evidence { company: Company::NotYet, ..nothing() }, "later"),
            (named(Evidence { company: Company::Ended, ..nothing() }), "unknown"),
            (named(Evidence { company: Company::Before, ..nothing() }), "unknown"),
            (named(Evidence { company: Company::NotYet, ..nothing() }), "later"),
            (Evidence { open: own(), company: with(), ..nothing() }, "open"),
            (Evidence { kernel: own(), company: with(), ..nothing() }, "kernel"),
            (Evidence { kernel: own(), open: own(), ..alone() }, "kernel"),
            (Evidence { kernel: other(), ..alone() }, "other"),
            (named(Evidence { open: other(), ..alone() }), "other"),
            (Evidence { kernel: both(), ..alone() }, "other"),
            (Evidence { kernel: own(), open: other(), ..alone() }, "other"),
            (Evidence { kernel: gone(), ..alone() }, "unknown"),
            (named(Evidence { kernel: gone(), ..alone() }), "claim"),
            (Evidence { kernel: gone(), open: own(), ..alone() }, "open"),
            (named(Evidence { beyond: Some((60, 30)), ..alone() }), "unknown"),
            (less(alone()), "unknown"),
            (less(named(alone())), "unknown"),
            (less(named(nothing())), "unknown"),
            (less(Evidence { open: own(), ..alone() }), "open"),
            (less(Evidence { company: Company::NotYet, ..nothing() }), "later"),
            (Evidence { beyond: Some((60, 30)), kernel: own(), ..alone() }, "kernel"),
            (Evidence { reported: true, kernel: other(), ..nothing() }, "report"),
        ];
        for (evidence, expected) in rows {
            let found = match owner(&evidence) {
                None => "later",
                Some(Owner::Own { by }) => by.as_str(),
                Some(Owner::Other { .. }) => "other",
                Some(Owner::Unknown { .. }) => "unknown",
            };
            assert_eq!(found, expected, "{evidence:?}");
        }
    }

    /// Proves that what the attempt wrote and what it would have had to write are in the reason.
    #[test]
    fn the_reason_has_the_numbers() {
        for (wrote, bytes, expected) in [
            (1_200, 40_000, "the attempt wrote 1.2 kB in the time in which this file of 40.0 kB was written"),
            (0, 2_500_000, "the attempt wrote 0 bytes in the time in which this file of 2.5 MB was written"),
            (
                999_990,
                3_000_000_000,
                "the attempt wrote 1.0 MB in the time in which this file of 3.0 GB was written",
            ),
        ] {
            assert_eq!(less_than_written(Less { wrote, bytes, beside: 0 }), expected);
        }
        let beside = less_than_written(Less { wrote: 1_200, bytes: 1_100, beside: 1_100 });
        let expected =
            "the attempt wrote 1.2 kB in the time in which 2.2 kB were written, 1.1 kB of them to this file";
        assert_eq!(beside, expected);
    }

    /// Proves that of several files the least that is known decides.
    #[test]
    fn several_files_are_own_if_all_are() {
        let own = |by| Some(Owner::Own { by });
        let other = || Some(Owner::Other { who: "b".into() });
        let unknown = || Some(Owner::Unknown { why: "no".into() });
        for (owners, expected) in [
            (vec![own(ShownBy::Alone), own(ShownBy::Kernel)], own(ShownBy::Alone)),
            (vec![own(ShownBy::Kernel), own(ShownBy::Claim)], own(ShownBy::Claim)),
            (vec![own(ShownBy::Kernel), unknown()], unknown()),
            (vec![own(ShownBy::Kernel), None], None),
            (vec![None, unknown(), other()], other()),
        ] {
            assert_eq!(owner_of_all(&owners), expected, "{owners:?}");
        }
    }

    /// Proves that a save just before its step is printed contradicts nothing, nor one without printed steps, and that one far ahead does.
    #[test]
    fn only_a_step_far_ahead_is_a_contradiction() {
        for (step, reached, slack, expected) in [
            (60, None, 0, None),
            (30, Some(30), 0, None),
            (32, Some(30), 0, None),
            (33, Some(30), 0, Some((33, 30))),
            (500, Some(300), 200, None),
            (501, Some(300), 200, Some((501, 300))),
            (10, Some(800), 0, None),
        ] {
            assert_eq!(beyond(step, reached, slack), expected, "{step} {reached:?} {slack}");
        }
    }

    /// Proves that what the run file only names is not moved, and that the reasons name the writer.
    #[test]
    fn a_claim_is_not_seen() {
        assert!(!Owner::Own { by: ShownBy::Claim }.is_seen());
        assert!(Owner::Own { by: ShownBy::Alone }.is_seen());
        let other = Owner::Other { who: "python (7)".into() };
        assert!(other.reason().unwrap().contains("python (7) wrote it") && !other.is_seen());
    }
}
