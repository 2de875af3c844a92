//! One text of tables for both databases: it is in PostgreSQL's dialect, and what SQLite runs is made from it.

/// Types of columns, and what SQLite calls them.
const TYPES: [(&str, &str); 5] = [
    ("double precision", "REAL"),
    ("timestamptz", "INTEGER"),
    ("boolean", "INTEGER"),
    ("bigint", "INTEGER"),
    ("text", "TEXT"),
];

/// A database, as far as its dialect matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

/// The statements of a migration in this dialect: without comments, with the lines that are for this database alone.
pub(super) fn script(source: &str, dialect: Dialect) -> String {
    let mut script = String::with_capacity(source.len());
    let mut in_table = false;
    for line in source.lines() {
        let Some(line) = line_for(line, dialect) else { continue };
        in_table |= line.starts_with("CREATE TABLE ");
        match dialect {
            Dialect::Postgres => script.push_str(line),
            Dialect::Sqlite => script.push_str(&sqlite_line(line, in_table)),
        }
        script.push('\n');
        in_table &= !line.ends_with(';');
    }
    script
}

/// A line without its mark; none where it is a comment, empty, or for the other database.
fn line_for(line: &str, dialect: Dialect) -> Option<&str> {
    let mark = match dialect {
        Dialect::Sqlite => "-- sqlite: ",
        Dialect::Postgres => "-- postgres: ",
    };
    let of_this = line.strip_prefix(mark);
    of_this.or_else(|| (!line.starts_with("--") && !line.is_empty()).then_some(line))
}

fn sqlite_line(line: &str, in_table: bool) -> String {
    if let Some((before, column)) = line.split_once(" ADD COLUMN ") {
        return format!("{before} ADD COLUMN {}", sqlite_column(column));
    }
    if let Some(column) = line.strip_prefix("    ").filter(|_| in_table) {
        return format!("    {}", sqlite_column(column));
    }
    if in_table && line == ");" {
        return ") STRICT;".to_owned();
    }
    line.replace(" COLLATE \"C\"", "").replace(" AS double precision)", " AS REAL)")
}

/// A column, or a constraint of its table, which has no type and stays as it is.
fn sqlite_column(definition: &str) -> String {
    let end = definition.len() - definition.trim_end_matches([',', ';']).len();
    let (definition, end) = definition.split_at(definition.len() - end);
    let Some((name, rest)) = definition.split_once(' ') else { return format!("{definition}{end}") };
    let Some((found, (postgres, sqlite))) = TYPES.iter().find_map(|of| Some((rest.strip_prefix(of.0)?, *of)))
    else {
        return format!("{definition}{end}");
    };
    let check = if postgres == "boolean" { format!(" CHECK ({name} IN (0, 1))") } else { String::new() };
    format!("{name} {sqlite}{found}{check}{end}")
}

/// The text of a table without the checks that one column takes only certain words; checks of numbers and between columns stay.
pub(crate) fn without_lists(table: &str) -> String {
    const CHECK: &str = " CHECK (";
    let mut left = String::with_capacity(table.len());
    let mut rest = table;
    while let Some((before, check)) = rest.split_once(CHECK) {
        left.push_str(before);
        match list_length(check) {
            Some(length) => rest = &check[length..],
            None => {
                left.push_str(CHECK);
                rest = check;
            }
        }
    }
    left + rest
}

/// How long `column IN ('a', 'b'))` at the beginning of a text is.
fn list_length(check: &str) -> Option<usize> {
    let (column, words) = check.split_once(" IN ('")?;
    let is_name = column.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let (words, rest) = words.split_once("')")?;
    let is_list = is_name && !words.contains(['(', ')']) && rest.starts_with(')');
    is_list.then(|| check.len() - rest.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that lists of words go from a table, and that checks of numbers and between columns stay.
    #[test]
    fn lists_of_words_go() {
        let table = "CREATE TABLE runs (\n    state TEXT NOT NULL CHECK (state IN ('a', 'b c')),\n    kind TEXT NOT NULL DEFAULT 'x' CHECK (kind IN ('x')),\n    \
             hidden INTEGER CHECK (hidden IN (0, 1)),\n    epoch INTEGER CHECK (epoch > 0),\n    \
             CHECK ((state IN ('b', 'c')) = (ended_at IS NOT NULL)),\n    CHECK (kind = 'x')\n) STRICT";
        let left = without_lists(table);
        assert_eq!(
            left,
            "CREATE TABLE runs (\n    state TEXT NOT NULL,\n    kind TEXT NOT NULL DEFAULT 'x',\n    \
             hidden INTEGER CHECK (hidden IN (0, 1)),\n    epoch INTEGER CHECK (epoch > 0),\n    \
             CHECK ((state IN ('b', 'c')) = (ended_at IS NOT NULL)),\n    CHECK (kind = 'x')\n) STRICT"
        );
        assert_eq!(without_lists(&left), left);
    }

    /// Proves that columns, views and lines for one database become what each database runs.
    #[test]
    fn one_text_becomes_both_dialects() {
        let source = "-- Runs.\nCREATE TABLE runs (\n    run_id text NOT NULL,\n    hidden boolean NOT NULL,\n    cost_usd double precision\n);\n\n\
            -- postgres: CREATE INDEX a ON runs (run_id);\n-- sqlite: CREATE INDEX a ON runs (run_id, cost_usd);\n\
            CREATE INDEX b ON runs (run_id COLLATE \"C\");\nALTER TABLE runs ADD COLUMN at timestamptz;\n";
        let postgres = script(source, Dialect::Postgres);
        assert_eq!(
            postgres,
            "CREATE TABLE runs (\n    run_id text NOT NULL,\n    hidden boolean NOT NULL,\n    cost_usd double precision\n);\n\
             CREATE INDEX a ON runs (run_id);\nCREATE INDEX b ON runs (run_id COLLATE \"C\");\nALTER TABLE runs ADD COLUMN at timestamptz;\n"
        );
        let sqlite = script(source, Dialect::Sqlite);
        assert_eq!(
            sqlite,
            "CREATE TABLE runs (\n    run_id TEXT NOT NULL,\n    hidden INTEGER NOT NULL CHECK (hidden IN (0, 1)),\n    cost_usd REAL\n) STRICT;\n\
             CREATE INDEX a ON runs (run_id, cost_usd);\nCREATE INDEX b ON runs (run_id);\nALTER TABLE runs ADD COLUMN at INTEGER;\n"
        );
    }
}
