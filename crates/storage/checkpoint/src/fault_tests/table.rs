//! The crash matrix as it is published in `docs/checkpoints.md`.

use std::path::Path;

/// Environment variable: write what was found into the document instead of comparing.
const BLESS: &str = "TRACKWAY_BLESS";

/// The result of one cell: at how many operations it was interrupted, and after how many the commit was there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    pub places: usize,
    pub holds: usize,
}

impl std::ops::AddAssign for Cell {
    fn add_assign(&mut self, other: Self) {
        self.places += other.places;
        self.holds += other.holds;
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} of {}", self.holds, self.places)
    }
}

/// One table: a row per operation, a column per kind of fault.
pub(super) fn render(columns: &[&str], rows: &[(&str, Vec<Cell>)]) -> String {
    let mut text =
        format!("| operation | {} |\n|---|{}\n", columns.join(" | "), "---:|".repeat(columns.len()));
    for (name, cells) in rows {
        let cells: Vec<_> = cells.iter().map(Cell::to_string).collect();
        text += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    let mut sums = vec![Cell::default(); columns.len()];
    for (_, cells) in rows {
        sums.iter_mut().zip(cells).for_each(|(sum, cell)| *sum += *cell);
    }
    let sums: Vec<_> = sums.iter().map(|sum| format!("**{sum}**")).collect();
    text + &format!("| all | {} |\n", sums.join(" | "))
}

/// Asserts that the part of the document between the markers of that name is `found`, or makes it so.
pub(super) fn publish(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/checkpoints.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let from = document.find(&begin).unwrap_or_else(|| panic!("no marker `{name}`")) + begin.len();
    let to = from + document[from..].find(&end).unwrap_or_else(|| panic!("no end of `{name}`"));
    if document[from..to] == *found {
        return;
    }
    assert!(
        std::env::var_os(BLESS).is_some(),
        "`{name}` in docs/checkpoints.md is out of date; run this test with {BLESS}=1. Found:\n{found}"
    );
    // Two tests write into one document: only its own part is taken from what was read.
    let document = std::fs::read_to_string(&path).unwrap();
    let from = document.find(&begin).unwrap() + begin.len();
    let to = from + document[from..].find(&end).unwrap();
    std::fs::write(&path, format!("{}{found}{}", &document[..from], &document[to..])).unwrap();
}
