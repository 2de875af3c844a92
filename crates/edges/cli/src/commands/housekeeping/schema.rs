//! `trackway schema`: the documents that commands print with `--json`, and their schemas.

use trackway_api::contract::catalogue::DOCUMENTS;
use trackway_api::contract::schemas::{DocumentSchema, ListedDocument};
use trackway_engine::error::{AppError, ErrorKind};

use crate::args::SchemaArgs;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

pub fn schema(args: &SchemaArgs, printer: Printer) -> Exit {
    let Some(name) = &args.document else {
        list(printer);
        return Ok(0);
    };
    let entry = DOCUMENTS.iter().find(|entry| entry.name == name.as_str()).ok_or_else(|| {
        AppError::new(ErrorKind::NotFound, format!("there is no document `{name}`"))
            .hint("list the documents with: trackway schema")
    })?;
    let schema =
        entry.schema().map_err(|error| Failure::fault(format!("the schema of `{name}`")).because(error))?;
    printer.document(&DocumentSchema(schema));
    Ok(0)
}

fn list(printer: Printer) {
    let documents: Vec<ListedDocument> = DOCUMENTS.iter().map(ListedDocument::from).collect();
    let cells = |one: &ListedDocument| {
        vec![one.name.clone(), one.shape.to_string(), one.commands.join(", "), one.remarks.clone()]
    };
    printer.answer(&documents, || {
        let header = ["document", "shape", "printed by", "remarks"];
        printer.table(&header, documents.iter().map(cells).collect());
    });
}
