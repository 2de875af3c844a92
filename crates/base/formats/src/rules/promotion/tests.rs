use proptest::prelude::*;

use super::*;
use crate::rules::rule::{Condition, Expression, MAX_RULE_BYTES};

/// The rule as brackets, or the mistake with its place marked.
fn read(text: &str) -> String {
    match Rule::parse(text) {
        Ok(rule) => shown(&rule.condition),
        Err(error) => {
            let hint = error.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{}: {}{hint}", &text[error.span], error.message)
        }
    }
}

fn shown(condition: &Condition<Operand>) -> String {
    let list = |parts: &[Condition<Operand>]| parts.iter().map(shown).collect::<Vec<_>>().join(" ");
    match condition {
        Condition::All(parts) => format!("(and {})", list(parts)),
        Condition::Any(parts) => format!("(or {})", list(parts)),
        Condition::Compare(it) => format!("({} {} {})", it.relation, number(&it.left), number(&it.right)),
    }
}

fn number(expression: &Expression<Operand>) -> String {
    match expression {
        Expression::Number(number) => number.to_string(),
        Expression::Value(operand) => operand.to_string(),
        Expression::Negative(inner) => format!("(- {})", number(inner)),
        Expression::Binary(left, operator, right) => {
            format!("({operator:?} {} {})", number(left), number(right)).to_lowercase()
        }
    }
}

/// Proves the order in which operators bind, and what `previous` means.
#[test]
fn rules_are_read() {
    let cases = [
        ("val_loss < 0.95 * previous", "(< val_loss (multiply 0.95 previous(val_loss)))"),
        (
            "best(val_loss) <= previous - 1e-3",
            "(<= best(val_loss) (subtract previous(best(val_loss)) 0.001))",
        ),
        ("best(max accuracy) > .8", "(> best(max accuracy) 0.8)"),
        ("best(min loss) > 1 ", "(> best(loss) 1)"),
        ("last(loss) != -2", "(!= loss (- 2))"),
        ("a < 1 or b > 2 and c == 3", "(or (< a 1) (and (> b 2) (== c 3)))"),
        ("(a < 1 or b > 2) and c == 3", "(and (or (< a 1) (> b 2)) (== c 3))"),
        (
            "(a + b) / 2 - c < previous(best(max a))",
            "(< (subtract (divide (add a b) 2) c) previous(best(max a)))",
        ),
        ("previous - val_loss >= 0.1", "(>= (subtract previous(val_loss) val_loss) 0.1)"),
        ("`val/loss` < previous and `best` > 0", "(and (< `val/loss` previous(`val/loss`)) (> `best` 0))"),
        ("1e3 > x.y", "(> 1000 x.y)"),
    ];
    for (text, wanted) in cases {
        assert_eq!(read(text), wanted, "{text}");
    }
}

/// Proves that each mistake is reported as what it is, and where.
#[test]
fn mistakes_are_reported_with_their_place() {
    let cases = [
        ("", ": ends where a metric or a number should follow"),
        ("val_loss", "val_loss: has a number here, not a condition (compare it, such as `val_loss < 0.5`)"),
        ("a < 1 b < 2", "b: continues where it should end (combine comparisons with `and` or `or`)"),
        ("0 < a < 1", "<: compares three things at once (write two comparisons with `and` between them)"),
        (
            "a < 95%",
            "%: holds `%`, which has no meaning in a rule (write a fraction as a number: `0.95`, not `95%`)",
        ),
        ("a = 1", "=: holds `=`, which has no meaning in a rule (write `==`)"),
        (
            "a + b < previous",
            "previous: does not name the metric of `previous` (name it: `previous(val_loss)`)",
        ),
        ("1 < previous", "previous: does not name the metric of `previous` (name it: `previous(val_loss)`)"),
        (
            "mean(loss) < 1",
            "mean: calls `mean(…)`, which does not exist (there are `last(metric)`, `best(metric)`, `best(max metric)` and `previous(metric)`)",
        ),
        ("best < 1", "best: uses `best` as a metric (put a metric of that name in backticks: `` `best` ``)"),
        ("(a < 1", "(: opens a bracket that is never closed"),
        ("a < 1)", "): closes a bracket that was never opened"),
        ("a < (b < 1)", "b < 1: has a condition here, not a number"),
        ("a < 1.2.3", "1.2.3: holds `1.2.3`, which is not a number"),
        ("a <", ": ends where a metric or a number should follow"),
        ("`a < 1", "`a < 1: opens a backtick that is never closed"),
        ("a < 1 and", ": ends where a metric or a number should follow"),
    ];
    for (text, wanted) in cases {
        assert_eq!(read(text), wanted, "{text}");
    }
    let deep = format!("{}1 < a", "(".repeat(400));
    assert!(Rule::parse(&deep).unwrap_err().message.contains("nested too deep"));
    assert!(Rule::parse(&"a".repeat(MAX_RULE_BYTES + 1)).unwrap_err().message.contains("at most"));
}

/// Proves that a comparison is shown as it was written, and that its values are shown once each.
#[test]
fn comparisons_keep_their_text() {
    let rule = Rule::parse("(val_loss < 0.9 * previous) and val_loss - loss < loss").unwrap();
    let comparisons = rule.comparisons();
    assert_eq!(comparisons[0].text, "val_loss < 0.9 * previous");
    assert_eq!(comparisons[1].text, "val_loss - loss < loss");
    assert_eq!(Rule::parse("((a + 1) < 2)").unwrap().comparisons()[0].text, "(a + 1) < 2");
    let operands: Vec<String> = comparisons[1].operands().iter().map(ToString::to_string).collect();
    assert_eq!(operands, ["val_loss", "loss"]);
}

proptest! {
    /// Proves that no string makes the parser panic, and that a mistake's place is in the string.
    #[test]
    fn no_text_is_too_much(text in "[a-c0-9.<>=!+*/()` %-]{0,40}|(previous|best\\(|a|<|and |or |\\(|\\)|1|-| ){0,30}|\\PC{0,40}") {
        if let Err(error) = Rule::parse(&text) {
            prop_assert!(text.get(error.span).is_some());
        }
    }
}
