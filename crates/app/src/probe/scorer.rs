//! A scoring command: one process that answers batches of rows (docs/scoring.md).
//!
//! A batch goes to its standard input as CSV, an empty line at its end; its answers come line by line from its standard
//! output. A batch is written by a thread of its own, so that neither side waits for the other's full pipe.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use trackway_core::Clock;
use trackway_data::model::{Cells, FrameColumn};
use trackway_evaluate::debug::Unscored;
use trackway_evaluate::search::shown_value;
use trackway_recorder::SystemClock;

/// Rows of a batch, at most.
const BATCH_ROWS_MAX: usize = 4096;
/// Longest wait for the answers to a batch.
const BATCH_SECONDS_MAX: f64 = 600.0;
/// The longest answer to a row.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// How often a command that ended is started again. A model may die of values that it does not know.
const RESTARTS_MAX: usize = 50;
/// How long a command may take to end once its input did.
const GRACE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(50);

/// The columns' names and types, as JSON.
const COLUMNS_VARIABLE: &str = "TRACKWAY_SCORING_COLUMNS";

pub(crate) struct Scorer<'s> {
    folder: PathBuf,
    command: String,
    columns: String,
    header: String,
    cancelled: &'s AtomicBool,
    process: Option<Process>,
    starts: usize,
    /// Whether answers are numbers, once there is one.
    are_numbers: Option<bool>,
}

struct Process {
    child: Child,
    /// `None` while a batch is written.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl<'s> Scorer<'s> {
    pub(crate) fn new(
        base: &Path,
        command: &str,
        columns: &[FrameColumn],
        cancelled: &'s AtomicBool,
    ) -> Self {
        let types: Vec<_> =
            columns.iter().map(|it| serde_json::json!({ "name": it.name, "type": it.kind })).collect();
        let header: Vec<String> = columns.iter().map(|column| field(Some(&column.name))).collect();
        let here = if base.as_os_str().is_empty() { Path::new(".") } else { base };
        Self {
            folder: here.to_owned(),
            command: command.to_owned(),
            columns: serde_json::Value::from(types).to_string(),
            header: header.join(",") + "\n",
            cancelled,
            process: None,
            starts: 0,
            are_numbers: None,
        }
    }

    /// Answers rows, batch by batch.
    pub(crate) fn score(&mut self, columns: &[FrameColumn]) -> Result<Cells, Unscored> {
        let rows = columns.first().map_or(0, |column| match &column.cells {
            Cells::Numbers(numbers) => numbers.len(),
            Cells::Categories { codes, .. } => codes.len(),
        });
        let mut answers = Vec::with_capacity(rows);
        let mut start = 0;
        while start < rows {
            let end = (start + BATCH_ROWS_MAX).min(rows);
            answers.extend(self.batch(columns, start..end)?);
            start = end;
        }
        self.cells(answers)
    }

    fn batch(
        &mut self,
        columns: &[FrameColumn],
        rows: std::ops::Range<usize>,
    ) -> Result<Vec<String>, Unscored> {
        let count = rows.len();
        let text = text_of(columns, rows);
        let mut process = match self.process.take() {
            Some(process) => process,
            None => self.start()?,
        };
        let answered = process.exchange(text, count, self.cancelled);
        match answered {
            Ok(answers) => {
                self.process = Some(process);
                Ok(answers)
            }
            // It said so itself, and goes on.
            Err(Exchange::Refused(why)) => {
                self.process = process.input.is_some().then_some(process);
                Err(Unscored::Refused(why))
            }
            Err(Exchange::Ended) => {
                let how = process.end();
                let why = format!("`{}` ended ({how}) before it answered {count} rows", self.command);
                let may_go_on = self.are_numbers.is_some() && self.starts < RESTARTS_MAX;
                Err(if may_go_on { Unscored::Refused(why) } else { Unscored::Failed(why) })
            }
            Err(Exchange::Broken(why)) => Err(Unscored::Failed(format!("`{}` {why}", self.command))),
            Err(Exchange::Cancelled) => Err(Unscored::Cancelled),
        }
    }

    fn start(&mut self) -> Result<Process, Unscored> {
        self.starts += 1;
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]).current_dir(&self.folder).env(COLUMNS_VARIABLE, &self.columns);
        // A group of its own, so that it can be ended with all that it started.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).process_group(0);
        let failed =
            |error: std::io::Error| Unscored::Failed(format!("cannot start `{}`: {error}", self.command));
        let mut child = command.spawn().map_err(failed)?;
        let mut input = child.stdin.take().expect("the input was asked for");
        let output = child.stdout.take().expect("the output was asked for");
        // A whole batch fits, so that its answers never keep the command from reading on.
        let (sender, lines) = sync_channel(BATCH_ROWS_MAX + 1);
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(line) = line(&mut output) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        // Where it ended at once, the first batch will tell.
        let _ = input.write_all(self.header.as_bytes());
        Ok(Process { child, input: Some(input), lines })
    }

    /// Numbers, if all answers ever given are; else texts.
    fn cells(&mut self, answers: Vec<String>) -> Result<Cells, Unscored> {
        let number = |answer: &String| answer.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let numbers: Option<Vec<f64>> = answers.iter().map(number).collect();
        match (
            numbers,
            *self.are_numbers.get_or_insert_with(|| answers.iter().all(|it| number(it).is_some())),
        ) {
            (Some(numbers), true) => Ok(Cells::Numbers(numbers)),
            (None, true) => {
                let wrong = answers.iter().find(|answer| number(answer).is_none()).expect("one is no number");
                Err(Unscored::Refused(format!("it answered `{wrong}`, where it answered numbers before")))
            }
            (_, false) => Ok(Cells::of_texts(answers.iter().map(|answer| Some(answer.as_str())))),
        }
    }
}

/// Why a batch has no answers.
enum Exchange {
    Refused(String),
    Ended,
    Broken(String),
    Cancelled,
}

impl Process {
    fn exchange(
        &mut self,
        text: String,
        rows: usize,
        cancelled: &AtomicBool,
    ) -> Result<Vec<String>, Exchange> {
        if self.lines.try_recv().is_ok() {
            return Err(Exchange::Broken("answered more lines than it was given rows".to_owned()));
        }
        let mut input = self.input.take().expect("one batch at a time");
        let (give_back, given_back) = sync_channel(1);
        std::thread::spawn(move || {
            // A command that ended is found out by its answers.
            let _ = input.write_all(text.as_bytes()).and_then(|()| input.flush());
            let _ = give_back.send(input);
        });
        let answers = self.answers(rows, cancelled);
        if matches!(answers, Err(Exchange::Broken(_) | Exchange::Cancelled)) {
            self.kill();
        }
        match given_back.recv_timeout(GRACE) {
            Ok(input) => {
                self.input = Some(input);
                answers
            }
            // What it does not read would hold the writer up for ever.
            Err(_) => {
                self.kill();
                answers.and(Err(Exchange::Broken("did not read its rows to the end".to_owned())))
            }
        }
    }

    fn answers(&self, rows: usize, cancelled: &AtomicBool) -> Result<Vec<String>, Exchange> {
        let began_micros = SystemClock.monotonic_micros();
        let mut answers = Vec::with_capacity(rows);
        while answers.len() < rows {
            match self.lines.recv_timeout(TICK) {
                Ok(line) => match line.strip_prefix('!') {
                    Some(why) => return Err(Exchange::Refused(why.trim().to_owned())),
                    None => answers.push(line),
                },
                Err(RecvTimeoutError::Disconnected) => return Err(Exchange::Ended),
                Err(RecvTimeoutError::Timeout) => {
                    if cancelled.load(Ordering::Relaxed) {
                        return Err(Exchange::Cancelled);
                    }
                    let waited = (SystemClock.monotonic_micros() - began_micros) as f64 / 1e6;
                    if waited > BATCH_SECONDS_MAX {
                        let got = answers.len();
                        let why = format!("answered {got} of {rows} rows within {BATCH_SECONDS_MAX:.0} s");
                        return Err(Exchange::Broken(why));
                    }
                }
            }
        }
        Ok(answers)
    }

    fn kill(&self) {
        let group = i32::try_from(self.child.id()).map(Pid::from_raw);
        // It may be gone already.
        let _ = group.map(|group| killpg(group, Signal::SIGKILL));
    }

    /// Ends it, and says how it ended.
    fn end(&mut self) -> String {
        self.input = None;
        let began_micros = SystemClock.monotonic_micros();
        let patience = GRACE.as_micros() as i64;
        while let Ok(None) = self.child.try_wait() {
            if SystemClock.monotonic_micros() - began_micros > patience {
                self.kill();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// The next line without its end; `None` at the end, and where it is longer than [`ANSWER_BYTES_MAX`].
fn line(output: &mut impl BufRead) -> Option<String> {
    let mut bytes = Vec::new();
    let read = output.take(ANSWER_BYTES_MAX).read_until(b'\n', &mut bytes).ok()?;
    let is_whole = bytes.last() == Some(&b'\n') || (read as u64) < ANSWER_BYTES_MAX;
    if read == 0 || !is_whole {
        return None;
    }
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Rows as CSV, and the empty line that ends a batch.
fn text_of(columns: &[FrameColumn], rows: std::ops::Range<usize>) -> String {
    let mut text = String::new();
    for row in rows {
        for (index, column) in columns.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            let shown = shown_value(column, &column.cells, row);
            // A table of one column has an empty line for no row: a missing value is a pair of quotes there.
            let cell = if columns.len() == 1 && shown.is_none() {
                "\"\"".to_owned()
            } else {
                field(shown.as_deref())
            };
            write!(text, "{separator}{cell}").expect("writing to a string does not fail");
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// A field as RFC 4180 wants it; missing is empty.
fn field(value: Option<&str>) -> String {
    match value {
        None => String::new(),
        Some(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) || text.trim() != text => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Some(text) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use trackway_data::ColumnType;

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn numbers(values: impl Iterator<Item = f64>) -> Vec<FrameColumn> {
        vec![FrameColumn {
            name: "x".to_owned(),
            kind: ColumnType::Float,
            cells: Cells::Numbers(values.collect()),
        }]
    }

    fn asked(command: &str, batches: &[Vec<FrameColumn>]) -> Vec<Result<Cells, Unscored>> {
        let mut scorer = Scorer::new(Path::new(""), command, &batches[0], &NEVER);
        batches.iter().map(|batch| scorer.score(batch)).collect()
    }

    /// Proves that fields are quoted where they must be, and that a missing value of a single column is no empty line.
    #[test]
    fn rows_as_csv() {
        let cells = Cells::of_texts([Some("a,b"), Some("say \"no\""), None, Some(" x")]);
        let text = FrameColumn { name: "t".to_owned(), kind: ColumnType::Text, cells };
        assert_eq!(
            text_of(std::slice::from_ref(&text), 0..4),
            "\"a,b\"\n\"say \"\"no\"\"\"\n\"\"\n\" x\"\n\n"
        );
        let both = [numbers([1.0, 2.5, f64::NAN, 4.0].into_iter()).remove(0), text];
        assert_eq!(text_of(&both, 1..3), "2.5,\"say \"\"no\"\"\"\n,\n\n");
    }

    /// Proves that one process answers all batches, of more rows than a batch and than a pipe holds, in their order.
    #[test]
    fn one_process_for_all_batches() {
        let script = "read -r header; while read -r x; do [ -z \"$x\" ] || echo \"$x\"; done";
        let rows = || numbers((0..10_000).map(f64::from));
        let answers = asked(script, &[rows(), rows()]);
        let expected = Cells::Numbers((0..10_000).map(f64::from).collect());
        assert!(answers.iter().all(|answer| answer.as_ref() == Ok(&expected)));
        let by_process = "read -r header; while read -r x; do [ -z \"$x\" ] || echo $$; done";
        let answers = asked(by_process, &[numbers([1.0].into_iter()), numbers([2.0].into_iter())]);
        assert_eq!(answers[0], answers[1]);
    }

    /// Proves that refusals are told and ended by the next batch, that a command which dies of a value is started again,
    /// and that one which never answered is a failure.
    #[test]
    fn refusals_and_deaths() {
        let script = "read -r header; while read -r x; do case $x in '') ;; 13) echo '! not that';; 14) exit 3;; *) echo \"$x\";; esac; done";
        let of = |value: f64| numbers([value].into_iter());
        let answers = asked(script, &[of(1.0), of(13.0), of(2.0), of(14.0), of(3.0)]);
        assert_eq!(answers[1], Err(Unscored::Refused("not that".to_owned())));
        assert!(
            matches!(&answers[3], Err(Unscored::Refused(why)) if why.contains("exit status: 3")),
            "{answers:?}"
        );
        assert_eq!(answers[2], Ok(Cells::Numbers(vec![2.0])));
        assert_eq!(answers[4], Ok(Cells::Numbers(vec![3.0])));
        assert!(matches!(&asked("exit 7", &[of(1.0)])[0], Err(Unscored::Failed(why)) if why.contains("7")));
        let missing = &asked("no-such-program-here", &[of(1.0)])[0];
        assert!(matches!(missing, Err(Unscored::Failed(why)) if why.contains("127")), "{missing:?}");
        let chatty = asked(
            "read -r header; while read -r x; do [ -z \"$x\" ] || printf '1\\n2\\n'; done",
            &[of(1.0), of(1.0)],
        );
        assert!(matches!(&chatty[1], Err(Unscored::Failed(_)) | Ok(_)));
    }

    /// Proves that a command which neither reads nor answers is left when the user asks for an end.
    #[test]
    fn an_interrupt_ends_it() {
        let cancelled = AtomicBool::new(true);
        let rows = numbers((0..200_000).map(f64::from));
        let mut scorer = Scorer::new(Path::new(""), "sleep 60", &rows, &cancelled);
        assert_eq!(scorer.score(&rows), Err(Unscored::Cancelled));
    }
}
