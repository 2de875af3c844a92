//! Rounds that a script prints from 0 again although it continues: `xgboost.train` counts those that it adds to the model of `xgb_model`,
//! and prints them as `[0]  train-rmse:0.2`.

use trackway_core::Step;
use trackway_formats::EventKind;
use trackway_formats::record::{Event, Frame, Metrics, Origin};

use super::NamedSegment;

/// The layout of a checkpoint whose framework counts so, as the event of its read has it.
const XGBOOST: &str = "xgboost";
/// The event of a read has the time at which it was written, on a busy machine after the first line was printed.
const LATE_SECONDS: f64 = 2.0;

/// Adds the rounds of the model that an attempt was seen to continue from to the steps that it printed.
pub(super) fn continue_rounds(segments: &mut [NamedSegment]) {
    let Some(before) = rounds_before(segments) else { return };
    let printed = segments.iter_mut().filter(|named| named.origin() == Some(Origin::Stdout));
    for located in printed.flat_map(|named| named.segment.iter_mut()).flat_map(|it| &mut it.frames) {
        if let Frame::Metrics(metrics) = &mut located.frame {
            metrics.step = metrics.step.saturating_add(before);
        }
    }
}

/// The rounds of the model that was read as planned before the first line; none where the printed steps do not begin again, or go back:
/// then they are not the rounds of one training.
fn rounds_before(segments: &[NamedSegment]) -> Option<Step> {
    let of = |origin| frames_of(segments, origin);
    let printed = || of(Origin::Stdout).filter_map(metrics_in);
    let first = printed().next()?;
    let read = of(Origin::Telemetry).filter_map(event_in).find(|event| is_read_as_planned(event))?;
    let in_time = read.at.seconds_since(first.at) <= LATE_SECONDS;
    let begins_again = |rounds: &Step| first.step < *rounds && printed().is_sorted_by_key(|one| one.step);
    read.step.filter(|_| in_time).filter(begins_again)
}

fn frames_of(segments: &[NamedSegment], origin: Origin) -> impl Iterator<Item = &Frame> {
    let of = segments.iter().filter(move |named| named.origin() == Some(origin));
    of.flat_map(|named| &named.segment).flat_map(|segment| &segment.frames).map(|located| &located.frame)
}

fn metrics_in(frame: &Frame) -> Option<&Metrics> {
    if let Frame::Metrics(metrics) = frame { Some(metrics) } else { None }
}

fn event_in(frame: &Frame) -> Option<&Event> {
    if let Frame::Event(event) = frame { Some(event) } else { None }
}

fn is_read_as_planned(event: &Event) -> bool {
    let has = |name: &str, test: fn(&str) -> bool| {
        event.fields.iter().any(|(field, value)| field == name && test(value))
    };
    EventKind::CheckpointOpened.is(&event.kind)
        && has("layout", |layout| layout == XGBOOST)
        && has("planned", |planned| planned == "yes")
        && has("by", |by| by != "none")
}
