use std::io::Write;
use std::path::Path;

use trackway_api::data::InferredSchema;
use trackway_flows::data::ReadContext;
use trackway_flows::data::schema;

use super::{findings, reading, table};
use crate::args::{InferArgs, ValidateArgs};
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

pub fn infer(args: &InferArgs, read: &ReadContext, printer: Printer) -> Exit {
    let text =
        reading(printer, |onlooker| schema::infer(Path::new(""), &table(&args.table, read), onlooker))?;
    if let Some(path) = &args.out {
        let made = std::fs::File::create_new(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| trackway_files::give_to_user(path));
        made.map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Failure::usage(message, "name another file, or remove it first")
        })?;
        printer.note(format!("wrote {}", path.display()));
    }
    if printer.is_json() {
        printer.document(&InferredSchema { toml: text, path: args.out.clone() });
    } else if args.out.is_none() {
        printer.file(text.as_bytes());
    }
    Ok(0)
}

pub fn validate(args: &ValidateArgs, read: &ReadContext, printer: Printer) -> Exit {
    let rules = (args.schema.as_path(), args.environment.as_deref());
    let answer = reading(printer, |onlooker| {
        schema::validate(Path::new(""), &table(&args.table, read), rules, onlooker)
    })?;
    printer.answer(&answer, || findings::print(printer, &answer));
    Ok(findings::code(&answer))
}
