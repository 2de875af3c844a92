//! What each kind of error of a classification costs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::Deserializer;

use crate::documents::{ReportError, Unique, read};
use crate::error::{AssessError, Result};

/// A cost matrix: for each label the cost of each prediction, in any unit. A pair that is missing costs 0; a negative
/// cost is a gain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Costs(BTreeMap<String, BTreeMap<String, f64>>);

impl Costs {
    /// Of these pairs: label, prediction, finite cost.
    pub fn new<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str, f64)>) -> Self {
        let mut costs = Self::default();
        for (label, prediction, cost) in pairs {
            costs.0.entry(label.to_owned()).or_default().insert(prediction.to_owned(), cost);
        }
        costs
    }

    /// Reads `{"LABEL": {"PREDICTION": COST}}`. `file` is the name that an error shows.
    ///
    /// # Errors
    /// [`ReportError`] for anything else, a class that appears twice included.
    pub fn read(text: &str, file: &str) -> Result<Self, ReportError> {
        read(text, file)
    }

    /// The cost of each cell of the confusion matrix of these classes. A row without a prediction costs as much as the
    /// most expensive prediction for its label.
    ///
    /// # Errors
    /// Costs of classes that there are not; they are named.
    pub(crate) fn table(&self, classes: &[String]) -> Result<Vec<f64>> {
        let predictions = self.0.values().flat_map(BTreeMap::keys);
        let mut unknown: Vec<&str> = self
            .0
            .keys()
            .chain(predictions)
            .filter(|name| !classes.contains(name))
            .map(String::as_str)
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        if !unknown.is_empty() {
            let (unknown, classes) = (unknown.join(", "), classes.join(", "));
            return Err(AssessError::CostsOfUnknown { unknown, classes });
        }
        let cost = |label: &String, prediction: &String| {
            self.0.get(label).and_then(|costs| costs.get(prediction)).copied().unwrap_or(0.0)
        };
        let of_label = |label: &String| {
            let mut costs: Vec<f64> = classes.iter().map(|prediction| cost(label, prediction)).collect();
            costs.push(costs.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            costs
        };
        Ok(classes.iter().flat_map(of_label).collect())
    }
}

impl<'de> Deserialize<'de> for Costs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let labels = Unique::<Unique<f64>>::deserialize(deserializer)?.0;
        Ok(Self(labels.into_iter().map(|(label, costs)| (label, costs.0)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{frame, numbers, texts};
    use crate::{Baseline, Columns, ComparisonVerdict, Spec, Task, assess};

    fn costs() -> Costs {
        Costs::new([("ill", "well", 10.0), ("well", "ill", 1.0)])
    }

    fn spec() -> Spec {
        Spec { costs: Some(costs()), ..Spec::default() }
    }

    /// Proves that the cost is the mean over rows, that its interval is Student's of the costs of the rows, and that
    /// correct rows cost nothing.
    #[test]
    fn the_cost_is_the_mean_over_rows() {
        let label = (0..200).map(|row| if row % 4 == 0 { "ill" } else { "well" });
        let prediction = (0..200).map(|row| if row % 20 == 0 || row % 5 == 1 { "well" } else { "ill" });
        let rows: Vec<f64> = label
            .clone()
            .zip(prediction.clone())
            .map(|pair| match pair {
                ("ill", "well") => 10.0,
                ("well", "ill") => 1.0,
                _ => 0.0,
            })
            .collect();
        let table = frame(vec![texts("label", label), texts("prediction", prediction)]);
        let found = assess(&table, &spec(), None).unwrap().metrics["cost"];
        let (mean, interval) = trackway_statistics::mean_with_interval(&rows, 0.95);
        assert!((found.value - mean).abs() < 1e-12, "{found:?}");
        assert!((found.interval.low - interval.low).abs() < 1e-9, "{found:?} {interval:?}");
        assert!((found.interval.high - interval.high).abs() < 1e-9, "{found:?} {interval:?}");
        assert_eq!((found.support, found.coverage.rows_used, found.coverage.rows_expected), (200, 200, 200));
        let drawn = assess(&table, &Spec { always_resample: true, ..spec() }, None).unwrap().metrics["cost"];
        assert!((drawn.interval.low - found.interval.low).abs() < 0.1 && drawn.value == found.value);
    }

    /// Proves that a row without a prediction costs as much as the most expensive error of its label, and that without
    /// costs there is no metric.
    #[test]
    fn no_prediction_is_the_most_expensive_one() {
        let table = frame(vec![
            texts("label", ["ill", "well", "ill", "well"]),
            texts("prediction", ["ill", "well", "", ""]),
        ]);
        assert_eq!(assess(&table, &spec(), None).unwrap().metrics["cost"].value, 11.0 / 4.0);
        assert!(!assess(&table, &Spec::default(), None).unwrap().metrics.contains_key("cost"));
    }

    /// Proves that a class that the table lacks is named, that costs need classes, and that a mistake in the file is
    /// reported with its place.
    #[test]
    fn unknown_classes_are_named() {
        let table = frame(vec![texts("label", ["ill", "well"]), texts("prediction", ["ill", "ill"])]);
        let costs = Costs::new([("ill", "wel", 10.0), ("dead", "ill", 1.0)]);
        let wrong = assess(&table, &Spec { costs: Some(costs), ..Spec::default() }, None).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "the cost matrix has classes that the table lacks: dead, wel; the table has ill, well"
        );
        let values = frame(vec![numbers("label", [0.5, 1.5]), numbers("prediction", [0.5, 1.0])]);
        assert_eq!(assess(&values, &spec(), None), Err(AssessError::CostsWithoutClasses(Task::Regression)));
        let wrong = Costs::read("{\"a\": {\"b\": 1},\n \"a\": {}}", "costs.json").unwrap_err();
        assert_eq!((wrong.line, wrong.why.as_str()), (2, "`a` appears twice"));
        let read = Costs::read("{\"ill\": {\"well\": 10}, \"well\": {\"ill\": 1.0}}", "costs.json");
        assert_eq!(read, Ok(self::costs()));
    }

    /// Proves that the less expensive model is better although it is wrong more often, over the classes of both sides,
    /// and that whole groups are resampled.
    #[test]
    fn the_less_expensive_model_is_better() {
        let side = |prediction: &dyn Fn(usize) -> &'static str| {
            frame(vec![
                numbers("id", (0..400).map(|row| row as f64)),
                numbers("ward", (0..400).map(|row| (row / 10) as f64)),
                texts("label", (0..400).map(|row| if row % 4 == 0 { "ill" } else { "well" })),
                texts("prediction", (0..400).map(prediction)),
            ])
        };
        let baseline = side(&|_| "well");
        let candidate = side(&|row| if row % 4 == 3 || row % 12 == 0 { "well" } else { "ill" });
        let columns = Columns { group: Some("ward".into()), ..Columns::default() };
        let sides = Baseline { frame: &baseline, id: Some("id") };
        let found = assess(&candidate, &Spec { columns, ..spec() }, Some(sides)).unwrap();
        let compared = &found.comparison.unwrap().metrics;
        assert_eq!(compared["accuracy"].verdict, ComparisonVerdict::Worse);
        assert_eq!(compared["cost"].verdict, ComparisonVerdict::Better, "{:?}", compared["cost"]);
        assert_eq!(found.metrics["cost"].method, crate::Method::Clustered);
    }
}
