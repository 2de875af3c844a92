use trackway_api::logs::LogRecord;
use trackway_engine::Context;
use trackway_engine::reporter::Stream;
use trackway_inspect::explain;
use trackway_inspect::logs::{LogLine, LogSelection};
use trackway_tower::classify;

use crate::args::LogsArgs;
use crate::exit::Exit;
use crate::printer::Printer;

pub fn logs(context: &Context, args: &LogsArgs, printer: Printer) -> Exit {
    let stream =
        args.stream.as_deref().map(|name| if name == "stdout" { Stream::Stdout } else { Stream::Stderr });
    let selection = LogSelection { stream, tail: args.tail };
    let mut show = |line: LogLine| show_line(&line, args, printer);
    explain::visit_logs(context, context.resolve_attempt(&args.attempt)?, selection, &mut show)?;
    Ok(0)
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
