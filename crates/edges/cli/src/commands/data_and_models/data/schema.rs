use std::io::Write;
use std::path::Path;

use trackway_flows::data::ReadContext;
use trackway_flows::data::schema;

use super::{code, findings, reading, table};
use crate::args::{InferArgs, ValidateArgs};
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

pub fn infer(args: &InferArgs, read: &ReadContext, printer: Printer) -> Exit {
    let mut answer =
        reading(printer, |observer| schema::infer(Path::new(""), &table(&args.table, read), observer))?;
    if let Some(path) = &args.out {
        let made = std::fs::File::create_new(path)
            .and_then(|mut file| file.write_all(answer.toml.as_bytes()))
            .and_then(|()| trackway_files::give_to_user(path));
        made.map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Failure::usage(message, "name another file, or remove it first")
        })?;
        answer.path = Some(path.clone());
        printer.note(format!("wrote {}", path.display()));
    }
    if printer.is_json() {
        printer.document(&answer);
    } else {
        if args.out.is_none() {
            printer.file(answer.toml.as_bytes());
        }
        answer.reading.iter().for_each(|note| printer.note(&note.message));
    }
    Ok(code(answer.rows, answer.rows_rejected))
}

pub fn validate(args: &ValidateArgs, read: &ReadContext, printer: Printer) -> Exit {
    let rules = (args.schema.as_path(), args.environment.as_deref());
    let answer = reading(printer, |observer| {
        schema::validate(Path::new(""), &table(&args.table, read), rules, observer)
    })?;
    printer.answer(&answer, || findings::print(printer, &answer));
    Ok(findings::code(&answer))
}
