//! From outcomes to tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use trackway_core::detect::{Detector, Firing};

use crate::fault::FAULTS;
use crate::train::{Outcome, found};

/// What one half of the seeds gave.
pub struct Score {
    outcomes: Vec<Outcome>,
}

fn median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    (!values.is_empty()).then(|| values[(values.len() - 1) / 2])
}

impl Score {
    pub fn of(outcomes: Vec<Outcome>) -> Self {
        Self { outcomes }
    }

    fn faulty(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.fault.is_some())
    }

    fn healthy(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.fault.is_none())
    }

    /// Findings in healthy runs, and before the fault in the others.
    fn false_alarms(&self) -> Vec<(&Outcome, usize)> {
        // A hang is reported for the last step before it.
        let early = |outcome: &Outcome, firing: &Firing| {
            let step = firing.step + u64::from(firing.detector == Detector::Hang);
            outcome.fault.is_none_or(|(_, from)| step < from)
        };
        self.outcomes
            .iter()
            .flat_map(|outcome| (0..outcome.firings.len()).map(move |place| (outcome, place)))
            .filter(|(outcome, place)| early(outcome, &outcome.firings[*place]))
            .collect()
    }

    fn healthy_steps(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.healthy_steps).sum()
    }

    /// The summary and both tables, as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = self.summary();
        text.push_str("\n| fault | runs | found | by | median delay, steps |\n|---|--:|--:|---|--:|\n");
        for fault in FAULTS {
            let runs: Vec<&Outcome> = self
                .faulty()
                .filter(|outcome| outcome.fault.is_some_and(|(other, _)| other == *fault))
                .collect();
            let mut by: BTreeMap<Detector, usize> = BTreeMap::new();
            let mut delays = Vec::new();
            for run in &runs {
                let hits = found(run);
                let mut names: Vec<Detector> = hits.iter().map(|(detector, _)| *detector).collect();
                names.sort();
                names.dedup();
                names.into_iter().for_each(|detector| *by.entry(detector).or_default() += 1);
                delays.extend(hits.iter().map(|(_, delay)| *delay).min());
            }
            let by: Vec<String> =
                by.iter().map(|(detector, count)| format!("`{detector}` {count}")).collect();
            let delay = median(&mut delays).map_or("–".into(), |delay| delay.to_string());
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {delay} |",
                fault.words(),
                runs.len(),
                delays.len(),
                by.join(", ")
            );
        }
        text.push_str(&self.by_detector());
        text
    }

    fn summary(&self) -> String {
        let faulty = self.faulty().count();
        let caught = self.faulty().filter(|outcome| !found(outcome).is_empty()).count();
        let mut numeric: Vec<u64> = self
            .faulty()
            .filter(|outcome| outcome.fault.is_some_and(|(fault, _)| fault.numeric()))
            .filter_map(|outcome| found(outcome).iter().map(|(_, delay)| *delay).min())
            .collect();
        let (alarms, steps) = (self.false_alarms().len(), self.healthy_steps());
        let points: u64 = self.outcomes.iter().map(|outcome| outcome.points).sum();
        format!(
            "{faulty} faulty runs with {} faults, {caught} found: recall {:.1} %. Median delay of the numeric faults: {} steps.\n\
             {} healthy runs; {:.2} million healthy steps with those before a fault: {alarms} false alarms, {:.2} a million steps. {:.0} million points in all.\n",
            FAULTS.len(),
            100.0 * caught as f64 / faulty.max(1) as f64,
            median(&mut numeric).map_or("–".into(), |delay| delay.to_string()),
            self.healthy().count(),
            steps as f64 / 1e6,
            1e6 * alarms as f64 / steps.max(1) as f64,
            points as f64 / 1e6,
        )
    }

    /// Per detector: the faults that it should find, and its false alarms.
    fn by_detector(&self) -> String {
        let mut text = String::from(
            "\n| detector | its faults | found by it | found by any | median delay, steps | false alarms | a million steps |\n|---|--:|--:|--:|--:|--:|--:|\n",
        );
        let alarms = self.false_alarms();
        for detector in Detector::ALL {
            let own: Vec<&Outcome> = self
                .faulty()
                .filter(|outcome| outcome.fault.is_some_and(|(fault, _)| fault.expected()[0] == *detector))
                .collect();
            let hit = |outcome: &&&Outcome| found(outcome).iter().any(|(by, _)| by == detector);
            let by_it = own.iter().filter(hit).count();
            let by_any = own.iter().filter(|outcome| !found(outcome).is_empty()).count();
            let mut delays: Vec<u64> = self
                .faulty()
                .filter_map(|outcome| {
                    found(outcome).iter().filter(|(by, _)| by == detector).map(|(_, delay)| *delay).min()
                })
                .collect();
            let wrong = alarms
                .iter()
                .filter(|(outcome, place)| outcome.firings[*place].detector == *detector)
                .count();
            let _ = writeln!(
                text,
                "| `{detector}` | {} | {by_it} | {by_any} | {} | {wrong} | {:.2} |",
                own.len(),
                median(&mut delays).map_or("–".into(), |delay| delay.to_string()),
                1e6 * wrong as f64 / self.healthy_steps().max(1) as f64
            );
        }
        text
    }

    /// What was missed and what was wrong, one line each, for tuning.
    pub fn details(&self) -> String {
        let mut text = String::new();
        for (outcome, place) in self.false_alarms() {
            let firing = &outcome.firings[place];
            let _ = writeln!(
                text,
                "ALARM {} at {} of {:?}: {} {:?}",
                firing.detector, firing.step, outcome.fault, firing.evidence, outcome.config
            );
        }
        for outcome in self.faulty().filter(|outcome| found(outcome).is_empty()) {
            let other: Vec<String> =
                outcome.firings.iter().map(|firing| format!("{}@{}", firing.detector, firing.step)).collect();
            let _ = writeln!(text, "MISSED {:?} {other:?} {:?}", outcome.fault, outcome.config);
        }
        text
    }
}
