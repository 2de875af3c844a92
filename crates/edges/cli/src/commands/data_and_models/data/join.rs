use std::path::Path;

use trackway_api::data::AsOfAnswer;
use trackway_core::with_fields_of;
use trackway_flows::data::ReadContext;
use trackway_flows::data::join::{AsOfRequest, SkewPlan, SkewReport, as_of as join, skew as compare};

use super::{code, print_reading, reading, request};
use crate::args::{AsOfArgs, SkewArgs};
use crate::exit::{BLOCKED, Exit, Failure};
use crate::printer::{Printer, Tone};
use crate::units::counted;

pub fn as_of(args: &AsOfArgs, read: &ReadContext, printer: Printer) -> Exit {
    let request = with_fields_of!(
        AsOfRequest,
        &args,
        [on, left_time, right_time, strict, tolerance, out],
        left: request(&args.left, &args.reading, read),
        right: request(&args.right, &args.reading, read),
    );
    let answer = reading(printer, |observer| join(Path::new(""), &request, observer))?;
    printer.answer(&answer, || print(printer, &answer));
    let report = &answer.report;
    let sides = [
        code(report.left_rows, report.left_rows_rejected),
        code(report.right_rows, report.right_rows_rejected),
    ];
    Ok(sides.into_iter().max().unwrap_or_default())
}

fn print(printer: Printer, answer: &AsOfAnswer) {
    let report = &answer.report;
    let row = |name: &str, count: u64| vec![name.to_owned(), count.to_string()];
    printer.table(
        &["left rows", "count"],
        vec![
            row("all, written", report.left_rows),
            row("matched", report.matched),
            row("key not on the right", report.unmatched_key),
            row("nothing known at their time", report.unmatched_time),
            row("without key or time", report.left_without_key_or_time),
        ],
    );
    for (count, what) in [
        (report.left_rows_rejected, "of the left side could not be read"),
        (report.right_rows_rejected, "of the right side could not be read"),
        (report.right_without_key_or_time, "of the right side without a key or a time cannot match"),
        (
            report.right_rows_tied,
            "of the right side with the key and time of another one: the last one counts",
        ),
    ] {
        if count > 0 {
            printer.point(Tone::Warning, format!("{} {what}", counted(count, "row")));
        }
    }
    let leaking = report.columns.iter().filter(|column| column.rows_leaking.is_some_and(|rows| rows > 0));
    let leaking: Vec<_> = leaking.collect();
    match report.leaking_rows {
        0 => printer.line("a join with the latest right row would have leaked nothing"),
        rows => printer.line(format!(
            "a join with the latest right row would have leaked into {} and {}:",
            counted(rows, "row"),
            counted(leaking.len() as u64, "feature")
        )),
    }
    for column in leaking {
        let rows = counted(column.rows_leaking.unwrap_or_default(), "row");
        printer.line(format!("  `{}`: another value, from after the row's time, in {rows}", column.column));
    }
    print_reading(printer, &report.reading);
    printer.line(format!("wrote {}", answer.out.display()));
}

pub fn skew(args: &SkewArgs, read: &ReadContext, printer: Printer) -> Exit {
    for (name, value) in [("--tolerance", args.tolerance), ("--equal-min", args.equal_min)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(Failure::usage(format!("{name} is {value}"), "give a fraction from 0 to 1"));
        }
    }
    let on = args.on.iter().chain(&args.time).cloned().collect();
    let plan = SkewPlan { on, tolerance: args.tolerance, equal_min: args.equal_min };
    let sides = [&args.train, &args.serve].map(|paths| request(paths, &args.reading, read));
    let report =
        reading(printer, |observer| compare(Path::new(""), (&sides[0], &sides[1]), &plan, observer))?;
    printer.answer(&report, || print_skew(printer, &report));
    Ok(if report.blocks() { BLOCKED } else { 0 })
}

fn print_skew(printer: Printer, report: &SkewReport) {
    let percent =
        |fraction: Option<f64>| fraction.map_or_else(String::new, |it| format!("{:.2} %", it * 100.0));
    let rows = report.columns.iter().map(|column| {
        vec![
            if column.skewed { printer.tone(Tone::Bad, "skewed") } else { printer.tone(Tone::Good, "equal") },
            column.column.clone().into(),
            percent(column.equal_fraction).into(),
            column.only_in_train.to_string().into(),
            column.only_in_serve.to_string().into(),
            column.difference_max.map_or_else(String::new, |it| format!("{it:.6}")).into(),
        ]
    });
    let header =
        ["", "column", "equal rows", "value only in training", "value only in serving", "largest difference"];
    printer.table(&header, rows.collect());
    printer.line(format!(
        "{} compared of {} for training and {} for serving; {} only for training, {} with a key that serving has several times, {} without a key",
        counted(report.rows_compared, "row"),
        report.train_rows,
        report.serve_rows,
        report.only_in_train,
        report.ambiguous,
        report.without_key
    ));
    for (names, what) in [
        (&report.columns_only_in_train, "only for training"),
        (&report.columns_only_in_serve, "only for serving"),
        (&report.not_compared, "of types that cannot be compared"),
    ] {
        if !names.is_empty() {
            printer.point(Tone::Warning, format!("columns {what}: {}", names.join(", ")));
        }
    }
    print_reading(printer, &report.reading);
    if report.rows_compared == 0 {
        printer.point(Tone::Bad, "both sides have no key in common: nothing was compared");
    }
}
