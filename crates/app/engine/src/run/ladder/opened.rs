//! Which data sets of the run file were opened, by the events of the shim.

use std::collections::BTreeMap;

use trackway_formats::EventKind;
use trackway_formats::runfile::{DataRole, DataSpec};
use trackway_ledger::EventRow;

/// Each data set that was watched, and whether it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OpenedData(BTreeMap<String, bool>);

impl OpenedData {
    /// Adds what these events of an attempt show: a data set that one attempt opened was opened.
    pub(crate) fn take(&mut self, events: &[EventRow]) {
        for event in events.iter().filter(|event| EventKind::DataOpened.is(&event.kind)) {
            if let (Some(data), Some(by)) = (event.field("data"), event.field("by")) {
                *self.0.entry(data.to_owned()).or_default() |= by != "none";
            }
        }
    }

    /// Those that were opened, or those that were not, by name.
    pub(crate) fn names(&self, opened: bool) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(_, was)| **was == opened).map(|(name, _)| name.as_str())
    }

    /// Training data that was not opened: data of this role; where none of the run file has it, data without a role, of which
    /// one that was opened is enough.
    pub(crate) fn training_not_opened(&self, data: &BTreeMap<String, DataSpec>) -> Vec<String> {
        let of = |role: Option<DataRole>| -> Vec<&String> {
            let has_role =
                |(name, spec): &(&String, &DataSpec)| spec.role.or_else(|| DataRole::of_name(name)) == role;
            data.iter().filter(has_role).map(|(name, _)| name).collect()
        };
        let not_opened: Vec<&str> = self.names(false).collect();
        let is_not_opened = |name: &&String| not_opened.contains(&name.as_str());
        let (training, others) = (of(Some(DataRole::Train)), of(None));
        if training.is_empty() && !others.iter().all(is_not_opened) {
            return Vec::new();
        }
        let candidates = if training.is_empty() { others } else { training };
        candidates.into_iter().filter(|name| is_not_opened(name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_core::{RunId, SequentialIds, Timestamp};

    use super::*;

    fn events(opened: &[(&str, &str)]) -> Vec<EventRow> {
        let event = |(data, by): &(&str, &str)| EventRow {
            event_id: String::new(),
            run_id: RunId::new(&SequentialIds::default()),
            attempt_id: None,
            at: Timestamp::from_micros(0),
            kind: EventKind::DataOpened.as_str().into(),
            step: None,
            message: String::new(),
            fields_json: Some(json!({ "data": data, "by": by })),
            source: "script".into(),
        };
        opened.iter().map(event).collect()
    }

    fn declared(names: &[&str]) -> BTreeMap<String, DataSpec> {
        names.iter().map(|name| ((*name).to_owned(), DataSpec::default())).collect()
    }

    /// Proves that training data counts as not opened only if it was watched and no attempt opened it, and that a test set
    /// does not matter.
    #[test]
    fn only_watched_training_data_counts_as_not_opened() {
        let of = |attempts: &[&[(&str, &str)]], names: &[&str]| {
            let mut opened = OpenedData::default();
            attempts.iter().for_each(|attempt| opened.take(&events(attempt)));
            opened.training_not_opened(&declared(names))
        };
        let both = ["test", "train"];
        assert_eq!(of(&[&[("train", "none"), ("test", "attempt")]], &both), ["train"]);
        assert!(of(&[&[("train", "attempt"), ("test", "none")]], &both).is_empty());
        assert!(of(&[&[("train", "none")], &[("train", "unknown")]], &both).is_empty(), "in a later attempt");
        assert!(of(&[&[]], &both).is_empty(), "nothing was watched");
        assert_eq!(of(&[&[("rows", "none")]], &["rows"]), ["rows"]);
        assert!(of(&[&[("rows", "none"), ("more", "unknown")]], &["rows", "more"]).is_empty());
        assert!(of(&[&[("rows", "none")]], &["rows", "more"]).is_empty(), "the other one was not watched");
        assert!(of(&[&[("validation", "none")]], &["validation"]).is_empty(), "no training data was named");
    }
}
