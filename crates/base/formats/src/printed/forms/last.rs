//! The form of a line from a line of the same length before it: a log repeats a few forms, and to compare is cheaper than to make a form.

use super::quiet::{self, Class, Form};
use crate::printed::{lines, text};

/// Lines of so many lengths are remembered; of lengths with the same remainder the last one that came twice.
const LENGTHS_MAX: usize = 256;
/// The form of a longer line is always made.
const LINE_BYTES_MAX: usize = 512;

/// One line of each length, with its form.
#[derive(Debug, Default)]
pub(in crate::printed) struct LastForms {
    by_length: Vec<Last>,
}

#[derive(Debug, Clone, Default)]
struct Last {
    /// The form that was made last. One that comes once is not worth a pattern.
    made: Option<Form>,
    pattern: Option<(Pattern, Form)>,
}

/// What all lines of one form have in common.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// As it was printed, with the digits of one of them.
    line: Vec<u8>,
    /// All bits are set where a number may have another digit.
    digits: Vec<u8>,
    pub numbers: Vec<Number>,
    /// The indentation, in bytes.
    pub indent: usize,
    /// They head the best values.
    pub heads_best: bool,
}

/// Where a number is, and of which class.
#[derive(Debug, Clone)]
pub(super) struct Number {
    pub begin: usize,
    pub end: usize,
    pub may_lead: bool,
    pub class: Class,
}

impl LastForms {
    /// The form of a line, as [`quiet::form_of`] makes it.
    pub fn form_of(&mut self, line: &[u8]) -> Option<Form> {
        if !(quiet::WORD_BYTES..=LINE_BYTES_MAX).contains(&line.len()) {
            return quiet::form_of(line);
        }
        if self.by_length.is_empty() {
            self.by_length.resize_with(LENGTHS_MAX, Last::default);
        }
        let last = &mut self.by_length[line.len() % LENGTHS_MAX];
        if let Some((pattern, form)) = &last.pattern
            && pattern.fits(line)
        {
            return Some(*form);
        }
        let form = quiet::form_of(line);
        if form.is_some() && form == last.made {
            last.pattern = form.map(|form| (Pattern::of(line), form));
        }
        last.made = form;
        form
    }

    /// The pattern of lines that are like this one but for the digits of numbers, and its form if their classes are the same, too.
    #[inline]
    pub(super) fn alike(&self, line: &[u8]) -> Option<(&Pattern, Form)> {
        let last = self.by_length.get(line.len() % LENGTHS_MAX)?;
        let (pattern, form) = last.pattern.as_ref()?;
        (line.len() == pattern.line.len() && !pattern.differs(line)).then_some((pattern, *form))
    }
}

impl Pattern {
    fn of(line: &[u8]) -> Self {
        let mut digits = vec![0; line.len()];
        let has_object = quiet::has_object(line);
        let number = |(begin, end)| {
            let may_lead = quiet::may_lead(line, begin, has_object);
            Number { begin, end, may_lead, class: Class::of(&line[begin..end], may_lead) }
        };
        let numbers: Vec<Number> = quiet::runs_of(line).into_iter().map(number).collect();
        numbers.iter().for_each(|number| digits[number.begin..number.end].fill(u8::MAX));
        let (indent, heads_best) = (lines::indent_of(line), text::heads_best_values(line));
        Self { line: line.to_owned(), digits, numbers, indent, heads_best }
    }

    /// Whether a line has the form. It does if it differs only in the digits of numbers, and their classes are the same.
    fn fits(&self, line: &[u8]) -> bool {
        let is_of_class = |number: &Number| {
            let digits = &line[number.begin..number.end];
            Class::of(digits, number.may_lead) == number.class
        };
        line.len() == self.line.len() && !self.differs(line) && self.numbers.iter().all(is_of_class)
    }

    /// Whether a line of the same length has anything else than other digits of numbers.
    fn differs(&self, line: &[u8]) -> bool {
        let differing = |line: &[u8; quiet::WORD_BYTES],
                         own: &[u8; quiet::WORD_BYTES],
                         digits: &[u8; quiet::WORD_BYTES]| {
            let [line, own, digits] = [line, own, digits].map(|word| u64::from_le_bytes(*word));
            ((line ^ own) & !digits) | (quiet::without_digits(line) & digits)
        };
        let (words, own, digits) = (line.as_chunks().0, self.line.as_chunks().0, self.digits.as_chunks().0);
        let words = words.iter().zip(own).zip(digits);
        let found = words.fold(0, |found, ((word, own), digits)| found | differing(word, own, digits));
        // The last bytes are in no whole word, but in one that ends with the line.
        let end = line.last_chunk().zip(self.line.last_chunk()).zip(self.digits.last_chunk());
        end.is_none_or(|((word, own), digits)| found | differing(word, own, digits) != 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines that are alike but for some bytes.
    fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let line = prop::sample::select(vec![
            "step 12 loss 0.0412 lr 1.00e-03",
            "{\"step\": 10, \"loss\": 0.05, \"x\": 007}",
            "top5 1 of -0.25 at 10/20, valid_1 3",
            "0 0.0 00 1234567890123456 and more",
            "no number in it",
        ]);
        let changed =
            (line, prop::collection::vec((0..40usize, prop::sample::select(b"0019 -.a{".to_vec())), 0..3));
        let bytes = |(line, changes): (&str, Vec<(usize, u8)>)| {
            let mut line = line.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at % line.len();
                line[at] = byte;
            }
            line
        };
        prop::collection::vec(changed.prop_map(bytes), 1..60)
    }

    proptest! {
        /// Proves that the form of a line is the same whatever lines came before, where numbers differ and where
        /// anything else does; and that it is the one of a line that came twice, too.
        #[test]
        fn forms_are_those_of_the_lines_alone(lines in lines()) {
            let mut forms = LastForms::default();
            for line in lines.iter().flat_map(|line| [line, line, line]) {
                prop_assert_eq!(forms.form_of(line), quiet::form_of(line), "{}", String::from_utf8_lossy(line));
            }
        }
    }

    /// Proves that the form of the third line is not made again, also of one that ends within a word of eight bytes,
    /// and that the longest lines have none kept.
    #[test]
    fn the_third_line_has_a_known_form() {
        let mut forms = LastForms::default();
        for line in ["step 1 loss 0.5", "step 2 loss 0.5", "step 3 loss 0.5"] {
            forms.form_of(line.as_bytes());
        }
        let pattern = &forms.by_length[15].pattern.as_ref().unwrap().0;
        assert!(pattern.fits(b"step 9 loss 0.7"));
        for line in
            ["step 0 loss 0.5", "step 9 loss 0.x", "step 9 lost 0.5", "step 9 loss 0,5", "step 9 loss 0.51"]
        {
            assert!(!pattern.fits(line.as_bytes()), "{line}");
        }
        let long = "7 ".repeat(LINE_BYTES_MAX);
        for _ in 0..3 {
            forms.form_of(long.as_bytes());
        }
        assert!(forms.by_length[long.len() % LENGTHS_MAX].pattern.is_none());
    }
}
