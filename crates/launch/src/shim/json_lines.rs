//! Metrics of a script that knows nothing of Trackway: numbers in the JSON objects that it prints, one per line.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// A line longer than this is no metrics.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// At most so many values are taken from one line.
const VALUES_MAX: usize = 256;
/// Longer names are no metrics.
const NAME_BYTES_MAX: usize = 200;

/// The fields that say which step a line belongs to, the best first.
const STEP_FIELDS: [&str; 4] = ["step", "global_step", "iteration", "epoch"];

/// The numbers of one line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MetricLine {
    /// The step the line names.
    pub step: Option<u64>,
    /// Names and values, in the order of the names.
    pub values: Vec<(String, f64)>,
}

/// Puts lines together from pieces and reads those that are JSON objects.
#[derive(Debug, Default)]
pub(super) struct JsonLines {
    line: Vec<u8>,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    AtStart,
    /// The line began with `{`.
    Object,
    /// The rest of the line is of no interest.
    Skip,
}

impl JsonLines {
    /// Takes the next bytes; calls `found` for every line with numbers in it.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(MetricLine)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.state == State::AtStart {
                let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
                rest = &rest[blank..];
                let Some(first) = rest.first() else { return };
                self.state = if *first == b'{' { State::Object } else { State::Skip };
            }
            let newline = memchr::memchr(b'\n', rest);
            let (part, next) = rest.split_at(newline.map_or(rest.len(), |newline| newline + 1));
            if self.state == State::Object {
                self.line.extend_from_slice(&part[..part.len().min(LINE_BYTES_MAX + 1)]);
                if self.line.len() > LINE_BYTES_MAX {
                    self.line.clear();
                    self.state = State::Skip;
                }
            }
            if newline.is_some() {
                self.end_line(&mut found);
            }
            rest = next;
        }
    }

    /// The last line may lack its newline.
    pub fn finish(&mut self, mut found: impl FnMut(MetricLine)) {
        self.end_line(&mut found);
    }

    fn end_line(&mut self, found: &mut impl FnMut(MetricLine)) {
        if self.state == State::Object
            && let Some(line) = read_line(&self.line)
        {
            found(line);
        }
        self.line.clear();
        self.state = State::AtStart;
    }
}

/// The numbers of a JSON object; `None` when it is no object or holds none.
pub(super) fn read_line(line: &[u8]) -> Option<MetricLine> {
    let fields: Map<String, Value> =
        serde_json::from_slice(line).or_else(|_| serde_json::from_slice(&quote_non_finite(line))).ok()?;
    let step_field = STEP_FIELDS.iter().copied().find(|name| step_of(&fields, name).is_some());
    let mut values = Vec::new();
    for (name, value) in &fields {
        match value {
            Value::Object(inner) => {
                inner
                    .iter()
                    .for_each(|(part, value)| push_number(&format!("{name}/{part}"), value, &mut values));
            }
            _ if Some(name.as_str()) == step_field && name != "epoch" => {}
            _ => push_number(name, value, &mut values),
        }
    }
    let step = step_field.and_then(|name| step_of(&fields, name));
    (!values.is_empty()).then_some(MetricLine { step, values })
}

fn push_number(name: &str, value: &Value, values: &mut Vec<(String, f64)>) {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => non_finite(text),
        _ => None,
    };
    if let Some(number) = number.filter(|_| values.len() < VALUES_MAX && name.len() <= NAME_BYTES_MAX) {
        values.push((name.to_owned(), number));
    }
}

fn step_of(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    let value = fields.get(name)?;
    // Python writes a fractional epoch (1.5) and sometimes a whole step as a float (100.0).
    value
        .as_u64()
        .or_else(|| value.as_f64().filter(|step| *step >= 0.0 && *step < 9e15).map(|step| step as u64))
}

/// Marks a number that JSON cannot write and Python does. The blank in it keeps it apart from what scripts print.
const NON_FINITE: [(&str, &str, f64); 3] = [
    ("-Infinity", "\"\\u0000 -inf\"", f64::NEG_INFINITY),
    ("Infinity", "\"\\u0000 inf\"", f64::INFINITY),
    ("NaN", "\"\\u0000 nan\"", f64::NAN),
];

fn non_finite(text: &str) -> Option<f64> {
    match text.strip_prefix("\0 ")? {
        "-inf" => Some(f64::NEG_INFINITY),
        "inf" => Some(f64::INFINITY),
        "nan" => Some(f64::NAN),
        _ => None,
    }
}

/// Makes Python's `NaN` and `Infinity` readable: a diverged loss is the last metric that may be lost.
fn quote_non_finite(line: &[u8]) -> Cow<'_, [u8]> {
    let mut quoted = Vec::with_capacity(line.len() + 32);
    let (mut in_string, mut escaped, mut at) = (false, false, 0);
    while at < line.len() {
        let word = NON_FINITE.iter().find(|(word, ..)| !in_string && line[at..].starts_with(word.as_bytes()));
        if let Some((word, replacement, _)) = word {
            quoted.extend_from_slice(replacement.as_bytes());
            at += word.len();
            continue;
        }
        let byte = line[at];
        in_string ^= byte == b'"' && !escaped;
        escaped = in_string && byte == b'\\' && !escaped;
        quoted.push(byte);
        at += 1;
    }
    Cow::Owned(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&str]) -> Vec<MetricLine> {
        let (mut lines, mut found) = (JsonLines::default(), Vec::new());
        pieces.iter().for_each(|piece| lines.push(piece.as_bytes(), |line| found.push(line)));
        lines.finish(|line| found.push(line));
        found
    }

    /// Proves that numbers come out by name, nested ones with a slash, with the step that the line names best.
    #[test]
    fn numbers_become_metrics() {
        let found = all(&[
            "starting\n{\"step\": 3, \"loss\": 0.5, \"ok\": true, \"na",
            "me\": \"x\", \"eval\": {\"acc\": 1}}\nnot json {\"a\": 1}\n",
            "  {\"epoch\": 2, \"loss\": 1}\n{\"global_step\": 100.0, \"epoch\": 1.5}\n{broken\n{\"accuracy\": 0.9}",
        ]);
        let expected = [
            (Some(3), vec![("eval/acc", 1.0), ("loss", 0.5)]),
            (Some(2), vec![("epoch", 2.0), ("loss", 1.0)]),
            (Some(100), vec![("epoch", 1.5)]),
            (None, vec![("accuracy", 0.9)]),
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (line, (step, values)) in found.iter().zip(expected) {
            let values: Vec<(String, f64)> =
                values.into_iter().map(|(name, value)| (name.into(), value)).collect();
            assert_eq!((line.step, &line.values), (step, &values));
        }
    }

    /// Proves that a diverged loss is a metric, although JSON has no word for it.
    #[test]
    fn nan_and_infinity_are_kept() {
        let line = read_line(br#"{"step": 1, "loss": NaN, "low": -Infinity, "note": "NaN \" NaN"}"#).unwrap();
        assert!(line.values[0].1.is_nan());
        assert_eq!(line.values[1], ("low".to_owned(), f64::NEG_INFINITY));
        assert_eq!(line.values.len(), 2);
    }

    /// Proves that giant lines and giant objects cost bounded memory.
    #[test]
    fn giant_lines_are_passed() {
        let mut lines = JsonLines::default();
        for _ in 0..1_000 {
            lines.push(&[b'{'; 10_000], |_| panic!("no metrics here"));
            assert!(lines.line.len() <= LINE_BYTES_MAX);
        }
        let many: String = (0..1_000).map(|index| format!("\"m{index}\":1,")).collect();
        assert_eq!(read_line(format!("{{{many}\"z\":1}}").as_bytes()).unwrap().values.len(), VALUES_MAX);
    }
}
