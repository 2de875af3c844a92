//! Whether anything names a new file of text: what people write beside a script (`trackway run … > out`,
//! `trackway explain > explain.txt`) repairs nothing unless code, settings, the command or the evidence name it. Pure:
//! texts in, an answer out.

use std::path::{Path, PathBuf};

use crate::capture::is_python;

/// What means any other letters in the name of a file.
const WILD: [char; 5] = ['*', '?', '{', '}', '%'];
/// How code reads all of the folder it is in, with double quotes.
const READS_FOLDER: [&str; 8] = [
    "listdir()", "listdir(\".\")", "scandir()", "scandir(\".\")", "walk(\".\")", "glob.glob(\"*\")",
    "Path(\".\")", "Path()",
];

/// What a text is, so that a word in it may be a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Code,
    /// A word of a command, or a message.
    Sentence,
    /// Settings, or lines of a shell.
    Settings,
}

impl TextKind {
    fn of_file(path: &Path) -> Self {
        if is_python(&path.to_string_lossy()) { Self::Code } else { Self::Settings }
    }
}

/// What may name a file.
#[derive(Debug, Clone, Default)]
pub struct Naming {
    /// Code and settings, by their paths.
    pub texts: Vec<(PathBuf, String)>,
    /// Words of the command, values of variables, and the evidence of the end.
    pub words: Vec<String>,
    /// The folders that the command names.
    pub folders: Vec<PathBuf>,
    /// The folders that all names start from: theirs names no file.
    pub roots: Vec<PathBuf>,
}

impl Naming {
    /// Whether anything names the file, a folder that it is in, or its like.
    pub fn has(&self, path: &Path) -> bool {
        let Some(name) = path.file_name().map(|name| name.to_string_lossy()) else { return true };
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let inner = self.roots.iter().filter_map(|root| path.parent()?.strip_prefix(root).ok());
        let inner = inner.min_by_key(|inner| inner.components().count()).unwrap_or(Path::new(""));
        let folders: Vec<String> = inner.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
        let is_in = |text: &str, kind: TextKind| {
            has_name(text, &name, kind)
                || folders.iter().any(|folder| has_folder(text, folder, kind))
                || extension.as_deref().is_some_and(|it| has_like(text, (&*name, it), &folder))
        };
        let is_in_text = |(other, text): &(PathBuf, String)| {
            other != path
                && (is_in(text, TextKind::of_file(other)) || (folders.is_empty() && reads_folder(text)))
        };
        self.folders.iter().any(|folder| path.starts_with(folder))
            || self.words.iter().any(|word| is_in(word, TextKind::Sentence) || ends_with(word, &name))
            || self.texts.iter().any(is_in_text)
    }

    /// Whether anything has exactly this name.
    pub fn has_exactly(&self, name: &str) -> bool {
        self.texts
            .iter()
            .map(|(_, text)| text)
            .chain(&self.words)
            .any(|text| has_name(text, name, TextKind::Settings))
    }
}

fn is_quote(letter: char) -> bool {
    matches!(letter, '"' | '\'' | '`')
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '-'
}

/// The letters before and after each place of a word in a text.
fn around<'t>(
    text: &'t str,
    word: &'t str,
) -> impl Iterator<Item = (usize, Option<char>, Option<char>)> + 't {
    text.match_indices(word).map(move |(at, found)| {
        let (before, after) = (&text[..at], &text[at + found.len()..]);
        (at, before.chars().next_back(), after.chars().next())
    })
}

/// Whether the name of a file is in the text. A name without a dot is one of many words: of code and of sentences it counts in quotes only.
fn has_name(text: &str, name: &str, kind: TextKind) -> bool {
    let has_dot = name.contains('.');
    around(text, name).any(|(_, before, after)| match (has_dot, kind) {
        (true, _) => !before.is_some_and(|it| is_of_name(it) || it == '.') && !after.is_some_and(is_of_name),
        (false, TextKind::Code | TextKind::Sentence) => {
            before.is_some_and(|it| is_quote(it) || it == '/') && after.is_some_and(is_quote)
        }
        (false, TextKind::Settings) => {
            before.is_none_or(|it| is_quote(it) || it.is_whitespace() || "/=".contains(it))
                && after.is_none_or(|it| is_quote(it) || it.is_whitespace() || ",;".contains(it))
        }
    })
}

/// Whether a word of a command or a message has the name at its end: `--data=in`, `not found: in`.
fn ends_with(word: &str, name: &str) -> bool {
    let rest = word.strip_suffix(name).map(str::trim_end);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '=', '<', ':']))
}

/// Whether the name of a folder is in the text, as a path or a part of one: the words of a sentence and the variables of code name none.
fn has_folder(text: &str, name: &str, kind: TextKind) -> bool {
    around(text, name).any(|(at, before, after)| {
        let begins = before.is_none_or(|it| is_quote(it) || "/=".contains(it));
        let ends = after.is_none_or(|it| is_quote(it) || it == '/');
        let is_followed = after == Some('/') && !before.is_some_and(is_of_name);
        let is_word = before.is_none_or(char::is_whitespace) && after.is_none_or(char::is_whitespace);
        (begins && ends)
            || (is_followed && (kind != TextKind::Code || is_quoted(&text[..at])))
            || (is_word && kind == TextKind::Settings)
    })
}

/// Whether what follows the text is between quotation marks of its line.
fn is_quoted(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.chars().filter(|letter| is_quote(*letter)).count() % 2 == 1
}

/// Whether the text has a name of many files that may be this one: `*.txt`, `{name}.json`, `".log"`, and none of another folder.
fn has_like(text: &str, (name, extension): (&str, &str), folder: &str) -> bool {
    around(text, extension).any(|(at, _, after)| {
        let is_end = |it: char| is_quote(it) || it.is_whitespace() || ",]".contains(it);
        if !after.is_none_or(is_end) {
            return false;
        }
        let before = &text[..at];
        let is_start = |it: char| is_quote(it) || it.is_whitespace() || "(,=[".contains(it);
        let word = before.rsplit(is_start).next().unwrap_or_default();
        let (other_folder, word) = word.rsplit_once('/').unwrap_or(("", word));
        let other_folder = other_folder.rsplit('/').next().unwrap_or_default();
        let is_folder =
            matches!(other_folder, "" | "." | "**") || other_folder.contains(WILD) || other_folder == folder;
        let is_wild = word.is_empty() || word.contains(WILD);
        let start = word.split(WILD).next().unwrap_or_default();
        is_folder && is_wild && name.starts_with(start)
    })
}

fn reads_folder(text: &str) -> bool {
    let text = text.replace('\'', "\"");
    READS_FOLDER.iter().any(|call| text.contains(call))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what names a new file: its name, its folder or a pattern in code, settings, the command or the evidence, and no word that
    /// is only like it.
    #[test]
    fn what_names_a_new_file() {
        let code = |text: &str| Naming {
            texts: vec![("/w/t.py".into(), text.into())],
            roots: vec!["/w".into()],
            ..Naming::default()
        };
        let word =
            |word: &str| Naming { words: vec![word.into()], roots: vec!["/w".into()], ..Naming::default() };
        let cases = [
            (code("print('x')"), "out", false),
            (code("out = model(x)  # an out"), "out", false),
            (code("open('out')"), "out", true),
            (code("open('in/out')"), "out", true),
            (code("out.json()"), "e.json", false),
            (code("open('mylog.txt')"), "log.txt", false),
            (code("open('log.txt')"), "log.txt", true),
            (code("glob('*.txt')"), "log.txt", true),
            (code("glob('data/*.txt')"), "log.txt", false),
            (code("glob('data/*.txt')"), "data/log.txt", true),
            (code("open(f'm_{step}.json', 'w')"), "e.json", false),
            (code("open(f'm_{step}.json', 'w')"), "m_1.json", true),
            (code("name + \".log\""), "run.log", true),
            (code("f'loss {loss:.4f}'"), "log.txt", false),
            (code("os.listdir('.')"), "log.txt", true),
            (code("os.listdir('ckpt')"), "log.txt", false),
            (code("os.listdir('prompts')"), "prompts/a.txt", true),
            (code("os.listdir('ckpt')"), "logs/a.txt", false),
            (code("raise ValueError(f'label {x} out of range')"), "out/metrics.json", false),
            (code("loss = out/count"), "out/metrics.json", false),
            (code("os.path.join(root, 'out', name)"), "out/metrics.json", true),
            (code("run('cat out/m.json')"), "out/metrics.json", true),
            (word("ValueError: label 77 out of range"), "out/metrics.json", false),
            (word("--data=out"), "out/metrics.json", true),
            (word("cannot read out/m.json"), "out/metrics.json", true),
            (word("python t.py < in.txt"), "in.txt", true),
            (word("FileNotFoundError: No such file or directory: 'vocab'"), "vocab", true),
            (word("No space left on device: '/data/out/x.bin'"), "out", false),
            (word("ran out of memory"), "out", false),
            (word("--data=in"), "in", true),
            (word("in"), "in", true),
            (word("no .txt files were found"), "log.txt", true),
        ];
        for (naming, name, expected) in cases {
            assert_eq!(naming.has(&Path::new("/w").join(name)), expected, "{name} in {naming:?}");
        }
        let of_command = Naming { folders: vec!["/w/in".into()], ..code("") };
        let found = ["/w/in/a.txt", "/w/a.txt"].map(|path| of_command.has(Path::new(path)));
        assert_eq!(found, [true, false]);
        let itself = Naming { texts: vec![("/w/e.json".into(), "e.json".into())], ..Naming::default() };
        assert!(!itself.has(Path::new("/w/e.json")), "a file does not name itself");
    }
}
