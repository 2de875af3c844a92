use std::io::Read;

use trackway_flows::runs::classify::{self, ExitFacts};

use crate::args::ClassifyArgs;
use crate::commands::live::BytesBar;
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, Tone};

pub fn classify(args: &ClassifyArgs, printer: Printer) -> Exit {
    let known = ExitFacts {
        exit_code: args.exit_code,
        signal: args.signal.as_deref().map(signal_number).transpose()?,
        launcher_state: args.launcher_state.clone(),
    };
    let bar = BytesBar::new("reading the log");
    let verdict = if args.log.as_os_str() == "-" {
        classify::log(&mut std::io::stdin().lock() as &mut dyn Read, &known, &|_| {})
    } else {
        classify::log_file(&args.log, &known, &|done_bytes, total_bytes| bar.at(done_bytes, total_bytes))
    }?;
    printer.answer(&verdict, || {
        let by = format!(" ({}, rule `{}`)", verdict.confidence, verdict.rule);
        printer.line(printer.tone(Tone::Bold, verdict.reason.as_str()) + by);
        printer.line(format!("  domain: {}; retry outlook: {}", verdict.domain, verdict.retry_outlook));
        for item in &verdict.evidence {
            let line = item.line_number.map(|number| format!("line {number}: ")).unwrap_or_default();
            printer.line(format!("  {line}{}", item.text));
        }
        for item in &verdict.secondary {
            printer.line(format!("  also seen: {}: {}", item.reason, item.text));
        }
    });
    Ok(0)
}

fn signal_number(text: &str) -> Result<i32, Failure> {
    let name = if text.starts_with("SIG") { text.to_owned() } else { format!("SIG{text}") };
    text.parse::<i32>()
        .ok()
        .or_else(|| name.parse::<nix::sys::signal::Signal>().ok().map(|signal| signal as i32))
        .ok_or_else(|| {
            Failure::usage(format!("invalid signal `{text}`"), "use a number or a name, such as 9 or SIGKILL")
        })
}
