//! Rounds that a script prints from the first one again although it continues: `xgboost.train` counts those that it adds to the model of `xgb_model`,
//! and prints them as `[0]  train-rmse:0.2`, which is read as step 1.

use trackway_core::{Step, Timestamp};
use trackway_formats::EventKind;
use trackway_formats::record::{Event, Frame, Origin};

use super::NamedSegment;

/// The layout of a checkpoint whose framework counts so, as the event of its read has it.
const XGBOOST: &str = "xgboost";
/// The event of a read has the time at which it was written, on a busy machine after the first line was printed.
const LATE_SECONDS: f64 = 2.0;

/// What shows whether printed rounds continue those of a model.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// When the first line was printed, and its step.
    first: Option<(Timestamp, Step)>,
    last: Step,
    /// A printed step is lower than the one before.
    goes_back: bool,
    /// When the model was read as planned, and its rounds.
    read: Option<(Timestamp, Option<Step>)>,
}

impl Rounds {
    /// Takes the frames of a part.
    pub fn take(&mut self, named: &NamedSegment) {
        for located in named.segment.iter().flat_map(|segment| &segment.frames) {
            match (&located.frame, named.origin()) {
                (Frame::Metrics(metrics), Some(Origin::Stdout)) => {
                    self.first.get_or_insert((metrics.at, metrics.step));
                    self.goes_back |= metrics.step < self.last;
                    self.last = metrics.step;
                }
                (Frame::Event(event), Some(Origin::Telemetry)) if is_read_as_planned(event) => {
                    self.read.get_or_insert((event.at, event.step));
                }
                _ => {}
            }
        }
    }

    /// The rounds of the model that was read as planned before the first line; none where the printed steps do not begin again, or go back:
    /// then they are not the rounds of one training.
    pub fn before(&self) -> Option<Step> {
        let ((first_at, first), (read_at, rounds)) = self.first.zip(self.read)?;
        let in_time = read_at.seconds_since(first_at) <= LATE_SECONDS;
        rounds.filter(|rounds| in_time && first <= *rounds && !self.goes_back)
    }
}

/// Adds the rounds of the model that an attempt was seen to continue from to the steps that it printed.
pub(super) fn continue_rounds(segments: &mut [NamedSegment]) {
    let mut rounds = Rounds::default();
    segments.iter().for_each(|named| rounds.take(named));
    let Some(before) = rounds.before() else { return };
    segments.iter_mut().for_each(|named| add_rounds(named, before));
}

/// Adds rounds to printed steps.
pub(super) fn add_rounds(named: &mut NamedSegment, before: Step) {
    if named.origin() != Some(Origin::Stdout) {
        return;
    }
    for located in named.segment.iter_mut().flat_map(|segment| &mut segment.frames) {
        if let Frame::Metrics(metrics) = &mut located.frame {
            metrics.step = metrics.step.saturating_add(before);
        }
    }
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
