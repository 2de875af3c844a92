//! Rounds that a script prints from the first one again although it continues: `xgboost.train` counts those that it
//! adds to the model of `xgb_model`, and prints them as `[0]  train-rmse:0.2`, which is read as step 1.

use trackway_core::{Step, Timestamp};
use trackway_formats::EventKind;
use trackway_formats::record::{Event, Frame, Origin, Segment};

/// The layout of a checkpoint whose framework counts so, as the event of its read has it.
const XGBOOST: &str = "xgboost";
/// The event of a read has the time at which it was written, on a busy machine after the first line was printed.
const LATE_SECONDS: f64 = 2.0;

/// What shows whether printed rounds continue those of a model.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rounds {
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
    pub fn take(&mut self, segment: &Segment) {
        for located in &segment.frames {
            match (&located.frame, segment.origin()) {
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

    /// Takes what the segments after these show.
    pub fn then(&mut self, later: &Self) {
        self.goes_back |= later.goes_back || later.first.is_some_and(|(_, first)| first < self.last);
        if later.first.is_some() {
            self.last = later.last;
        }
        self.first = self.first.or(later.first);
        self.read = self.read.or(later.read);
    }

    /// The rounds of the model that was read as planned before the first line; none where the printed steps do not begin again, or go back:
    /// then they are not the rounds of one training.
    pub fn before(&self) -> Option<Step> {
        let ((first_at, first), (read_at, rounds)) = self.first.zip(self.read)?;
        let in_time = read_at.seconds_since(first_at) <= LATE_SECONDS;
        rounds.filter(|rounds| in_time && first <= *rounds && !self.goes_back)
    }
}

/// Adds rounds to printed steps.
pub(crate) fn add_rounds(segment: &mut Segment, before: Step) {
    if segment.origin() != Some(Origin::Stdout) {
        return;
    }
    for located in &mut segment.frames {
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
