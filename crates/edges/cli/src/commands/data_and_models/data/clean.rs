use std::path::Path;

use trackway_api::data::CleanAnswer;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_flows::data::ReadContext;
use trackway_flows::data::clean::{CleanRequest, Protection, clean as write};

use super::{code, reading, table};
use crate::args::CleanArgs;
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, Tone};
use crate::units::counted;

/// Reasons shown; `--json` has all.
const REASONS_SHOWN: usize = 10;

pub fn clean(args: &CleanArgs, read: &ReadContext, printer: Printer) -> Exit {
    let each =
        |columns: &[String], how| columns.iter().map(|column| (column.clone(), how)).collect::<Vec<_>>();
    let protected = [
        each(&args.mask, Protection::Mask),
        each(&args.hash, Protection::Hash),
        each(&args.drop, Protection::Drop),
    ]
    .concat();
    for (place, (column, _)) in protected.iter().enumerate() {
        if protected[..place].iter().any(|(other, _)| other == column) {
            let message = format!("`{column}` is named twice");
            return Err(Failure::usage(message, "name a column with one of --mask, --hash and --drop"));
        }
    }
    let request = CleanRequest {
        table: table(&args.table, read),
        schema: args.schema.clone(),
        rules: args.rule.clone(),
        duplicates: args.duplicates,
        protected,
        personal: args.personal,
        key: key(args)?,
        out: args.out.clone(),
        quarantine: args.quarantine.clone(),
    };
    let answer = reading(printer, |observer| write(Path::new(""), &request, observer))?;
    printer.answer(&answer, || print(printer, &answer));
    Ok(code(answer.account.rows - answer.account.rows_unreadable, answer.account.rows_unreadable))
}

/// The key of hashed columns: from a file or the environment, never from the command line, which other users can see.
fn key(args: &CleanArgs) -> Result<Option<Vec<u8>>, Failure> {
    use std::os::unix::ffi::OsStringExt as _;
    if let Some(path) = &args.key_file {
        let read = std::fs::read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let message = format!("the key file `{}` does not exist", path.display());
                AppError::new(ErrorKind::NotFound, message)
                    .hint("a key has 16 bytes or more: head -c 32 /dev/urandom > FILE")
            }
            _ => AppError::file("read the key in", path, error),
        });
        return Ok(Some(read?));
    }
    let Some(name) = &args.key_variable else { return Ok(None) };
    let value = std::env::var_os(name).ok_or_else(|| {
        AppError::new(ErrorKind::Usage, format!("the environment variable `{name}` is not set"))
            .hint("set it to the key, or name a file with --key-file")
    })?;
    Ok(Some(value.into_vec()))
}

fn print(printer: Printer, answer: &CleanAnswer) {
    let account = &answer.account;
    let mut rows = vec![
        vec!["read".to_owned(), account.rows.to_string()],
        vec!["written".to_owned(), account.rows_written.to_string()],
        vec!["duplicates left out".to_owned(), account.duplicates_dropped.to_string()],
        vec!["quarantined".to_owned(), account.rows_quarantined.to_string()],
    ];
    if account.duplicates_kept > 0 {
        rows.insert(2, vec!["  of them duplicates".to_owned(), account.duplicates_kept.to_string()]);
    }
    if account.rows_unreadable > 0 {
        rows.push(vec!["  of them not readable".to_owned(), account.rows_unreadable.to_string()]);
    }
    printer.table(&["rows", "count"], rows);
    printer.line(format!(
        "{} = {} + {} + {}: every row is accounted for",
        account.rows, account.rows_written, account.duplicates_dropped, account.rows_quarantined
    ));
    for reason in account.reasons.iter().take(REASONS_SHOWN) {
        printer.point(Tone::Warning, format!("{}: {}", counted(reason.rows, "row"), reason.reason));
    }
    if let Some(more) = account.reasons.len().checked_sub(REASONS_SHOWN).filter(|more| *more > 0) {
        printer.line(format!("{more} more reasons; --json lists all of them"));
    }
    for rule in &account.rules_not_applied {
        printer.point(Tone::Warning, format!("not applied, because one row does not decide it: {rule}"));
    }
    for column in &answer.protected {
        let kinds = match column.kinds.is_empty() {
            true => String::new(),
            false => format!(" ({})", column.kinds.join(", ")),
        };
        printer.line(format!("`{}`{kinds} is {}", column.column, column.how));
    }
    printer.points(Tone::Warning, &answer.notes);
    printer.line(format!("wrote {}", answer.out.display()));
    printer.line(format!("wrote {}", answer.quarantine.display()));
}
