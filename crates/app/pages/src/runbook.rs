//! The runbook inside a page: the sections of `docs/termination-reasons.md` that it names, so that its links open without a network.

use maud::{Markup, html};
use trackway_api::runs::explain::Termination;
use trackway_core::TerminationReason;

use crate::parts::section;

/// A section for each reason, under a heading that is its name.
const RUNBOOK: &str = include_str!("../../../../docs/termination-reasons.md");

/// The reason that a path such as `docs/termination-reasons.md#hang` names.
fn reason_of(path: &str) -> Option<TerminationReason> {
    path.rsplit_once('#')?.1.parse().ok()
}

fn anchor(reason: TerminationReason) -> String {
    format!("runbook-{reason}")
}

/// A link to the section in this page; [`sections`] has to have the same path.
pub fn link(path: &str) -> Markup {
    html! {
        @match reason_of(path) {
            Some(reason) => a href=(format!("#{}", anchor(reason))) { code { (path) } },
            None => code { (path) },
        }
    }
}

/// The paths that [`crate::run_parts::cause`] links to.
pub fn paths_of(termination: &Termination) -> impl Iterator<Item = &str> {
    let others = termination.secondary.iter().filter_map(|other| other.runbook.as_deref());
    std::iter::once(termination.runbook.as_str()).chain(others)
}

/// The sections that these paths name, each once.
pub fn sections<'p>(paths: impl Iterator<Item = &'p str>) -> Markup {
    let mut reasons: Vec<TerminationReason> = Vec::new();
    for reason in paths.filter_map(reason_of) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    html! {
        @if !reasons.is_empty() {
            (section("Runbook", &html! {
                @for reason in reasons {
                    h3 id=(anchor(reason)) { (reason.as_str()) }
                    @for paragraph in paragraphs(reason) { p { (inline(&paragraph)) } }
                }
            }))
        }
    }
}

/// The text about a reason; a line that begins with emphasis begins a paragraph.
fn paragraphs(reason: TerminationReason) -> Vec<String> {
    let heading = format!("## {reason}");
    let lines = RUNBOOK.lines().skip_while(|line| *line != heading).skip(1);
    let mut paragraphs: Vec<String> = vec![String::new()];
    for line in lines.take_while(|line| !line.starts_with('#')) {
        if line.is_empty() || line.starts_with('*') {
            paragraphs.push(String::new());
        }
        if let Some(last) = paragraphs.last_mut() {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(line);
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

/// The text with its code and emphasis; of a link, which leads to another file, its label.
fn inline(text: &str) -> Markup {
    let text = without_targets(text);
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 1 { code { (part) } } @else {
                @for (place, part) in part.split("**").enumerate() {
                    @if place % 2 == 1 { b { (part) } } @else { (part.replace('*', "")) }
                }
            }
        }
    }
}

/// `[label](target)` as `label`.
fn without_targets(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    while let Some((label, end)) = rest.find("](").and_then(|at| Some((at, at + rest[at..].find(')')?))) {
        plain.push_str(&rest[..label].replacen('[', "", 1));
        rest = &rest[end + 1..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that every reason has a section with advice, that its link leads to it, and that a path of another document is text.
    #[test]
    fn every_reason_has_its_section() {
        for reason in TerminationReason::ALL {
            let path = format!("docs/termination-reasons.md#{reason}");
            assert!(link(&path).0.contains(&format!("href=\"#runbook-{reason}\"")));
            let text = sections([path.as_str(), path.as_str()].into_iter()).0;
            assert_eq!(text.matches(&format!("id=\"runbook-{reason}\"")).count(), 1);
            assert!(text.contains("<b>You:</b>"), "{reason}: {text}");
            assert!(!text.contains('`') && !text.contains("]("), "{text}");
        }
        assert_eq!(link("docs/diagnosis.md").0, "<code>docs/diagnosis.md</code>");
    }

    /// Proves that code, emphasis and the labels of links stay, and that their marks do not.
    #[test]
    fn marks_become_markup() {
        let text = inline("**You:** find it with [`trackway x`](x.md#y), *slowly*");
        assert_eq!(text.0, "<b>You:</b> find it with <code>trackway x</code>, slowly");
    }
}
