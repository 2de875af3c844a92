//! Figures and curves of runs, from `effective_metrics`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use trackway_api::runs::compare::{ComparedCurve, ComparedMetric, CurveSummary};
use trackway_core::RunId;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_flows::query;
use trackway_formats::record::is_internal_metric;
use trackway_sql::QueryLimits;

/// A curve has at most about so many points.
const POINTS: u64 = 240;
/// At most so many metrics get a curve.
const CURVES_MAX: usize = 96;

/// A run and the rung of its ladder that counts: steps of other rungs begin at 1 again, and are of other data.
#[derive(Debug, Clone)]
pub(crate) struct RunAtRung {
    pub run_id: RunId,
    pub rung: String,
}

/// The curve of every metric of one run at a rung.
pub(crate) fn curves_of(
    context: &Context,
    run_id: RunId,
    rung: &str,
) -> Result<Vec<ComparedCurve>, AppError> {
    let run = [RunAtRung { run_id, rung: rung.to_owned() }];
    let metrics = figures(context, &run, &[])?;
    curves(context, &run, &metrics)
}

/// The figures of every metric of these runs, metrics that more runs have first.
pub(crate) fn figures(
    context: &Context,
    runs: &[RunAtRung],
    only: &[String],
) -> Result<Vec<ComparedMetric>, AppError> {
    let finite = "filter (where abs(value) <= 1.7976931348623157e308)";
    let rows = rows_of(
        context,
        &format!(
            "select run_id, name, count(*) as points, max(step) as last_step, \
         last_value(value order by step, recorded_at, sequence) as last, min(value) {finite} as min, max(value) {finite} as max, \
         first_value(step order by value, step) {finite} as min_step, \
         first_value(step order by value desc, step) {finite} as max_step \
         from effective_metrics where {} group by run_id, name",
            admitted(runs, only)
        ),
    )?;
    let mut metrics: BTreeMap<String, Vec<Option<CurveSummary>>> = BTreeMap::new();
    for row in rows {
        let (Some(run), Some(name)) = (place_of(&row, runs), text(&row, "name")) else { continue };
        let values = metrics.entry(name).or_insert_with(|| vec![None; runs.len()]);
        let step = |name: &str| row.get(name).and_then(Value::as_i64);
        let real = |name: &str| row.get(name).and_then(Value::as_f64);
        values[run] = Some(CurveSummary {
            point_count: row.get("points").and_then(Value::as_u64).unwrap_or(0),
            last_step: step("last_step").unwrap_or(0),
            last: real("last"),
            min: real("min"),
            min_step: step("min_step"),
            max: real("max"),
            max_step: step("max_step"),
        });
    }
    let mut rows: Vec<ComparedMetric> =
        metrics.into_iter().map(|(name, values)| ComparedMetric { name, values }).collect();
    rows.retain(|row| !is_internal_metric(&row.name) || only.contains(&row.name));
    rows.sort_by_key(|row| std::cmp::Reverse(row.values.iter().flatten().count()));
    Ok(rows)
}

/// The curves of these metrics.
pub(crate) fn curves(
    context: &Context,
    runs: &[RunAtRung],
    metrics: &[ComparedMetric],
) -> Result<Vec<ComparedCurve>, AppError> {
    let mut curves: Vec<ComparedCurve> =
        metrics.iter().take(CURVES_MAX).map(|row| empty_curve(row, runs.len())).collect();
    if curves.is_empty() {
        return Ok(curves);
    }
    let names: Vec<String> = curves.iter().map(|curve| curve.name.clone()).collect();
    let widths: Vec<String> = curves
        .iter()
        .map(|curve| format!("when {} then {}", quoted(&curve.name), curve.steps_per_point))
        .collect();
    let width = format!("case name {} else 1 end", widths.join(" "));
    let rows = rows_of(
        context,
        &format!(
            "select run_id, name, min(step) as step, avg(value) as value from \
         (select run_id, name, step, value, {} as place from effective_metrics where {}) \
         group by run_id, name, place order by step",
            place_of_step(&width),
            admitted(runs, &names)
        ),
    )?;
    for row in rows {
        let (Some(run), Some(name)) = (place_of(&row, runs), text(&row, "name")) else { continue };
        let step = row.get("step").and_then(Value::as_i64).unwrap_or(0);
        if let Some(curve) = curves.iter_mut().find(|curve| curve.name == name) {
            curve.series[run].push((step, row.get("value").and_then(Value::as_f64)));
        }
    }
    Ok(curves)
}

pub(crate) fn rows_of(context: &Context, query: &str) -> Result<Vec<Map<String, Value>>, AppError> {
    let answer = query::sql(context, query, &QueryLimits::default())?;
    query::json_rows(context, &answer)
}

fn empty_curve(row: &ComparedMetric, run_count: usize) -> ComparedCurve {
    let last = row.values.iter().flatten().map(|figures| figures.last_step).max().unwrap_or(0);
    ComparedCurve {
        name: row.name.clone(),
        steps_per_point: (last.max(0).unsigned_abs() / POINTS).saturating_add(1),
        series: vec![Vec::new(); run_count],
    }
}

/// The number of the point that a step belongs to. Division rounds towards 0: a step below 0 is never in the point of step 0.
fn place_of_step(width: &str) -> String {
    format!("(step - case when step < 0 then {width} - 1 else 0 end) / {width}")
}

fn admitted(runs: &[RunAtRung], names: &[String]) -> String {
    let ids: Vec<String> = runs.iter().map(|run| quoted(&run.run_id.to_string())).collect();
    let rungs: Vec<String> =
        runs.iter().zip(&ids).map(|(run, id)| format!("when {id} then {}", quoted(&run.rung))).collect();
    let runs = format!(
        "kind = 'train' and run_id in ({}) and rung = case run_id {} end",
        ids.join(", "),
        rungs.join(" ")
    );
    match names.is_empty() {
        true => runs,
        false => {
            let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            format!("{runs} and name in ({})", names.join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn text(row: &Map<String, Value>, name: &str) -> Option<String> {
    row.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn place_of(row: &Map<String, Value>, runs: &[RunAtRung]) -> Option<usize> {
    let id = row.get("run_id").and_then(Value::as_str)?;
    runs.iter().position(|run| run.run_id.to_string() == id)
}
