//! What a run file may request that this version reads but does not do. The list shrinks as capabilities arrive.

use std::ops::Range;

use super::tree::{Node, Place, Value};
use super::walker::Scope;

/// Something the run file requests that this version reads but does not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// The key, such as `ladder` or `checkpoint.keep.best`.
    pub what: String,
    /// The bytes of the key in the run file; empty when an override set it.
    pub span: Range<usize>,
    /// What to do instead.
    pub hint: String,
}

/// Whether a path is a URL (`scheme://…`).
pub(super) fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty()
            && !rest.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
    })
}

/// Everything of the document that this version does not do, in file order.
pub(super) fn find(top: &Scope) -> Vec<Unsupported> {
    let mut found = Vec::new();
    for (key, entry) in top.entries() {
        if key == "launch" {
            found.extend(launcher(&entry.node));
        }
    }
    found.sort_by_key(|unsupported| unsupported.span.start);
    found
}

fn note(place: &Place, what: &str, hint: &str) -> Unsupported {
    let in_file = place.source_index == 0;
    let span = if in_file { place.span.clone() } else { 0..0 };
    Unsupported { what: what.to_owned(), span, hint: hint.to_owned() }
}

fn launcher(node: &Node) -> Option<Unsupported> {
    let Value::Table(table) = &node.value else { return None };
    let on = table.get("on")?;
    match &on.node.value {
        Value::Text(word) if word != "local" => {
            Some(note(&on.node.place, &format!("launch.on = \"{word}\""), "use `on = \"local\"`"))
        }
        _ => None,
    }
}
