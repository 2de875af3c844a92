use std::path::Path;

use trackway_api::data::ImagesAnswer;
use trackway_flows::data::ReadContext;
use trackway_flows::data::images::{MediaCount, MediaRequest, images as look};

use super::{findings, reading};
use crate::args::ImagesArgs;
use crate::commands::checks::print_finding;
use crate::exit::{BLOCKED, Exit};
use crate::printer::Printer;
use crate::units::counted;

pub fn images(args: &ImagesArgs, read: &ReadContext, printer: Printer) -> Exit {
    let request =
        MediaRequest { paths: args.paths.clone(), masks: args.masks.clone(), labels: args.labels.clone() };
    let answer = reading(printer, |observer| look(Path::new(""), &request, read, observer))?;
    printer.answer(&answer, || print(printer, &answer));
    Ok(if answer.blocks() { BLOCKED } else { 0 })
}

fn print(printer: Printer, answer: &ImagesAnswer) {
    findings::table(printer, &answer.found.checks);
    answer.findings.iter().for_each(|finding| print_finding(printer, finding, usize::MAX));
    printer.line(summary(&answer.found.count));
}

fn summary(count: &MediaCount) -> String {
    let MediaCount { files, images, texts, broken, not_checked, others } = count;
    format!(
        "{}: {} and {} read, {broken} broken, {not_checked} not decoded, {others} of another kind",
        counted(*files, "file"),
        counted(*images, "image"),
        counted(*texts, "text file")
    )
}
