//! Private keys in whatever holds them: no line of one is left, and what follows stays.

use crate::*;

/// The lines of a key, as numbers that look random and are the same in every run.
fn lines(count: usize) -> Vec<String> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 7u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(LETTERS[(state >> 40) as usize % LETTERS.len()])
    };
    let mut lines: Vec<String> = (0..count).map(|_| (0..64).map(|_| letter()).collect()).collect();
    lines.push((0..26).map(|_| letter()).collect::<String>() + "==");
    lines
}

fn quoted(text: &str) -> String {
    serde_json::json!(text).to_string()
}

fn encoded(text: &str, blank: &str) -> String {
    let letter = |byte: u8| match byte {
        b' ' => blank.to_owned(),
        b'-' => "-".to_owned(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(letter).collect()
}

fn each_line(text: &str, show: impl Fn(usize, &str) -> String) -> String {
    text.lines().enumerate().map(|(number, line)| show(number, line)).collect()
}

/// A key in whatever holds it.
fn held(key: &str) -> Vec<(&'static str, String)> {
    let account = serde_json::json!({
        "type": "service_account", "private_key_id": "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c",
        "private_key": key, "client_email": "lab@project",
    });
    let compact = account.to_string();
    let escaped = key.replace('\n', "\\n");
    let parts = |mark: &str| key.lines().map(|line| format!("'{line}\\n'")).collect::<Vec<_>>().join(mark);
    vec![
        ("text", key.to_owned()),
        ("JSON", compact.clone()),
        ("JSON over several lines", serde_json::to_string_pretty(&account).unwrap()),
        ("JSON in JSON", quoted(&compact)),
        ("JSON in JSON in JSON", quoted(&quoted(&compact))),
        ("JSON in JSON in JSON in JSON", quoted(&quoted(&quoted(&compact)))),
        ("JSON with other escapes", compact.replace("\\n", "\\u000a").replace('/', "\\/")),
        ("JSON of Windows", quoted(&key.replace('\n', "\r\n"))),
        ("repr", format!("{{'private_key': '{escaped}'}}")),
        ("repr of bytes", format!("b'{escaped}'")),
        ("repr of JSON", format!("'{}'", compact.replace('\\', "\\\\"))),
        ("a variable", format!("GOOGLE_CREDENTIALS='{compact}' python t.py")),
        ("a line of .env", format!("PRIVATE_KEY=\"{escaped}\"")),
        ("escapes of escapes", format!("PRIVATE_KEY=\"{}\"", key.replace('\n', "\\\\n"))),
        ("YAML", format!("key: \"{}\"", key.trim_end().replace('\n', "\\n\\\n  "))),
        ("YAML with empty lines", format!("key: \"{}\"", key.trim_end().replace('\n', "\n\n  "))),
        ("parts", format!("{{'private_key': {}}}", parts("\n                 "))),
        ("parts with marks", format!("let key = {};", parts(" +\n    "))),
        ("parts with marks before", format!("let key = {};", parts("\n    + "))),
        ("parts with backslashes", parts(" \\\n")),
        ("parts of a macro", each_line(key, |_, line| format!("{line}\\n\\\n"))),
        ("a notebook", each_line(key, |_, line| format!("    \"{line}\\n\",\n"))),
        ("a list", format!("{:?}", key.lines().collect::<Vec<_>>())),
        ("a list over several lines", format!("{:#?}", key.lines().collect::<Vec<_>>())),
        ("a URL", encoded(key, "%20")),
        ("a form", encoded(key, "+")),
        ("XML", key.replace('\n', "&#10;")),
        ("HTML", format!("{{&quot;private_key&quot;: &quot;{escaped}&quot;}}")),
        ("blanks", key.replace('\n', " ")),
        ("a table", each_line(key, |_, line| format!("| {line} |\n"))),
        ("numbers", each_line(key, |number, line| format!("{number:4}  {line}\n"))),
        ("a service", each_line(key, |_, line| format!("web_1  | {line}\n"))),
        ("a rank", each_line(key, |number, line| format!("[rank0] 10:00:{number:02},123 INFO: {line}\n"))),
        ("a difference", each_line(key, |_, line| format!("-{line}\n"))),
        ("a comment", each_line(key, |_, line| format!("// {line}\n"))),
        ("a reply", each_line(key, |_, line| format!("> {line}\n"))),
        (
            "a container",
            each_line(key, |_, line| {
                format!("{{\"log\":{},\"stream\":\"stdout\"}}\n", quoted(&format!("{line}\n")))
            }),
        ),
    ]
}

/// The same, where the end of the text was cut off.
fn cut(key: &str) -> Vec<(&'static str, String)> {
    let key = key.split("-----END").next().unwrap();
    let in_json = |line_end: &str| format!("{{\"private_key\": \"{}", key.replace('\n', line_end));
    vec![
        ("text", key.to_owned()),
        ("JSON", in_json("\\n")),
        ("JSON with what was done", in_json("\\n") + "... (truncated)"),
        ("JSON in JSON", in_json("\\\\n")),
        ("JSON in JSON in JSON", in_json("\\\\\\\\n")),
        ("JSON with other escapes", in_json("\\u000a").replace('/', "\\/")),
        ("a URL", encoded(key, "%20")),
        ("XML", key.replace('\n', "&#10;")),
    ]
}

fn streamed(redactor: &Redactor, text: &str, size: usize, flush: bool) -> String {
    let (mut clean, mut stream) = (Vec::new(), redactor.stream());
    for piece in text.as_bytes().chunks(size) {
        stream.push(piece, &mut clean);
        if flush {
            stream.flush(&mut clean);
        }
    }
    stream.finish(&mut clean);
    String::from_utf8(clean).unwrap()
}

/// Proves that a private key of any armour, with and without headers, leaves no line in whatever holds it, however it
/// arrives, that one whose end was cut off does not, and that the next line stays.
#[test]
fn a_key_is_taken_out_whole_of_whatever_holds_it() {
    const NEXT: &str = "\nstep 17 loss 0.31\n";
    let redactor = Redactor::of_shapes();
    for (kind, count, headers) in [
        ("PRIVATE KEY", 25, ""),
        ("RSA PRIVATE KEY", 6, "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0A1B\n\n"),
        ("PGP PRIVATE KEY BLOCK", 5, "Version: GnuPG v2\n\n"),
    ] {
        let lines = lines(count);
        let key = format!("-----BEGIN {kind}-----\n{headers}{}\n-----END {kind}-----\n", lines.join("\n"));
        let whole = held(&key).into_iter().map(|(name, text)| (name, text + NEXT));
        for (name, text) in whole.chain(cut(&key)) {
            let check = |how: &str, clean: &str| {
                let is_left = |line: &&String| clean.contains(&line[..12]) || clean.contains(&line[14..26]);
                let left = lines.iter().filter(is_left).count();
                assert_eq!(left, 0, "{kind} in {name}, {how}: {clean}");
                assert!(!text.ends_with(NEXT) || clean.ends_with(NEXT), "{kind} in {name}, {how}: {clean}");
            };
            check("at once", &redactor.text(&text));
            for size in [1, 64, 500, 10_000] {
                for flush in [false, true] {
                    check(
                        &format!("pieces of {size}, flush {flush}"),
                        &streamed(&redactor, &text, size, flush),
                    );
                }
            }
        }
    }
}

/// Proves that lines behind a mere mention of the first line of a key stay, lines of the same shape too.
#[test]
fn a_mention_of_a_key_takes_nothing_else() {
    let redactor = Redactor::of_shapes();
    let begin = format!("-----BEGIN {} KEY-----", "PRIVATE");
    for (mention, next) in [
        (
            format!("{{\"message\":\"expected {begin}\",\"step\":1}}\n"),
            "{\"message\":\"trained one\",\"step\":2}\n",
        ),
        (format!("10:00:01,2 INFO x: no {begin} in `k.pem`\n"), "10:00:02,3 INFO x: 3 of 12 in `k.csv`\n"),
        (format!("10:00:01,2 INFO x: {begin}\n"), "10:00:02,3 INFO x: ok\n"),
        (format!("| {begin} | 1 |\n"), "| loss | 2 |\n"),
        (format!("key: '{begin}'\n"), "value: 'x'\n"),
        (format!("{begin}\n"), "ModuleNotFoundError: no module\n"),
    ] {
        let text = mention.clone() + &next.repeat(3);
        for size in [1, 1000] {
            let clean = streamed(&redactor, &text, size, size == 1);
            assert_eq!(clean, mention.replace(&begin, "[redacted:private-key]") + &next.repeat(3));
        }
    }
}
