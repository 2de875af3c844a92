use super::ended;
use crate::classify::*;

/// The evidence of a failed run, as far as it is of the log, with the lines where it is.
fn lines(log: &str) -> Vec<(Option<u64>, String)> {
    let items = classify(&ended(Some(1), None, log)).evidence;
    let of_log = items.into_iter().filter(|item| item.source == EvidenceSource::Log);
    of_log.map(|item| (item.line_number, item.text)).collect()
}

fn owned(lines: &[(u64, &str)]) -> Vec<(Option<u64>, String)> {
    lines.iter().map(|(number, text)| (Some(*number), (*text).to_owned())).collect()
}

const HEADER: &str = "Traceback (most recent call last):\n";
const OF_PACKAGE: &str =
    "  File \"/v/lib/python3.11/site-packages/torch/nn.py\", line 9, in forward\n    return f(x)\n";

/// Proves that behind the deciding line is the innermost frame of the user's code, below which packages may be, with
/// its line of code; that a syntax error has its own; and that an error in packages alone, or without a traceback, has
/// none.
#[test]
fn the_frame_of_the_user_is_behind_the_deciding_line() {
    let main = "  File \"/home/a/run/t.py\", line 40, in <module>\n    train()\n";
    let inner =
        "  File \"/home/a/run/t.py\", line 31, in train\n    loss = net('a' + 1)\n           ~~~~^~~\n";
    let log = format!("step 1\n{HEADER}{main}{inner}{OF_PACKAGE}TypeError: a str and an int\n");
    let at = "at run/t.py:31 in train: loss = net('a' + 1)";
    assert_eq!(lines(&log), owned(&[(10, "TypeError: a str and an int"), (5, at)]));
    let syntax =
        "  File \"t.py\", line 3\n    if True print(1)\n            ^^^^^\nSyntaxError: invalid syntax\n";
    let at = "at t.py:3: if True print(1)";
    assert_eq!(lines(syntax), owned(&[(4, "SyntaxError: invalid syntax"), (1, at)]));
    let of_package = format!("{HEADER}{OF_PACKAGE}KeyError: 'x'\n");
    assert_eq!(lines(&of_package), owned(&[(4, "KeyError: 'x'")]));
    assert_eq!(lines("KeyError: 'x'\n"), owned(&[(1, "KeyError: 'x'")]));
}

/// Proves that each of two tracebacks has its own frame, and that an error of a loader's worker has that of the worker.
#[test]
fn an_error_has_the_frame_of_its_own_traceback() {
    let handled = "  File \"a.py\", line 1, in f\n    g()\nKeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n";
    let log = format!("{HEADER}{handled}{HEADER}{OF_PACKAGE}ValueError: y\n");
    assert_eq!(lines(&log)[1], (Some(2), "at a.py:1 in f: g()".to_owned()));
    let worker = format!(
        "{HEADER}  File \"t.py\", line 9, in <module>\n    for batch in loader:\n{OF_PACKAGE}\
         KeyError: Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n\
         {OF_PACKAGE}  File \"t.py\", line 4, in __getitem__\n    return rows[index]['x']\nKeyError: 'x'\n"
    );
    assert_eq!(lines(&worker)[1], (Some(10), "at t.py:4 in __getitem__: return rows[index]['x']".to_owned()));
}

/// Proves that the frame decides nothing: neither the fingerprint nor what the same launch raises again depends on it.
#[test]
fn the_frame_decides_nothing() {
    let of = |code: &str| {
        let log = format!("{HEADER}  File \"t.py\", line 9, in f\n    {code}\nKeyError: 'x'\n");
        classify(&ended(Some(1), None, &log))
    };
    let (one, other) = (of("c['x']"), of("raise KeyError('x') if step > 3 else MemoryError"));
    assert_eq!((one.reason, one.rule, &one.fingerprint), (other.reason, other.rule, &other.fingerprint));
    assert_ne!(one.evidence, other.evidence);
    assert_eq!(thrown(Reason::CodeError, &other.evidence), Some("KeyError: 'x'"));
}
