//! Whether the numbers that gates name will be there, before there is a model: a gate over a number that is never measured is
//! inconclusive for ever.

use std::collections::{BTreeMap, BTreeSet};

use trackway_core::checks::{Finding, Severity};
use trackway_core::text::quoted_list;
use trackway_formats::gate::{BLIND_SPOT, Gate, Number, Over, PROBE, SLICE};
use trackway_formats::runfile::nearest;

/// Beginnings of metrics that end with a number, such as `pinball_0.9`: which there are is known with the rows.
const NUMBERED: [&str; 2] = ["pass_at_", "pinball_"];

/// What an evaluation will measure.
#[derive(Debug, Clone, Default)]
pub struct KnownNumbers {
    /// The names, as gates write them.
    pub names: BTreeSet<String>,
    /// Whether there can be no others. An evaluator that reports numbers may report any.
    pub is_complete: bool,
    /// Whether there is something to compare with.
    pub has_baseline: bool,
    /// Why numbers will have no interval, by their names.
    pub without_interval: BTreeMap<String, String>,
    /// Why numbers that such an evaluation measures will not be measured this time, by their names; they are not among the others.
    pub unmeasured: BTreeMap<String, String>,
}

impl KnownNumbers {
    fn has(&self, number: &Number) -> bool {
        if number.over != Over::One {
            let over = [SLICE, BLIND_SPOT, PROBE].into_iter().find(|it| number.name.starts_with(it));
            let Some(over) = over else { return false };
            let end = format!(".{}", &number.name[over.len()..]);
            let is_of = |name: &&String| name.starts_with(over) && name.len() > over.len() + end.len();
            return self.names.iter().filter(is_of).any(|name| name.ends_with(&end));
        }
        // As many blind spots as are found.
        let spot = number.name.strip_prefix(BLIND_SPOT).and_then(|name| name.split_once('.'));
        let spot = spot.filter(|(place, _)| place.parse::<u32>().is_ok());
        let of_spots = spot.map(|(_, metric)| format!("{BLIND_SPOT}all.{metric}"));
        let is_numbered =
            |begin: &&str| number.name.strip_prefix(*begin).is_some_and(|rest| rest.parse::<f64>().is_ok());
        self.names.contains(of_spots.as_ref().unwrap_or(&number.name))
            || !self.is_complete && NUMBERED.iter().any(is_numbered)
    }

    /// Why a number will not be measured although it could be.
    fn why_unmeasured(&self, number: &Number) -> Option<&str> {
        self.unmeasured.get(&number.name).map(String::as_str).filter(|_| !number.baseline)
    }

    /// The name that was probably meant.
    fn nearest(&self, number: &Number) -> Option<String> {
        if number.over == Over::One {
            return nearest(&number.name, self.names.iter().map(String::as_str)).map(str::to_owned);
        }
        let over = [SLICE, BLIND_SPOT, PROBE].into_iter().find(|it| number.name.starts_with(it))?;
        let last = |name: &str| Some(name.strip_prefix(over)?.rsplit_once('.')?.1.to_owned());
        let metrics: BTreeSet<String> = self.names.iter().filter_map(|name| last(name)).collect();
        let found = nearest(&number.name[over.len()..], metrics.iter().map(String::as_str))?;
        Some(format!("{over}{found}"))
    }
}

/// What is wrong with the names in gates. `severity` is that of a number which is never measured for certain; of an evaluator that may
/// report it, a name that is nearly a known one warns, and another one is a note.
#[must_use]
pub fn unknown_numbers(
    check: &str,
    gates: &[String],
    known: &KnownNumbers,
    severity: Severity,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for text in gates {
        // What cannot be parsed was refused when the run file was read.
        let Ok(gate) = Gate::parse(text) else { continue };
        let numbers: BTreeSet<&Number> =
            gate.comparisons().iter().flat_map(|comparison| comparison.operands()).collect();
        if !known.has_baseline && numbers.iter().any(|number| number.baseline) {
            let message = format!("the gate `{text}` compares with a baseline, and none is named");
            let action =
                "set `baseline` in `[evaluate]`: `last`, `parent`, `MODEL@production` or an evaluation";
            findings.push(Finding::new(check, Severity::Warn, message).about(text).action(action));
        }
        for number in numbers.iter().filter(|number| !number.alone) {
            findings.extend(without_interval(check, text, number, known));
        }
        let names: BTreeSet<&str> =
            numbers.iter().filter(|number| !known.has(number)).map(|number| number.name.as_str()).collect();
        for name in names {
            let number =
                numbers.iter().find(|number| number.name == name).expect("the name is one of theirs");
            findings.push(unknown(check, text, number, known, severity));
        }
    }
    findings
}

/// A number without an interval decides nothing.
fn without_interval(check: &str, text: &str, number: &Number, known: &KnownNumbers) -> Option<Finding> {
    let (name, why) = known.without_interval.get_key_value(&number.name)?;
    let message = format!("the gate `{text}` will be inconclusive: `{name}` has no interval, {why}");
    let action = format!("evaluate more rows, or judge the number alone: `value({name})`");
    Some(Finding::new(check, Severity::Warn, message).about(name).action(action))
}

fn unknown(check: &str, text: &str, number: &Number, known: &KnownNumbers, severity: Severity) -> Finding {
    if let Some(why) = known.why_unmeasured(number) {
        let message = format!("the gate `{text}` names `{}`, which will not be measured: {why}", number.name);
        let action = "evaluate more rows, or remove the gate";
        return Finding::new(check, severity, message).about(&number.name).action(action);
    }
    let nearest = known.nearest(number);
    let severity = match (known.is_complete, &nearest) {
        (true, _) => severity,
        (false, Some(_)) => Severity::Warn,
        (false, None) => Severity::Note,
    };
    let name = &number.name;
    let message = match (known.is_complete, number.over) {
        (true, Over::One) => {
            format!("the gate `{text}` names `{name}`, which this evaluation does not measure")
        }
        (true, _) => {
            format!("the gate `{text}` ranges over `{name}`, for which this evaluation has no values")
        }
        (false, _) => format!(
            "the gate `{text}` names `{name}`, which Trackway does not compute: the evaluator must report it"
        ),
    };
    let action = nearest.map_or_else(
        || match known.is_complete {
            true => format!("it measures {}", some_of(&known.names)),
            false => format!("known are {}", some_of(&known.names)),
        },
        |nearest| format!("did you mean `{nearest}`?"),
    );
    Finding::new(check, severity, message).about(name).action(action)
}

/// Names that are listed at most.
const NAMES_SHOWN: usize = 20;

/// Those without dots first: names of slices, groups and probes follow from them.
fn some_of(names: &BTreeSet<String>) -> String {
    let (short, long): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| !name.contains('.'));
    let shown = quoted_list(short.into_iter().chain(long).take(NAMES_SHOWN));
    let rest = if names.len() > NAMES_SHOWN { ", …" } else { "" };
    format!("{shown}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(is_complete: bool) -> KnownNumbers {
        let names =
            ["accuracy", "recall", "slice.women.recall", "blind_spot.all.error", "probe.age.missing.flipped"];
        KnownNumbers {
            names: names.map(str::to_owned).into(),
            is_complete,
            has_baseline: true,
            without_interval: [("latency_seconds".to_owned(), "with 9 rows".to_owned())].into(),
            unmeasured: BTreeMap::new(),
        }
    }

    fn found(gate: &str, known: &KnownNumbers) -> Vec<(Severity, String)> {
        let findings = unknown_numbers("evaluate.gates", &[gate.to_owned()], known, Severity::Block);
        findings.into_iter().map(|it| (it.severity, it.action.unwrap_or_default())).collect()
    }

    /// Proves that a gate over a number that will have no interval warns, and one over the number alone does not.
    #[test]
    fn a_gate_without_an_interval_is_found() {
        let known = KnownNumbers { names: ["latency_seconds".to_owned()].into(), ..known(true) };
        let action = "evaluate more rows, or judge the number alone: `value(latency_seconds)`";
        assert_eq!(found("latency_seconds < 0.1", &known), [(Severity::Warn, action.to_owned())]);
        assert_eq!(found("value(latency_seconds) < 0.1", &known), []);
    }

    /// Proves that a gate over a number that will not be measured blocks with the reason, in whatever form it names it, once.
    #[test]
    fn a_gate_over_what_will_not_be_measured_blocks() {
        let unmeasured = [("latency_seconds".to_owned(), "the test set has 9 rows".to_owned())].into();
        let known = KnownNumbers { unmeasured, without_interval: BTreeMap::new(), ..known(true) };
        for gate in ["value(latency_seconds) < 1", "latency_seconds < 1"] {
            let found = unknown_numbers("evaluate.gates", &[gate.to_owned()], &known, Severity::Block);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].severity, Severity::Block);
            assert!(found[0].message.ends_with("not be measured: the test set has 9 rows"), "{found:?}");
        }
    }

    /// Proves that every form of a number that will be measured is known, and that a mistake in a name blocks with the nearest name.
    #[test]
    fn a_gate_over_nothing_is_found() {
        for gate in [
            "accuracy >= baseline - 0.01 and slice.women.recall > 0.5",
            "min(slice.recall) > 0.5 and max(blind_spot.error) < 0.4 and blind_spot.2.error < 0.3",
            "max(probe.flipped) < 0.2",
        ] {
            assert_eq!(found(gate, &known(true)), [], "{gate}");
        }
        let meant = |name: &str| vec![(Severity::Block, format!("did you mean `{name}`?"))];
        assert_eq!(found("acuracy > 0.9", &known(true)), meant("accuracy"));
        assert_eq!(found("slice.woman.recall > 0.9", &known(true)), meant("slice.women.recall"));
        assert_eq!(found("min(slice.recal) > 0.9", &known(true)), meant("slice.recall"));
        let (severity, action) = found("cost_usd < 5", &known(true)).remove(0);
        assert_eq!(severity, Severity::Block);
        assert!(action.starts_with("it measures `accuracy`, `recall`, "), "{action}");
    }

    /// Proves that an evaluator may report any name, so that only one that is nearly a known one warns, that metrics with a number in their
    /// names are known, and that a comparison with no baseline warns.
    #[test]
    fn an_evaluator_may_report_any_number() {
        assert_eq!(found("acuracy > 0.9", &known(false))[0].0, Severity::Warn);
        assert_eq!(found("toxicity < 0.1", &known(false))[0].0, Severity::Note);
        assert_eq!(found("pinball_0.9 < 1 and pass_at_5 > 0.5", &known(false)), []);
        assert_eq!(found("pass_at_five > 0.5", &known(false))[0].0, Severity::Note);
        let without = KnownNumbers { has_baseline: false, ..known(false) };
        assert_eq!(found("accuracy > baseline", &without)[0].0, Severity::Warn);
    }
}
