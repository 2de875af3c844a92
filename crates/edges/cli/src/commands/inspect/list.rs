use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use trackway_api::runs::Run;
use trackway_api::runs::attempts::Attempt;
use trackway_api::runs::watch::waiting_sentence;
use trackway_core::{Clock as _, RunId, Timestamp};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::page::Page;
use trackway_engine::rows::{listed_attempt, listed_run};
use trackway_engine::run::queue::{Waiting, waiting, waiting_among};
use trackway_flows::query;
use trackway_inspect::explain::running_seconds;
use trackway_ledger::{RunRow, RunState};
use trackway_sql::{FoundRuns, Page as RunsPage, RunSearch};

use crate::args::{AttemptsArgs, RunsArgs};
use crate::commands::sections::note_more;
use crate::exit::Exit;
use crate::printer::{Printer, cut};
use crate::units::{duration, metric, timestamp};

/// Characters of a note in the list; `trackway explain` shows all of it.
const NOTE_CHARACTERS_MAX: usize = 60;
/// A name with special characters is in a pair of these.
const QUOTES: [char; 2] = ['`', '"'];
/// Values of a run that the usual table shows anyway.
const SHOWN_ANYWAY: [&str; 4] = ["run_id", "name", "state", "created_at"];

type Tags = BTreeMap<RunId, BTreeMap<String, String>>;
/// How the runs wait that do.
type Waits = BTreeMap<RunId, Waiting>;

pub fn runs(context: &Context, args: &RunsArgs, printer: Printer) -> Exit {
    let after = args.page.after.as_deref().map(|run| context.resolve_run(run)).transpose()?;
    let search = RunSearch {
        condition: args.condition.clone(),
        order: names_in(&args.sort).map(sort_key).collect(),
        columns: plain_names(&args.columns),
        with_hidden: args.all,
        page: RunsPage { after, limit: args.page.limit as usize },
    };
    let found = query::search_runs(context, &search)?;
    let tags = context.tags_of_runs(&found.runs)?;
    let waits = waiting_among(context, &found.runs)?;
    if printer.is_json() {
        printer.document(&listed(&found, &tags, waits));
    } else if found.runs.is_empty() && args.page.after.is_some() {
        printer.note("no more runs");
    } else if found.runs.is_empty() && args.condition.is_some() {
        printer.note("no runs match the condition");
    } else if found.runs.is_empty() {
        printer.note("no runs yet; start one with: trackway run -- COMMAND …");
    } else {
        table(&found, (&tags, &waits, &running(context, &found.runs)?), args, printer);
        unsupervised_note(&waits).iter().for_each(|note| printer.note(note));
        match (found.more_count, found.next) {
            (Some(count), next) => note_more(printer, count, "run", next),
            (None, Some(next)) => printer
                .note(format!("there are more runs; list them with the same options and --after {next}")),
            (None, None) => {}
        }
    }
    Ok(0)
}

/// `-val_loss` and `val_loss desc`: the greatest first.
fn sort_key(key: &str) -> (String, bool) {
    let (key, minus) = key.trim().strip_prefix('-').map_or((key.trim(), false), |rest| (rest, true));
    match key.rsplit_once(' ') {
        Some((name, order)) if order.eq_ignore_ascii_case("desc") => (plain_name(name), true),
        Some((name, order)) if order.eq_ignore_ascii_case("asc") => (plain_name(name), false),
        _ => (plain_name(key), minus),
    }
}

/// Names as a person types them in lists with commas.
pub(super) fn plain_names(lists: &[String]) -> Vec<String> {
    names_in(lists).map(plain_name).collect()
}

/// The names of lists with commas; a comma in quotes is part of a name.
fn names_in(lists: &[String]) -> impl Iterator<Item = &str> {
    lists.iter().flat_map(|list| {
        let mut quote = None;
        list.split(move |letter: char| match quote {
            Some(open) => {
                quote = quote.filter(|_| letter != open);
                false
            }
            None => {
                quote = Some(letter).filter(|letter| QUOTES.contains(letter));
                letter == ','
            }
        })
    })
}

/// A name, or each of its parts between dots, may be in quotes, as it may in a condition.
fn plain_name(name: &str) -> String {
    let mut plain = String::new();
    let mut rest = name.trim();
    while !rest.is_empty() {
        let quoted = rest.strip_prefix(QUOTES).and_then(|inner| {
            let quote = rest.chars().next()?;
            inner.split_once(quote).filter(|(_, after)| after.is_empty() || after.starts_with('.'))
        });
        let part = match quoted {
            Some((part, after)) => {
                rest = after;
                part
            }
            None => {
                let (part, after) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
                rest = after;
                part
            }
        };
        plain.push_str(part);
        if let Some(after) = rest.strip_prefix('.') {
            plain.push('.');
            rest = after;
        }
    }
    plain
}

/// The runs, each with the values of the requested names; the last one with the `--after` of the next page, if there is
/// one.
fn listed(found: &FoundRuns, tags: &Tags, mut waits: Waits) -> Vec<Run> {
    let with_values = |(run, values): (&RunRow, &Vec<serde_json::Value>)| {
        let Waiting { queue, unsupervised, .. } = waits.remove(&run.run_id).unwrap_or_default();
        Run {
            queue,
            unsupervised,
            values: found.names.iter().cloned().zip(values.iter().cloned()).collect(),
            next: found.next.filter(|next| *next == run.run_id),
            tags: tags.get(&run.run_id).cloned().unwrap_or_default(),
            ..listed_run(run.clone())
        }
    };
    found.runs.iter().zip(&found.values).map(with_values).collect()
}

/// How long the attempt runs so far of each run that has one which runs.
fn running(context: &Context, runs: &[RunRow]) -> Result<BTreeMap<RunId, f64>, AppError> {
    let mut running = BTreeMap::new();
    for run in runs.iter().filter(|run| run.state == RunState::Running) {
        let last = context.last_attempt_of_kind(run.run_id, run.kind)?;
        let seconds = last.and_then(|last| running_seconds(context, &last));
        running.extend(seconds.map(|seconds| (run.run_id, seconds)));
    }
    Ok(running)
}

fn table(
    found: &FoundRuns,
    (tags, waits, running): (&Tags, &Waits, &BTreeMap<RunId, f64>),
    args: &RunsArgs,
    printer: Printer,
) {
    let usual = ["run", "name", "state", "attempts", "ended by", "committed", "took", "created"];
    let with_health = args.health;
    let mut header: Vec<&str> = match args.columns.is_empty() {
        true => usual.to_vec(),
        false => vec!["run"],
    };
    // What was sorted by, or was in the condition, is shown beside what is usual.
    let has = |name: &String| SHOWN_ANYWAY.contains(&name.as_str());
    let shown: Vec<usize> =
        (0..found.names.len()).filter(|at| !args.columns.is_empty() || !has(&found.names[*at])).collect();
    header.extend(shown.iter().map(|at| found.names[*at].as_str()));
    // What most runs do not have takes no room where none of these has it.
    let is_usual = args.columns.is_empty();
    let has_tags = is_usual && tags.values().any(|tags| !tags.is_empty());
    let has_notes = is_usual && found.runs.iter().any(|run| run.note.is_some());
    header.extend(with_health.then_some("health"));
    header.extend(has_tags.then_some("tags"));
    header.extend(has_notes.then_some("note"));
    let rows = found.runs.iter().zip(&found.values).map(|(run, values)| {
        let mut cells = run_cells(run, waits.get(&run.run_id), running.get(&run.run_id));
        if !args.columns.is_empty() {
            cells.truncate(1);
        }
        cells.extend(shown.iter().map(|at| cell(&values[*at])));
        if with_health {
            cells.push(health_cell(run));
        }
        if has_tags {
            cells.push(tags.get(&run.run_id).map(tag_cell).unwrap_or_default());
        }
        if has_notes {
            let first_line = run.note.as_deref().and_then(|note| note.lines().next());
            cells.push(first_line.map(|line| cut(line, NOTE_CHARACTERS_MAX)).unwrap_or_default());
        }
        cells
    });
    printer.table(&header, rows.collect());
}

/// The health of a run; of one that ended before there was such a thing that it is not known.
fn health_cell(run: &RunRow) -> String {
    match run.health {
        Some(health) => health.to_string(),
        None if run.state.is_final() && run.attempt_count > 0 => "unknown (older receipt)".into(),
        None => String::new(),
    }
}

/// `sweep=august team=search`
fn tag_cell(tags: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}

fn cell(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Number(number) if number.is_f64() => match number.as_f64().unwrap_or(f64::NAN) {
            whole if whole.fract() == 0.0 && whole.abs() < 1e15 => whole.to_string(),
            value => metric(value),
        },
        other => other.to_string(),
    }
}

/// How long the attempts of a run took, without pauses; nothing of one that was never launched. `running_seconds`: of the one that runs.
fn took(run: &RunRow, running_seconds: f64) -> String {
    let so_far = if run.state.is_final() { "" } else { " so far" };
    match run.attempt_count {
        0 => String::new(),
        _ => format!("{}{so_far}", duration(run.wall_seconds + running_seconds)),
    }
}

/// `waiting, 2nd of 3 in queue gpu, 1 may run`
fn state_cell(run: &RunRow, waiting: Option<&Waiting>) -> String {
    match waiting {
        Some(Waiting { unsupervised: true, .. }) => format!("{}, no process supervises it", run.state),
        Some(Waiting { queue: Some(queue), .. }) => format!("{}, {}", run.state, queue.place_in_line()),
        _ => run.state.to_string(),
    }
}

/// How the runs of a list continue that no process supervises and that can be resumed; none without such runs.
fn unsupervised_note(waits: &Waits) -> Option<String> {
    let can_continue = |it: &Waiting| it.unsupervised && it.resume_refused.is_none();
    let left: Vec<&RunId> = waits.iter().filter(|(_, it)| can_continue(it)).map(|(id, _)| id).collect();
    match left.as_slice() {
        [] => None,
        [one] => Some(format!("no process supervises {one}; it continues with: trackway resume {one}")),
        several => Some(format!(
            "no process supervises {} of these runs; they continue with: trackway resume RUN, or trackway resume --all",
            several.len()
        )),
    }
}

fn run_cells(run: &RunRow, waiting: Option<&Waiting>, running_seconds: Option<&f64>) -> Vec<String> {
    vec![
        run.run_id.to_string(),
        run.name.clone(),
        state_cell(run, waiting),
        run.attempt_count.to_string(),
        run.termination_reason.map(|reason| reason.to_string()).unwrap_or_default(),
        run.last_committed_step.map(|step| step.to_string()).unwrap_or_default(),
        took(run, running_seconds.copied().unwrap_or(0.0)),
        timestamp(run.created_at),
    ]
}

pub fn attempts(context: &Context, args: &AttemptsArgs, printer: Printer) -> Exit {
    let run = args.run.as_deref().map(|run| context.resolve_run(run)).transpose()?;
    let after = args.page.after.as_deref().map(|attempt| context.resolve_attempt(attempt)).transpose()?;
    let page = context.attempts(run, &Page { after, limit: args.page.limit })?;
    let mut attempts: Vec<Attempt> = page.entries.into_iter().map(listed_attempt).collect();
    if let Some(last) = attempts.last_mut() {
        last.next = page.next;
    }
    if printer.is_json() {
        printer.document(&attempts);
    } else if attempts.is_empty() && args.page.after.is_some() {
        printer.note("no more attempts");
    } else if attempts.is_empty() {
        printer.note("no attempts yet");
        note_wait(context, run, printer)?;
    } else {
        attempts_table(context, (run, &attempts), printer)?;
        note_more(printer, page.more_count, "attempt", page.next);
        note_wait(context, run, printer)?;
    }
    Ok(0)
}

/// Why the run whose attempts are listed has no further one yet, where it waits.
fn note_wait(context: &Context, run: Option<RunId>, printer: Printer) -> Result<(), AppError> {
    let Some(run_id) = run else { return Ok(()) };
    let Waiting { queue, unsupervised, resume_refused } = waiting(context, &context.run_by_id(run_id)?)?;
    let sentence = waiting_sentence(run_id, queue.as_ref(), (unsupervised, resume_refused.as_deref()));
    sentence.iter().for_each(|text| printer.note(text));
    Ok(())
}

/// `run`: whose attempts they are; none: of several runs, which are named.
fn attempts_table(
    context: &Context,
    (run, attempts): (Option<RunId>, &[Attempt]),
    printer: Printer,
) -> Result<(), AppError> {
    let mut header = vec!["attempt"];
    header.extend(run.is_none().then_some("run"));
    header.extend(["#", "rung", "state", "ended by", "confidence", "status", "from", "last step"]);
    header.extend(["committed", "took"]);
    let mut names: BTreeMap<RunId, String> = BTreeMap::new();
    for attempt in attempts.iter().filter(|_| run.is_none()) {
        if let Entry::Vacant(unnamed) = names.entry(attempt.run_id) {
            unnamed.insert(context.run_by_id(attempt.run_id)?.name);
        }
    }
    let now = context.clock.now();
    let cells = |attempt: &Attempt| attempt_cells(attempt, names.get(&attempt.run_id), now);
    printer.table(&header, attempts.iter().map(cells).collect());
    Ok(())
}

/// How long an attempt took, or how long ago it began that has not ended.
fn attempt_took(attempt: &Attempt, now: Timestamp) -> String {
    match (attempt.wall_seconds, attempt.started_at.filter(|_| attempt.ended_at.is_none())) {
        (Some(seconds), _) => duration(seconds),
        (None, Some(started)) => format!("{} so far", duration(now.seconds_since(started).max(0.0))),
        (None, None) => String::new(),
    }
}

fn attempt_cells(attempt: &Attempt, run_name: Option<&String>, now: Timestamp) -> Vec<String> {
    let step = |step: Option<u64>| step.map(|step| step.to_string()).unwrap_or_default();
    let status = match (attempt.exit_code, attempt.signal) {
        (Some(code), _) => format!("code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => String::new(),
    };
    let mut cells = vec![attempt.attempt_id.to_string()];
    cells.extend(run_name.cloned());
    cells.extend([
        attempt.attempt_number.to_string(),
        attempt.rung.clone(),
        attempt.state.to_string(),
        attempt.termination_reason.map(|reason| reason.to_string()).unwrap_or_default(),
        attempt.termination_confidence.map(|confidence| confidence.to_string()).unwrap_or_default(),
        status,
        step(attempt.resumed_from_step),
        step(attempt.last_step),
        step(attempt.last_committed_step),
        attempt_took(attempt, now),
    ]);
    cells
}

#[cfg(test)]
mod tests {
    use trackway_core::name::{Name, NameKind};

    use super::*;

    /// Proves that names in lists are parted at commas outside of quotes, and that the quotes of a name, or of each of
    /// its parts, are not part of it.
    #[test]
    fn names_may_be_in_quotes() {
        let lists = ["-val_loss,`train/loss` desc".to_owned(), "eval.slice.\"old, men\".recall asc".into()];
        let keys: Vec<(String, bool)> = names_in(&lists).map(sort_key).collect();
        let expected = [("val_loss", true), ("train/loss", true), ("eval.slice.old, men.recall", false)];
        assert_eq!(keys, expected.map(|(name, greatest_first)| (name.to_owned(), greatest_first)));
        for (name, plain) in [
            (" eval.slice.`v1.5`.f1 ", "eval.slice.v1.5.f1"),
            ("\"eval.slice.old men.f1\"", "eval.slice.old men.f1"),
            ("eval.slice.old men.f1", "eval.slice.old men.f1"),
            ("5\" disk", "5\" disk"),
            ("`open", "`open"),
            ("a..b.", "a..b."),
            ("", ""),
        ] {
            assert_eq!(plain_name(name), plain, "{name}");
        }
        assert_eq!(names_in(&[String::new()]).collect::<Vec<_>>(), [""]);
    }

    /// Proves that a list says of runs without a supervisor how they continue, and nothing of runs that have one.
    #[test]
    fn runs_without_a_supervisor_are_pointed_out() {
        let note = |unsupervised: &[bool]| {
            let waits = unsupervised.iter().zip(1..).map(|(unsupervised, number)| {
                let run_id: RunId = format!("run_0000000000000000000000000{number}").parse().unwrap();
                (run_id, Waiting { unsupervised: *unsupervised, ..Waiting::default() })
            });
            unsupervised_note(&waits.collect())
        };
        assert_eq!(note(&[false]), None);
        let one = note(&[false, true]).unwrap();
        assert!(one.ends_with("trackway resume run_00000000000000000000000002"), "{one}");
        let two = note(&[true, false, true]).unwrap();
        assert!(two.contains("2 of these runs") && two.ends_with("trackway resume --all"), "{two}");
    }

    /// Proves that a run which is paused does not become longer by that, and that one which runs has all its attempts counted.
    #[test]
    fn a_pause_is_no_running_time() {
        let run_id: RunId = "run_01jz0000000000000000000001".parse().unwrap();
        let name = Name::renamed(NameKind::Run, "r");
        let at = Timestamp::from_micros;
        let planned = RunRow::planned(run_id, &name, "c", serde_json::json!({}), at(0));
        // Started an hour ago: its first attempt took a minute.
        let run = RunRow { started_at: Some(at(0)), attempt_count: 1, wall_seconds: 60.0, ..planned.clone() };
        for (state, running_seconds, expected) in [
            (RunState::Waiting, 0.0, "1 min 00 s so far"),
            (RunState::Running, 30.0, "1 min 30 s so far"),
            (RunState::Stopped, 0.0, "1 min 00 s"),
        ] {
            assert_eq!(took(&RunRow { state, ..run.clone() }, running_seconds), expected);
        }
        assert_eq!(took(&planned, 0.0), "");
    }

    /// Proves that a whole parameter is shown as one, and a fraction with the digits of a metric.
    #[test]
    fn whole_numbers_are_whole() {
        let shown = [4.0, 0.1, -2.0, 1e20].map(|value| cell(&serde_json::json!(value)));
        assert_eq!(shown, ["4", "0.1000", "-2", "1.000e20"]);
    }
}
