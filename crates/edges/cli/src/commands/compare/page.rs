//! The comparison as one HTML file that needs nothing else.

use trackway_api::compare::{ComparedCurve, ComparedValue, RunComparison};

use super::{labels, told};
use crate::html::{COLOURS, Html, colour, head, html, put};
use crate::units::{duration, metric};

/// Width and height of a chart, in its own units.
const CHART: (f64, f64) = (480.0, 200.0);
/// Room for the numbers below and beside a curve.
const MARGIN: (f64, f64) = (46.0, 16.0);
/// Curves that are all positive and span more than this are drawn on a logarithmic scale.
const LOGARITHMIC_SPAN: f64 = 200.0;
/// How lines beyond the colours are distinguished.
const DASHES: [&str; 6] = ["", "6 3", "2 2", "8 2 2 2", "1 3", "10 4"];

/// The page.
pub(super) fn page(comparison: &RunComparison) -> Html {
    let labels = labels(comparison);
    let mut page = head(&format!("Comparison: {}", labels.join(", ")));
    put!(page, "<h1>{} runs compared</h1><p>", labels.len());
    for (place, label) in labels.iter().enumerate() {
        put!(page, "{}{} ", key(place), label);
    }
    page.push_str("</p>");
    runs(&mut page, comparison, &labels);
    curves(&mut page, comparison);
    let figures: Vec<ComparedValue> = comparison
        .metrics
        .iter()
        .map(|row| ComparedValue {
            name: row.name.clone(),
            differs: true,
            values: row.values.iter().map(|figures| figures.as_ref().map(told)).collect(),
        })
        .collect();
    table(&mut page, "Metrics: last (least … greatest)", &figures, &labels);
    table(&mut page, "Parameters", &comparison.parameters, &labels);
    table(&mut page, "Settings that differ", &comparison.config, &labels);
    table(&mut page, "Data", &comparison.data, &labels);
    table(&mut page, "Environment", &comparison.environment, &labels);
    page.push_str("</body></html>\n");
    page
}

/// The mark of a run: its colour, and its dashes where colours repeat.
fn key(place: usize) -> Html {
    html!(
        "<svg style=\"display:inline-block;width:2rem;height:.6rem;margin:0 .3rem 0 .9rem\" viewBox=\"0 0 32 10\"><path d=\"M0 5 H32\" {}/></svg>",
        stroke(place)
    )
}

fn stroke(place: usize) -> Html {
    let dashes = DASHES[place / COLOURS % DASHES.len()];
    html!("fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" stroke-dasharray=\"{}\"", colour(place), dashes)
}

fn runs(page: &mut Html, comparison: &RunComparison, labels: &[String]) {
    page.push_str("<h2>Runs</h2><div class=\"wide\"><table><tr><th>Run</th><th>Id</th><th>State</th><th>Ended by</th><th>Rung</th><th class=\"n\">Attempts</th><th class=\"n\">Took</th><th class=\"n\">Cost</th><th>Created</th></tr>");
    for (run, label) in comparison.runs.iter().zip(labels) {
        put!(
            page,
            "<tr><td>{}</td><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            label,
            run.run_id.to_string(),
            run.state.as_str(),
            run.termination_reason.map(|reason| reason.as_str()).unwrap_or_default(),
            run.rung,
            run.attempt_count,
            duration(run.wall_seconds),
            run.cost_usd.map(|usd| format!("{usd:.2} USD")).unwrap_or_default(),
            run.created_at.to_string()
        );
    }
    page.push_str("</table></div>");
}

fn table(page: &mut Html, title: &str, rows: &[ComparedValue], labels: &[String]) {
    if rows.is_empty() {
        return;
    }
    put!(page, "<h2>{}</h2><div class=\"wide\"><table><tr><th></th>", title);
    for label in labels {
        put!(page, "<th>{}</th>", label);
    }
    page.push_str("</tr>");
    for row in rows {
        let dim = if row.differs { "" } else { "dim" };
        put!(page, "<tr class=\"{}\"><td><code>{}</code></td>", dim, row.name);
        for value in &row.values {
            put!(page, "<td>{}</td>", value.as_deref().unwrap_or("–"));
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div>");
}

fn curves(page: &mut Html, comparison: &RunComparison) {
    let drawn: Vec<&ComparedCurve> =
        comparison.curves.iter().filter(|curve| curve.series.iter().any(|series| series.len() > 1)).collect();
    if drawn.is_empty() {
        return;
    }
    page.push_str("<h2>Curves</h2><div class=\"grid\" style=\"grid-template-columns:repeat(auto-fill,minmax(420px,1fr))\">");
    for curve in drawn {
        put!(page, "<div class=\"card\"><h3>{}</h3>", curve.name);
        chart(page, curve);
        page.push_str("</div>");
    }
    page.push_str("</div>");
}

/// The range of a chart and the place of a value in it.
struct Scale {
    low: f64,
    high: f64,
    last_step: u64,
    logarithmic: bool,
}

impl Scale {
    fn of(curve: &ComparedCurve) -> Self {
        let points = || curve.series.iter().flatten();
        let values = || points().filter_map(|(_, value)| *value);
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        let last_step = points().map(|(step, _)| *step).max().unwrap_or(0).max(1);
        Self { low, high, last_step, logarithmic: low > 0.0 && high / low > LOGARITHMIC_SPAN }
    }

    fn x(&self, step: u64) -> f64 {
        MARGIN.0 + (CHART.0 - MARGIN.0) * step as f64 / self.last_step as f64
    }

    fn y(&self, value: f64) -> f64 {
        let place = |value: f64| if self.logarithmic { value.ln() } else { value };
        let span = place(self.high) - place(self.low);
        let share = if span > 0.0 { (place(value) - place(self.low)) / span } else { 0.5 };
        CHART.1 - MARGIN.1 - (CHART.1 - MARGIN.1 - 8.0) * share - 4.0
    }
}

fn chart(page: &mut Html, curve: &ComparedCurve) {
    let (width, height) = CHART;
    let scale = Scale::of(curve);
    put!(page, "<svg viewBox=\"0 0 {} {}\" role=\"img\">", width, height);
    if scale.low.is_finite() {
        let kind = if scale.logarithmic { " (log)" } else { "" };
        for (value, word) in [(scale.high, kind), (scale.low, "")] {
            let y = scale.y(value);
            put!(
                page,
                "<path d=\"M{} {:.1} H{}\" stroke=\"var(--line)\"/><text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                MARGIN.0,
                y,
                width,
                MARGIN.0 - 4.0,
                y + 3.0,
                metric(value)
            );
            put!(page, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", width, y - 3.0, word);
        }
    }
    for (place, series) in curve.series.iter().enumerate() {
        put!(page, "<path d=\"{}\" {}/>", line(series, &scale), stroke(place));
    }
    put!(page, "<text x=\"{}\" y=\"{}\">step 0</text>", MARGIN.0, height - 3.0);
    put!(
        page,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text></svg>",
        width,
        height - 3.0,
        scale.last_step
    );
}

/// The points as a path with a gap where a value is not finite.
fn line(series: &[(u64, Option<f64>)], scale: &Scale) -> Html {
    let (mut path, mut pen_is_down) = (Html::default(), false);
    for (step, value) in series {
        let Some(value) = value else {
            pen_is_down = false;
            continue;
        };
        let letter = if pen_is_down { "L" } else { "M" };
        put!(path, "{}{:.1} {:.1} ", letter, scale.x(*step), scale.y(*value));
        pen_is_down = true;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a gap is left where a value is not finite, and that a wide span is drawn logarithmically.
    #[test]
    fn curves_have_gaps() {
        let series = vec![(0, Some(1.0)), (1, Some(0.5)), (2, None), (3, Some(0.25))];
        let mut curve = ComparedCurve { name: "loss".into(), steps_per_point: 1, series: vec![series] };
        let scale = Scale::of(&curve);
        let path = line(&curve.series[0], &scale);
        assert_eq!(path.as_str().matches('M').count(), 2, "{path:?}");
        assert_eq!(path.as_str().matches('L').count(), 1, "{path:?}");
        assert!(!scale.logarithmic && scale.y(1.0) < scale.y(0.25));
        curve.series.push(vec![(0, Some(1000.0))]);
        assert!(Scale::of(&curve).logarithmic);
    }
}
