//! Answers one query: `ask_ledger HOME QUERY`, with the ledger at `HOME/ledger.db`. `ask_ledger HOME --floor QUERY`
//! runs it with SQLite alone, in SQLite's dialect: the difference is the cost of the query engine.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for benchmarks")]

use std::path::Path;

use trackway_ledger::Ledger;
use trackway_sql::sql;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let home = Path::new(&arguments[0]);
    let ledger = home.join("ledger.db");
    if arguments[1] == "--floor" {
        let connection = rusqlite::Connection::open(ledger).unwrap();
        let mut statement = connection.prepare(&arguments[2]).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            println!("{:?}", row.get_ref(0).unwrap());
        }
        return;
    }
    let ledger = Ledger::open(ledger.to_str().unwrap()).unwrap();
    for row in sql(&ledger, home, &arguments[1]).unwrap().text_rows().unwrap() {
        println!("{}", row.join("|"));
    }
}
