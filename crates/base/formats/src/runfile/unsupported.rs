//! What a run file may request that this version reads but does not do. The list shrinks as capabilities arrive.

use std::ops::Range;

use super::keys::tree::{Node, Place, Table, Value};
use super::keys::walker::{Problems, Scope};

/// Something the run file requests that this version reads but does not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// The key, such as `ladder` or `checkpoint.keep.best`.
    pub what: String,
    /// The bytes of the key in the run file; empty when an override set it.
    pub span: Range<usize>,
    /// Where it is set, as it is shown: `trackway.toml:7`, or the change, such as `--set launch.on=ray`.
    pub at: String,
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
pub(super) fn find(top: &Scope, problems: &Problems<'_>) -> Vec<Unsupported> {
    let mut found = Vec::new();
    for (key, entry) in top.entries() {
        match key.as_str() {
            "launch" => found.extend(launcher(&entry.node, "on", "launch.on", problems)),
            "retry" => found.extend(launchers_of_plans(&entry.node, problems)),
            _ => {}
        }
    }
    found.sort_by_key(|unsupported| unsupported.span.start);
    found
}

fn note(place: &Place, what: &str, hint: &str, problems: &Problems<'_>) -> Unsupported {
    let in_file = place.source_index == 0;
    let span = if in_file { place.span.clone() } else { 0..0 };
    Unsupported { what: what.to_owned(), span, at: problems.shown_place(place), hint: hint.to_owned() }
}

fn table_of(node: &Node) -> Option<&Table> {
    match &node.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

fn launcher(node: &Node, key: &str, what: &str, problems: &Problems<'_>) -> Option<Unsupported> {
    let on = table_of(node)?.get(key)?;
    match &on.node.value {
        Value::Text(word) if word != "local" => {
            let (what, hint) = (format!("{what} = \"{word}\""), format!("use `{key} = \"local\"`"));
            Some(note(&on.node.place, &what, &hint, problems))
        }
        _ => None,
    }
}

fn launchers_of_plans(retry: &Node, problems: &Problems<'_>) -> Vec<Unsupported> {
    let mut found = Vec::new();
    for (reason, rule) in table_of(retry).into_iter().flatten() {
        let Some(Value::List(entries)) =
            table_of(&rule.node).and_then(|rule| rule.get("plan")).map(|plan| &plan.node.value)
        else {
            continue;
        };
        for (index, entry) in entries.iter().enumerate() {
            let what = format!("retry.{reason}.plan[{index}].launcher");
            found.extend(launcher(entry, "launcher", &what, problems));
        }
    }
    found
}
