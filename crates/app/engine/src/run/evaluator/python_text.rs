//! What the text of a Python script says about files: the folders that it adds to `sys.path`, and the settings that it names.
//! Texts alone decide: a path that is computed from anything else than names and `__file__` is not known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// What adds folders to the search path; what ends with a bracket is a call.
const ADDED: [&str; 5] =
    ["sys.path.insert(", "sys.path.append(", "sys.path.extend(", "site.addsitedir(", "sys.path += "];
/// A longer expression names no folder.
const EXPRESSION_BYTES_MAX: usize = 1000;
/// How often a name is replaced by what it was assigned.
const REPLACED_MAX: usize = 3;
/// How the names of settings and prompts end.
const SETTINGS: [&str; 12] =
    ["yaml", "yml", "toml", "json", "ini", "cfg", "conf", "txt", "jinja", "jinja2", "j2", "prompt"];
/// Longer files are data.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// So many words before a name may be the folders that it is joined with.
const JOINED_MAX: usize = 4;
/// What a line has that writes a file.
const WRITES: [&str; 5] = ["write_", "dump(", "save", ".to_", "TRACKWAY_EVALUATION_OUT"];
/// How a file is opened to be written.
const WRITE_MODES: [&str; 9] = ["w", "wb", "wt", "w+", "a", "ab", "a+", "x", "xb"];
/// What an evaluator writes by its contract.
const RESULTS: [&str; 2] = ["metrics.json", "evaluation.json"];
/// Installed packages have versions; their files are not looked at.
const INSTALLED: [&str; 2] = ["site-packages", "dist-packages"];

/// A string literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Literal<'t> {
    text: &'t str,
    /// Where it begins, in bytes.
    at: usize,
}

/// The folders that a text adds to the search path of its modules, without those of installed packages. Relative names begin at
/// `folder`, where the script runs.
pub(super) fn search_folders(text: &str, script: &Path, folder: &Path) -> Vec<PathBuf> {
    let assigned = assignments(text);
    let mut folders = Vec::new();
    for added in ADDED {
        for (at, _) in text.match_indices(added) {
            let depth = usize::from(added.ends_with('('));
            for part in parts(expression(&text[at + added.len()..], depth)) {
                folders.extend(folder_of(part, &assigned, script, folder));
            }
        }
    }
    folders
}

/// The folders of a `PYTHONPATH`, without those of installed packages.
pub(super) fn python_path(entries: impl Iterator<Item = PathBuf>, folder: &Path) -> Vec<PathBuf> {
    entries.map(|entry| plain(&folder.join(entry))).filter(|entry| !is_installed(entry)).collect()
}

/// The files of settings that a text names and that exist below one of the folders, but for those that it writes.
pub(super) fn settings_files(text: &str, folders: &[&Path]) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let (mut line_began, mut before): (usize, Vec<&str>) = (0, Vec::new());
    for literal in literals(text) {
        let (start, line) = line_at(text, literal.at);
        if start != line_began {
            (line_began, before) = (start, Vec::new());
        }
        if is_settings(literal.text) && !is_written(text, line) {
            // `join(here, "conf", "a.yaml")` names `conf/a.yaml`.
            let joined: Vec<PathBuf> = (0..=before.len())
                .map(|from| before[from..].iter().chain([&literal.text]).collect::<PathBuf>())
                .collect();
            let mut places =
                folders.iter().flat_map(|folder| joined.iter().map(move |name| plain(&folder.join(name))));
            files.extend(places.find(|place| is_small_file(place)));
        }
        if before.len() == JOINED_MAX {
            before.remove(0);
        }
        before.push(literal.text);
    }
    files
}

/// Whether a literal is the name of a file of settings.
fn is_settings(name: &str) -> bool {
    let path = Path::new(name);
    let ends = path.extension().and_then(|extension| extension.to_str());
    let is_result = path.file_name().is_some_and(|name| RESULTS.iter().any(|result| name == *result));
    let is_name = name.len() < 256 && !name.contains(['\n', '{', '*']);
    is_name && !is_result && ends.is_some_and(|ends| SETTINGS.contains(&ends))
}

fn is_small_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.len() <= SETTINGS_BYTES_MAX)
}

/// Whether a line writes what it names, or another line does by the name that this one gives it.
fn is_written(text: &str, line: &str) -> bool {
    let writes = |line: &str| WRITES.iter().any(|write| line.contains(write)) || opens_to_write(line);
    let by_name = |name: &str| text.lines().any(|other| writes(other) && has_word(other, name));
    writes(line) || assignment(line).is_some_and(|(name, _)| by_name(name))
}

fn opens_to_write(line: &str) -> bool {
    literals(line).iter().any(|literal| {
        let is_argument = line[..literal.at].trim_end().ends_with([',', '=']);
        is_argument && WRITE_MODES.contains(&literal.text)
    })
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|letter: char| !is_of_name(letter)).any(|part| part == word)
}

/// Where the line begins that holds a byte, and the line.
fn line_at(text: &str, at: usize) -> (usize, &str) {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    (start, text[start..].lines().next().unwrap_or_default())
}

/// The folder that an expression names: what it joins, from the script's file or from where the script runs.
fn folder_of(part: &str, assigned: &BTreeMap<&str, &str>, script: &Path, folder: &Path) -> Option<PathBuf> {
    let expression = replaced(part, assigned, REPLACED_MAX);
    let names = literals(&expression);
    let is_beside = expression.contains("__file__");
    if !is_beside && names.is_empty() {
        return None;
    }
    let start = if is_beside { script.ancestors().nth(levels_up(&expression))? } else { folder };
    let place = plain(&names.iter().fold(start.to_owned(), |place, name| place.join(name.text)));
    (place.is_dir() && !is_installed(&place)).then_some(place)
}

/// How many folders an expression goes up from the script's file.
fn levels_up(expression: &str) -> usize {
    let count = |what: &str| expression.matches(what).count();
    let parents = expression.split(".parents[").skip(1);
    let named = parents.filter_map(|rest| rest.split(']').next()?.trim().parse::<usize>().ok());
    let by_number: usize = named.map(|number| number.saturating_add(1)).fold(0, usize::saturating_add);
    (count("dirname(") + count(".parent") - count(".parents")).saturating_add(by_number)
}

/// An expression in which names are replaced by what they were assigned.
fn replaced(expression: &str, assigned: &BTreeMap<&str, &str>, times: usize) -> String {
    if times == 0 || expression.len() > EXPRESSION_BYTES_MAX {
        return expression.to_owned();
    }
    let mut result = String::new();
    let mut rest = expression;
    let mut quote: Option<char> = None;
    while let Some(letter) = rest.chars().next().filter(|_| result.len() <= EXPRESSION_BYTES_MAX) {
        let word_end = rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word_end.max(letter.len_utf8()));
        let is_attribute = result.ends_with('.');
        match assigned.get(word).filter(|_| quote.is_none() && !is_attribute) {
            Some(value) => result.push_str(&format!("({})", replaced(value, assigned, times - 1))),
            None => result.push_str(word),
        }
        if matches!(letter, '"' | '\'') {
            quote = match quote {
                Some(open) if open == letter => None,
                None => Some(letter),
                open => open,
            };
        }
        rest = after;
    }
    result
}

/// What names of a text are first assigned, where that is on one line.
fn assignments(text: &str) -> BTreeMap<&str, &str> {
    let mut assigned = BTreeMap::new();
    for (name, value) in text.lines().filter_map(assignment) {
        assigned.entry(name).or_insert(value);
    }
    assigned
}

fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let value = value.split(" #").next().unwrap_or_default();
    let (name, value) = (name.trim(), value.trim());
    let is_name = !name.is_empty() && name.chars().all(is_of_name);
    (is_name && !value.starts_with('=')).then_some((name, value))
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The beginning of a text up to the bracket that closes it, of `depth` that are open, or to the end of its line outside of brackets.
fn expression(text: &str, depth: usize) -> &str {
    let mut open = depth;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' if open <= 1 => return &text[..at],
            ')' | ']' | '}' => open -= 1,
            '\n' if open == 0 => return &text[..at],
            _ => {}
        }
    }
    text
}

/// What commas separate, outside of inner brackets. The brackets of a list around all of it are left out.
fn parts(expression: &str) -> Vec<&str> {
    let expression = expression.trim().trim_start_matches('[').trim_end_matches(']');
    let (mut parts, mut from, mut open) = (Vec::new(), 0, 0_usize);
    for (at, letter) in expression.char_indices() {
        match letter {
            '(' | '[' => open += 1,
            ')' | ']' => open = open.saturating_sub(1),
            ',' if open == 0 => {
                parts.push(&expression[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&expression[from..]);
    parts
}

/// The string literals of a text, without those in comments.
fn literals(text: &str) -> Vec<Literal<'_>> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'#' => at += text[at..].find('\n').unwrap_or(text.len() - at),
            b'"' | b'\'' => {
                let mark = [byte; 3];
                let mark = if bytes[at..].starts_with(&mark) { &mark[..] } else { &mark[..1] };
                let start = at + mark.len();
                let end = end_of_literal(bytes, start, mark);
                found.push(Literal { text: &text[start..end], at });
                at = end + mark.len();
            }
            _ => at += 1,
        }
    }
    found
}

/// Where a literal ends that began at `start`: at its mark, or, for one of a line, with the line.
fn end_of_literal(bytes: &[u8], start: usize, mark: &[u8]) -> usize {
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\n' if mark.len() == 1 => return at,
            _ if bytes[at..].starts_with(mark) => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn is_installed(folder: &Path) -> bool {
    folder.components().any(|part| INSTALLED.iter().any(|name| part.as_os_str() == *name))
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that folders are found that a text adds to its search path, by literals, from its own file and by names,
    /// and that installed packages, absent folders and what is computed are not.
    #[test]
    fn folders_that_a_script_searches() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["job/in", "shared", "more", "env/site-packages"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        let found = |text: &str| search_folders(text, &at("job/in/eval.py"), &at("job"));
        for (text, expected) in [
            ("sys.path.insert(0, \"../shared\")  # (x\n", vec!["shared"]),
            ("sys.path.append('../shared')\nimport x", vec!["shared"]),
            ("sys.path.extend(['../shared', \"../more\"])", vec!["shared", "more"]),
            ("sys.path += ['../shared']\nx = ['../more']", vec!["shared"]),
            (
                "sys.path.insert(\n  0, os.path.join(os.path.dirname(__file__), '..', '..', 'shared'))",
                vec!["shared"],
            ),
            ("sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'shared'))", vec!["shared"]),
            (
                "ROOT = Path(__file__).parent.parent.parent\nMORE = ROOT / 'more'\nsys.path.append(str(MORE))",
                vec!["more"],
            ),
            ("HERE = os.path.dirname(os.path.abspath(__file__))\nsys.path.insert(0, HERE)", vec!["job/in"]),
            (
                "sys.path.append('../env/site-packages')\nsys.path.append('absent')\nsys.path.append(f())",
                vec![],
            ),
        ] {
            let expected: Vec<PathBuf> = expected.into_iter().map(at).collect();
            assert_eq!(found(text), expected, "{text}");
        }
        let entries = ["../shared", "/x/site-packages"].map(PathBuf::from);
        assert_eq!(python_path(entries.into_iter(), &at("job")), [at("shared")]);
    }

    /// Proves that settings count that a text names and that exist, joined names too, and that files which it writes, results, comments and
    /// other texts do not.
    #[test]
    fn settings_that_a_script_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("conf")).unwrap();
        for name in ["thr.yaml", "conf/a.toml", "old.json", "log.txt", "metrics.json", "data.csv", "c.yml"] {
            std::fs::write(at(name), "x").unwrap();
        }
        let text = "t = yaml.safe_load(open(\"thr.yaml\"))\np = join(HERE, 'conf', 'a.toml')\nOUT = 'old.json'\n\
                    json.dump(x, open(OUT, 'w'))\nopen('log.txt', \"a\").write(x)\nopen('metrics.json')\n\
                    read('data.csv')  # 'c.yml'\nopen('absent.yaml')\n";
        let found = settings_files(text, &[folder.path()]);
        assert_eq!(found, BTreeSet::from(["conf/a.toml", "thr.yaml"].map(at)));
    }

    /// Proves that a text which ends anywhere, or is not Python, is read without a failure.
    #[test]
    fn any_text_is_read() {
        let text =
            "é = 'a\\\nsys.path.append(\"\"\"ü' # '\\é\"\nsys.path += [\nX = X\nsys.path.insert(0, X)\\";
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            search_folders(&text[..end], Path::new("/a/b.py"), Path::new("/a"));
            settings_files(&text[..end], &[Path::new("/a")]);
        }
    }
}
