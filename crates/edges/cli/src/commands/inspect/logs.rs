use std::path::PathBuf;

use trackway_api::runs::logs::LogRecord;
use trackway_core::AttemptId;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::reporter::Stream;
use trackway_flows::data::{ReadNote, sentences};
use trackway_formats::layout::AttemptLayout;
use trackway_inspect::explain;
use trackway_inspect::logs::{LogLine, LogSelection};
use trackway_rules::classify;

use crate::args::LogsArgs;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;
use crate::units::bytes;

pub fn logs(context: &Context, args: &LogsArgs, printer: Printer) -> Exit {
    let stream =
        args.stream.as_deref().map(|name| if name == "stdout" { Stream::Stdout } else { Stream::Stderr });
    let selection = LogSelection { stream, tail: args.tail };
    let mut show = |line: LogLine| show_line(&line, args, printer);
    let attempt = context.resolve_attempt(&args.attempt)?;
    let before_bytes = explain::visit_logs(context, attempt, selection, &mut show)?;
    if before_bytes > 0 {
        printer.note(format!("{} before these lines are not shown", bytes(before_bytes)));
    }
    let notes = explain::reading_of(context, attempt)?.map(|notes| of_stream(notes, stream));
    if args.strict {
        strictly(attempt, notes.as_deref())?;
    }
    sentences(notes.iter().flatten()).into_iter().for_each(|sentence| printer.note(sentence));
    Ok(0)
}

/// The notes without those on the other log.
fn of_stream(mut notes: Vec<ReadNote>, stream: Option<Stream>) -> Vec<ReadNote> {
    let logs = AttemptLayout::new("");
    let other = stream.map(|stream| match stream {
        Stream::Stdout => logs.stderr_log(),
        Stream::Stderr => logs.stdout_log(),
    });
    notes.retain(|note| other.is_none() || note.file.as_ref().map(PathBuf::from) != other);
    notes
}

/// Fails where something was not kept or not read as it was printed, or this is not known yet.
fn strictly(attempt: AttemptId, notes: Option<&[ReadNote]>) -> Result<(), Failure> {
    let failure = |what: String| Err(AppError::new(ErrorKind::Blocked, what).into());
    let Some(notes) = notes else {
        return failure(format!(
            "{attempt} has not ended: what is left out of its output is known at its end"
        ));
    };
    let lost = sentences(notes.iter().filter(|note| note.kind.is_loss()));
    match lost.is_empty() {
        true => Ok(()),
        false => failure(format!(
            "{attempt}: not everything was kept and read as it was printed, and --strict wants that: {}",
            lost.join("; ")
        )),
    }
}

fn show_line(line: &LogLine, args: &LogsArgs, printer: Printer) -> std::io::Result<()> {
    let (stream, name) = match line.stream {
        Stream::Stdout => (classify::Stream::Stdout, "stdout"),
        Stream::Stderr => (classify::Stream::Stderr, "stderr"),
    };
    let at = line.at.to_rfc3339();
    if printer.is_json() {
        let text = String::from_utf8_lossy(&line.bytes);
        let text = text.strip_suffix('\n').unwrap_or(&text).to_owned();
        printer.record(&LogRecord { at: Some(at), stream, text });
        return Ok(());
    }
    let before = if args.times { format!("{at} {name}  ") } else { String::new() };
    printer.log_line(&before, &line.bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use trackway_core::SequentialIds;
    use trackway_flows::data::ReadNoteKind;

    use super::*;
    use crate::exit::BLOCKED;

    /// Proves that a strict reading fails with what was lost, and while that is not known, but not for what the log
    /// has; and that notes on the other log are left out.
    #[test]
    fn a_strict_reading_fails_with_what_was_lost() {
        let attempt = AttemptId::new(&SequentialIds::default());
        let note = |kind, file: &str| {
            let (message, file) = (format!("{file}: 2 of them"), Some(file.to_owned()));
            ReadNote { kind, message, count: 2, file, row: None, column: None }
        };
        let lost = note(ReadNoteKind::DrawnOver, "stdout.log");
        let kept = note(ReadNoteKind::NotShown, "stderr.log");
        strictly(attempt, Some(&[])).unwrap();
        strictly(attempt, Some(std::slice::from_ref(&kept))).unwrap();
        let failed = strictly(attempt, Some(&[kept.clone(), lost.clone()])).unwrap_err();
        assert!(
            failed.code() == BLOCKED && failed.error.what().ends_with("wants that: stdout.log: 2 of them")
        );
        assert!(strictly(attempt, None).unwrap_err().error.what().contains("has not ended"));
        let both = vec![kept.clone(), lost.clone()];
        assert_eq!(of_stream(both.clone(), None), both);
        assert_eq!(of_stream(both.clone(), Some(Stream::Stdout)), [lost]);
        assert_eq!(of_stream(both, Some(Stream::Stderr)), [kept]);
    }
}
