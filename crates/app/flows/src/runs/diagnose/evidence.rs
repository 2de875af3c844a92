//! What the launch of a diagnosis left: the events of its recorder, the stacks of its processes, lines of its logs.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::{Map, Value, json};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::run::seal::SealedAttempt;
use trackway_engine::run::stacks::rank_stacks;
use trackway_formats::EventKind;
use trackway_formats::layout::AttemptLayout;
use trackway_launch::StackDump;
use trackway_ledger::EventRow;
use trackway_rules::diagnosis::{DiagnosisLaunch, Facts, RankStack, collective_warnings};

/// Bytes of each log that are read, from its end.
const LOG_BYTES_MAX: u64 = 8 << 20;
/// Dumps of stacks that are looked for.
const DUMPS_MAX: usize = 20;
/// Facts that are stored: a few topics of each rank.
const FACTS_MAX: usize = 256;

/// The observations, and the same as they are stored.
pub struct Evidence {
    pub launched: DiagnosisLaunch,
    pub facts: Value,
}

pub fn read(context: &Context, sealed: &SealedAttempt) -> Result<Evidence, AppError> {
    let row = &sealed.row;
    let events = context.ledger_read(|ledger| ledger.events_of_attempt(row.attempt_id))?;
    let segments = context.ledger_read(|ledger| ledger.segments_of(row.attempt_id))?;
    let files = context.home.layout.attempt(row.attempt_id);
    let (looks, stacks) = stacks(&files);
    let launched = DiagnosisLaunch {
        reason: row.termination_reason,
        evidence: sealed.evidence.clone(),
        last_step: row.last_step,
        resumed_from_step: row.resumed_from_step,
        has_sdk: segments.iter().any(|segment| segment.origin.as_deref() == Some("sdk")),
        stopped: context.request.cancel.stop_requests() > 0,
        facts: facts(&events),
        stacks,
        looks,
        warnings: warnings(&files),
    };
    Ok(Evidence { launched, facts: stored(&events) })
}

fn field<'e>(event: &'e EventRow, name: &str) -> Option<&'e str> {
    event.fields_json.as_ref()?.get(name)?.as_str()
}

/// The topic and the facts of the events of a diagnosis, in order.
fn recorded(events: &[EventRow]) -> impl Iterator<Item = (&str, &str)> {
    let of_diagnosis = events.iter().filter(|event| EventKind::DiagnosisFacts.is(&event.kind));
    of_diagnosis.filter_map(|event| Some((field(event, "about")?, field(event, "facts")?)))
}

fn facts(events: &[EventRow]) -> Facts {
    let mut facts = Facts::default();
    recorded(events).for_each(|(about, text)| facts.take(about, text));
    let blind = events.iter().filter(|event| EventKind::DiagnosisBlind.is(&event.kind));
    facts.blind.extend(blind.filter_map(|event| field(event, "why").map(str::to_owned)));
    facts
}

/// The last facts of each topic and rank, as lists by topic.
fn stored(events: &[EventRow]) -> Value {
    let mut topics = Map::new();
    for (about, text) in recorded(events).take(FACTS_MAX) {
        let Ok(facts) = serde_json::from_str::<Value>(text) else { continue };
        let topic = topics.entry(about).or_insert_with(|| json!([]));
        let Some(list) = topic.as_array_mut() else { continue };
        list.retain(|other| other.get("rank") != facts.get("rank"));
        list.push(facts);
    }
    Value::Object(topics)
}

/// How many dumps of stacks there are, and what the last one shows.
fn stacks(files: &AttemptLayout) -> (usize, Vec<RankStack>) {
    let dumps: Vec<_> =
        (1..=DUMPS_MAX).map(|number| files.stack_dump(number)).take_while(|path| path.exists()).collect();
    let newest = dumps.last().and_then(|path| std::fs::read(path).ok());
    let dump: StackDump = newest.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    (dumps.len(), rank_stacks(&dump))
}

/// What a collective library reported, from the ends of the logs.
fn warnings(files: &AttemptLayout) -> Vec<String> {
    let logs = [files.stderr_log(), files.stdout_log()];
    let text: Vec<String> = logs.iter().map(|path| end_of(path).unwrap_or_default()).collect();
    collective_warnings(text.iter().flat_map(|text| text.lines()))
}

/// The end of a file, as text.
fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(LOG_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
