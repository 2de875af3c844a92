//! An assessment as one flat table: a row for every number.

use trackway_statistics::Estimate;

use super::{Assessment, Compared, ComparisonVerdict, Metrics};

/// One number.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// What it is about: `all`, `class`, `slice`, `slice_difference`, `fairness`, `group`, `residual`, `comparison` or
    /// `comparison_slice`.
    pub part: &'static str,
    /// Which class, slice, column or group; `COLUMN=VALUE` for a group or a bin of residuals. Empty where there is only one.
    pub name: String,
    /// The metric or measure.
    pub metric: String,
    /// The number; of a comparison the difference.
    pub estimate: Estimate,
    /// Of a slice or a comparison.
    pub verdict: Option<ComparisonVerdict>,
    /// Of a comparison.
    pub baseline: Option<f64>,
    /// Of a comparison.
    pub candidate: Option<f64>,
}

impl Assessment {
    /// The metric by which a slice is compared: its own, else the main one.
    #[must_use]
    pub fn metric_of<'a>(&'a self, own: Option<&'a String>) -> &'a str {
        own.map_or(self.main_metric.as_str(), String::as_str)
    }

    /// Every number, in the order of the assessment.
    #[must_use]
    pub fn numbers(&self) -> Vec<Number> {
        let mut numbers = Vec::new();
        add(&mut numbers, "all", "", &self.metrics, None);
        for class in &self.classes {
            add(&mut numbers, "class", &class.name, &class.metrics, None);
        }
        for slice in &self.slices {
            add(&mut numbers, "slice", &slice.name, &slice.metrics, Some(slice.verdict));
            let difference =
                slice.difference.map(|it| (self.metric_of(slice.compared_by.as_ref()).to_owned(), it));
            let difference: Metrics = difference.into_iter().collect();
            add(&mut numbers, "slice_difference", &slice.name, &difference, Some(slice.verdict));
        }
        for fairness in &self.fairness {
            add(&mut numbers, "fairness", &fairness.column, &fairness.measures, None);
            for group in &fairness.groups {
                let verdict = group.inconclusive.then_some(ComparisonVerdict::Inconclusive);
                add(
                    &mut numbers,
                    "group",
                    &format!("{}={}", fairness.column, group.name),
                    &group.metrics,
                    verdict,
                );
            }
        }
        for curve in self.residuals.iter().flat_map(|it| it.by_prediction.iter().chain(&it.by_feature)) {
            for bin in &curve.bins {
                let name = format!("{}={}", curve.feature, bin.values.as_deref().unwrap_or_default());
                let mean = Metrics::from([("mean_residual".to_owned(), bin.mean)]);
                add(&mut numbers, "residual", &name, &mean, None);
            }
        }
        if let Some(comparison) = &self.comparison {
            let metrics = comparison.metrics.iter();
            numbers.extend(metrics.map(|(metric, it)| compared("comparison", "", metric, it)));
            let slices = comparison.slices.iter();
            numbers.extend(slices.map(|it| {
                let metric = self.metric_of(it.compared_by.as_ref());
                compared("comparison_slice", &it.name, metric, &it.compared)
            }));
        }
        numbers
    }
}

fn add(
    numbers: &mut Vec<Number>,
    part: &'static str,
    name: &str,
    metrics: &Metrics,
    verdict: Option<ComparisonVerdict>,
) {
    numbers.extend(metrics.iter().map(|(metric, estimate)| Number {
        part,
        name: name.to_owned(),
        metric: metric.clone(),
        estimate: *estimate,
        verdict,
        baseline: None,
        candidate: None,
    }));
}

fn compared(part: &'static str, name: &str, metric: &str, compared: &Compared) -> Number {
    Number {
        part,
        name: name.to_owned(),
        metric: metric.to_owned(),
        estimate: compared.difference,
        verdict: Some(compared.verdict),
        baseline: Some(compared.baseline),
        candidate: Some(compared.candidate),
    }
}
