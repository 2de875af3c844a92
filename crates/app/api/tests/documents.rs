//! The documents of the catalogue.

use std::collections::BTreeSet;

use trackway_api::catalogue::DOCUMENTS;
use trackway_api::page;

fn document_names() -> BTreeSet<String> {
    DOCUMENTS.iter().map(|entry| entry.name.to_owned()).collect()
}

/// Proves that every document has one name, and every type of all schemas one name too.
#[test]
fn names_are_unique() {
    assert_eq!(document_names().len(), DOCUMENTS.len());
    let page = page::document();
    let numbered = page
        .lines()
        .filter(|line| line.starts_with("### ") && line.ends_with(|last: char| last.is_ascii_digit()));
    assert_eq!(numbered.collect::<Vec<_>>(), Vec::<&str>::new(), "two types with one name");
}
