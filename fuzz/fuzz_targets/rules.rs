//! Whatever the text, a gate and the rule of a ladder are read or refused with a place inside it, and never with a panic. What is read
//! is read alike from its printed form: each comparison from its text, each number from how it is shown.
#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use trackway_formats::rule::{Condition, Operand, Rule};
use trackway_formats::{gate, promotion};

fuzz_target!(|text: &str| {
    check::<gate::Number>(text);
    check::<promotion::Operand>(text);
});

fn check<O: Operand + Debug>(text: &str) {
    let rule = match Rule::<O>::parse(text) {
        Ok(rule) => rule,
        Err(error) => {
            assert!(text.get(error.span).is_some(), "a place inside the text");
            assert!(!error.message.is_empty());
            return;
        }
    };
    let comparisons = rule.comparisons();
    assert!(!comparisons.is_empty());
    for comparison in comparisons {
        assert!(text.contains(&comparison.text));
        let again = Rule::<O>::parse(&comparison.text).expect("a comparison is a rule");
        assert_eq!(again.condition, Condition::Compare(comparison.clone()));
        for operand in comparison.operands() {
            let shown =
                Rule::<O>::parse(&format!("{operand} > 0")).expect("a number is shown as it is written");
            assert_eq!(shown.comparisons()[0].operands(), [operand]);
        }
    }
}
