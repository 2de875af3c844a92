use std::io::Write as _;

use trackway_app::App;
use trackway_ledger::Answer;

use crate::args::SqlArgs;
use crate::exit::Failure;
use crate::printer::Printer;

pub fn sql(app: &App, args: &SqlArgs, printer: Printer) -> Result<u8, Failure> {
    let answer = app.sql(&args.query)?;
    if let Some(path) = &args.parquet {
        let rows = app.write_parquet(&answer, path)?;
        printer.note(&format!("wrote {rows} rows to `{}`", path.display()));
    } else if printer.is_json() {
        printer.document(&app.json_rows(&answer)?);
    } else if args.csv {
        let mut bytes = Vec::new();
        answer.write_csv(&mut bytes)?;
        bytes.flush()?;
        printer.raw(&bytes)?;
    } else {
        table(app, &answer, printer)?;
    }
    Ok(0)
}

fn table(app: &App, answer: &Answer, printer: Printer) -> Result<(), Failure> {
    let columns = answer.columns();
    let header: Vec<&str> = columns.iter().map(String::as_str).collect();
    let rows = app.text_rows(answer)?;
    let count = rows.len();
    printer.table(&header, rows);
    printer.note(&format!("{count} {}", if count == 1 { "row" } else { "rows" }));
    Ok(())
}
