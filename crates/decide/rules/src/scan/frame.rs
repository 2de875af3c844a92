//! The frame of a traceback that is in code of the user, as text.

use super::evidence::OwnFrame;
use super::line::{MAX_TEXT_BYTES, text_around};
use crate::pattern::Pattern;

/// A frame as Python prints it; that of a syntax error names no function.
static FRAME: Pattern = Pattern::new(r#"file "([^"\n]+)", line (\d+)(?:, in ([^\n]+))?\s*$"#);

/// Paths of the interpreter, of its library, of installed packages and of compiled modules, in a frame or alone.
static INSTALLED: Pattern =
    Pattern::new(r#"site-packages|dist-packages|[/\\]lib(64)?[/\\]python\d|(^|")<(frozen|__)|\.p(yx|xi)\b"#);

/// Parts that are shown of a path that is not relative.
const SHOWN_PARTS: usize = 2;

/// The frame in `line`, if it is in code of the user. `behind` begins with the end of that line.
pub(super) fn own_frame(line: &[u8], line_number: u64, behind: &[u8]) -> Option<OwnFrame> {
    let found = FRAME.captures(line)?;
    let part = |group: usize| found.get(group).map(|part| String::from_utf8_lossy(part).trim().to_owned());
    let path = part(1)?;
    if is_installed(path.as_bytes()) {
        return None;
    }
    let mut text = format!("{}:{}", shown_path(&path), part(2)?);
    if let Some(name) = part(3) {
        text.push_str(&format!(" in {name}"));
    }
    if let Some(code) = code_below(&line[..found.range(0)?.start], behind) {
        text.push_str(&format!(": {code}"));
    }
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    Some(OwnFrame { line_number, text })
}

/// Whether the frame, or the path of one, is not of code of the user.
pub(crate) fn is_installed(frame: &[u8]) -> bool {
    INSTALLED.is_match(frame)
}

/// A relative path as it is, another one from the folder of its file on.
fn shown_path(path: &str) -> String {
    let is_relative = !path.starts_with(['/', '\\']) && path.as_bytes().get(1) != Some(&b':');
    if is_relative {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = path.rsplit(['/', '\\']).take(SHOWN_PARTS).collect();
    parts.reverse();
    parts.join("/")
}

/// The line of code below a frame: it is further in than the frame, behind the rank that printed both. `lead`: what is
/// before the frame in its line.
fn code_below(lead: &[u8], behind: &[u8]) -> Option<String> {
    let next = behind.strip_prefix(b"\r\n").or_else(|| behind.strip_prefix(b"\n"))?;
    let next = &next[..memchr::memchr2(b'\n', b'\r', next).unwrap_or(next.len())];
    let speaker = lead.trim_ascii_end();
    let code = next.strip_prefix(speaker)?;
    let indent = code.iter().take_while(|byte| **byte == b' ').count();
    let is_code = speaker.len() + indent > lead.len() && indent < code.len();
    is_code.then(|| text_around(&code[indent..], 0)).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what is shown of a frame: where it is, its function and its code, behind a rank too, and nothing of a
    /// frame in a package or in the interpreter.
    #[test]
    fn own_frames_are_shown() {
        let of = |line: &str, behind: &str| {
            own_frame(line.as_bytes(), 7, behind.as_bytes()).map(|frame| frame.text)
        };
        for (line, behind, shown) in [
            (
                r#"  File "/home/a/run/t.py", line 31, in train"#,
                "\n    loss = 'a' + 1\n",
                Some("run/t.py:31 in train: loss = 'a' + 1"),
            ),
            (r#"  File "t.py", line 31, in <module>"#, "\r\n    f()\r\n", Some("t.py:31 in <module>: f()")),
            (
                r#"  File "src/net.py", line 3"#,
                "\n    if True print(1)\n",
                Some("src/net.py:3: if True print(1)"),
            ),
            (r#"[rank1]:   File "t.py", line 9, in f"#, "\n[rank1]:     g()\n", Some("t.py:9 in f: g()")),
            (r#"[rank1]:   File "t.py", line 9, in f"#, "\n[rank0]:     g()\n", Some("t.py:9 in f")),
            (r#"  |   File "t.py", line 9, in f"#, "\n  |     g()\n", Some("t.py:9 in f: g()")),
            (
                r#"  File "<string>", line 1, in <module>"#,
                "\nKeyError: 'x'\n",
                Some("<string>:1 in <module>"),
            ),
            (r#"  File "t.py", line 9, in f"#, "\n  File \"u.py\", line 1, in g\n", Some("t.py:9 in f")),
            (r#"  File "C:\run\t.py", line 9, in f"#, "", Some("run/t.py:9 in f")),
            (r#"  File "/v/lib/python3.11/site-packages/torch/a.py", line 9, in f"#, "\n    g()\n", None),
            (r#"  File "/usr/lib/python3/dist-packages/a.py", line 9, in f"#, "\n    g()\n", None),
            (r#"  File "/usr/lib64/python3.9/json/decoder.py", line 9, in f"#, "\n    g()\n", None),
            (r#"  File "<frozen runpy>", line 88, in _run_code"#, "\n", None),
            (
                r#"  File "pandas/_libs/parsers.pyx", line 9, in pandas._libs.parsers.raise_parser_error"#,
                "\n",
                None,
            ),
        ] {
            assert_eq!(of(line, behind).as_deref(), shown, "{line}");
        }
        let long = of(r#"  File "t.py", line 9, in f"#, &format!("\n    {}\n", "é".repeat(1000))).unwrap();
        assert!(long.len() <= MAX_TEXT_BYTES);
    }
}
