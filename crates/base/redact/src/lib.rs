//! Takes secrets out of everything that is stored: environment by an allow-list, arguments and settings by name and
//! pattern, log bytes by pattern while they stream. What is taken out is replaced by `[redacted:kind]`.
//!
//! Two sources decide what a secret is: the shapes and names of `shapes.toml`, and the values of the launching
//! process's variables whose names mark them as secret. The latter are searched for literally. Both are found after
//! colour codes and within the escapes of JSON, `repr` and URLs.
//!
//! Everything that Trackway stores passes here: the log streams of a script, the flight record, and every text of a
//! ledger.

mod armour;
mod files;
mod lines;
mod names;
mod racy;
mod rules;
mod search;
mod shapes;
mod stream;
mod tables;
mod value;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use files::{has_secret_name, unkeepable};
use names::Says;
use racy::Racy;
use search::Search;
pub use stream::StreamRedactor;

/// Shorter values of secret variables are not searched for: they would match everywhere by coincidence.
pub const LITERAL_BYTES_MIN: usize = 8;
/// Longer values are searched for in pieces of this size.
pub const LITERAL_BYTES_MAX: usize = 1024;

/// Removes secrets. Cheap to make: patterns are compiled when first needed. `Send + Sync`.
///
/// ```
/// let redactor = trackway_redact::Redactor::from_environment([("DB_PASSWORD", "correct-horse")]);
/// assert_eq!(redactor.text("using correct-horse"), "using [redacted:environment]");
/// assert_eq!(redactor.text("step 17 loss 0.31"), "step 17 loss 0.31");
/// ```
pub struct Redactor {
    search: Arc<Search>,
}

impl std::fmt::Debug for Redactor {
    /// Shows how much it knows and none of the values.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Redactor").field("literals", &self.search.literals().len()).finish()
    }
}

impl Redactor {
    /// A redactor with the shapes of secrets, and the values of those of these variables whose names mark them as
    /// secret (at least [`LITERAL_BYTES_MIN`] bytes long).
    pub fn from_environment<N: AsRef<str>, V: AsRef<str>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        Self::from_literals(Vec::new(), variables)
    }

    /// A redactor with the shapes of secrets alone.
    #[must_use]
    pub fn of_shapes() -> Self {
        Self::from_environment::<&str, &str>([])
    }

    fn from_literals<N: AsRef<str>, V: AsRef<str>>(
        mut literals: Vec<Vec<u8>>,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        for (name, value) in variables {
            collect_literals(name.as_ref(), value.as_ref(), &mut literals);
        }
        literals.sort_unstable_by(|left: &Vec<u8>, right| right.len().cmp(&left.len()).then(left.cmp(right)));
        literals.dedup();
        Self { search: Arc::new(Search::new(literals)) }
    }

    /// A redactor for this process's environment.
    #[must_use]
    pub fn from_own_environment() -> Self {
        let (mut literals, mut texts) = (Vec::new(), Vec::new());
        for (name, value) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            match value.into_string() {
                Ok(value) => texts.push((name, value)),
                // What is not text is searched for as the bytes it is.
                Err(value) if names::is_secret_variable(&name) => {
                    push_literal(value.as_encoded_bytes(), &mut literals);
                }
                Err(_) => {}
            }
        }
        Self::from_literals(literals, texts)
    }

    /// The one redactor for this process's environment, as it was at the first call.
    #[must_use]
    pub fn of_this_process() -> Arc<Self> {
        static OWN: Racy<Arc<Redactor>> = Racy::new(|| Arc::new(Redactor::from_own_environment()));
        Arc::clone(&OWN)
    }

    /// Makes what is otherwise made at the first search, which then does not wait for it: thousands of words, in
    /// milliseconds.
    pub fn prepare(&self) {
        self.search.prepare();
    }

    /// The text without its secrets; borrowed when there were none.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.as_they_are(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(clean) => Cow::Owned(String::from_utf8_lossy(&clean).into_owned()),
        }
    }

    /// Bytes without the secrets in them, whatever their encoding; all other bytes stay. Borrowed when there were none. What is
    /// compressed cannot be searched: see [`unkeepable`].
    #[must_use]
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        // Something may have appended plain text to a file that begins as UTF-16.
        let clean = lines::bytes::of_utf16(bytes, |wide| self.as_they_are(wide).into_owned())
            .map(|clean| self.as_they_are(&clean).into_owned());
        match clean {
            Some(clean) if clean == bytes => Cow::Borrowed(bytes),
            Some(clean) => Cow::Owned(clean),
            None => self.packed(bytes).map_or_else(
                || self.as_they_are(bytes),
                |clean| Cow::Owned(self.as_they_are(&clean).into_owned()),
            ),
        }
    }

    /// Binary data without the secrets in the texts within it, each of them as a separate line; `None`: there are none.
    fn packed(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let spans = self.search.spans(&lines::bytes::texts(bytes)?);
        let mut clean = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for span in &spans {
            clean.extend_from_slice(&bytes[at..span.start]);
            clean.extend_from_slice(format!("[redacted:{}]", span.kind).as_bytes());
            at = span.end;
        }
        clean.extend_from_slice(&bytes[at..]);
        (!spans.is_empty()).then_some(clean)
    }

    fn as_they_are<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.search.spans(bytes).is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut clean = Vec::with_capacity(bytes.len());
        self.stream().whole(bytes, &mut clean);
        if clean == bytes { Cow::Borrowed(bytes) } else { Cow::Owned(clean) }
    }

    /// The value of a named setting: redacted when its name or its form marks it as secret.
    #[must_use]
    pub fn value<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        match rules::ordinary::is_secret_setting(name, value.as_bytes()) {
            true => Cow::Borrowed(NAMED),
            false => self.text(value),
        }
    }

    /// Whether a setting of this name may be secret whatever its value looks like, or the name itself has a secret.
    /// Where not, [`Self::value`] is [`Self::text`] of the value.
    #[must_use]
    pub fn is_name_suspicious(&self, name: &str) -> bool {
        names::says(name) != Says::Nothing || self.text(name) != name
    }

    /// Whether the decimal digits of a number have a secret: only a secret that is itself written with the letters of
    /// numbers can be in them.
    #[must_use]
    pub fn is_number_secret(&self, number: f64) -> bool {
        self.search.has_numeric_literal() && {
            let text = number.to_string();
            self.text(&text) != text
        }
    }

    /// Whether one of these numbers has one.
    #[must_use]
    pub fn has_secret_number(&self, numbers: &[f64]) -> bool {
        self.search.has_numeric_literal() && numbers.iter().any(|number| self.is_number_secret(*number))
    }

    /// Arguments as they may be stored: `--api-key X`, `--token=X`, `db.password=X`, `MY_TOKEN=X`, `-u USER:X` and
    /// everything [`Self::text`] finds. Where an option may be something else (`--token [MASK]`, `--key user_id`,
    /// `--pass 3`), only a value that looks like a secret is one.
    #[must_use]
    pub fn argv(&self, argv: &[String]) -> Vec<String> {
        let mut named: Option<&str> = None;
        let has_login = argv.iter().any(|argument| takes_a_password(argument));
        argv.iter()
            .map(|argument| {
                if has_login && (matches!(named, Some("-p" | "-P")) || argument.starts_with("-p")) {
                    let flag = argument.len() - argument.strip_prefix("-p").unwrap_or(argument).len();
                    let (flag, value) = argument.split_at(flag);
                    if value::generated(value.as_bytes()) {
                        named = None;
                        return format!("{flag}{NAMED}");
                    }
                }
                if let Some(name) = named.take().filter(|_| !is_flag(argument)) {
                    match name.strip_prefix('-') {
                        Some(name) => {
                            let kept = self.flag_value(name.trim_start_matches('-'), argument);
                            // Behind `--env` there is the name of a variable with its value.
                            if kept != *argument || !argument.contains('=') {
                                return kept;
                            }
                        }
                        None if is_set_value(argument) => return NAMED.to_owned(),
                        None => {}
                    }
                }
                let Some((name, value)) = argument.split_once('=') else {
                    named = (argument.starts_with('-') || is_secret_word(argument)).then_some(argument);
                    return self.text(argument).into_owned();
                };
                if is_plain_name(name) {
                    let kept = match name.strip_prefix('-') {
                        Some(name) => self.flag_value(name.trim_start_matches('-'), value),
                        None => self.variable(name, value),
                    };
                    if kept != value {
                        return format!("{name}={kept}");
                    }
                }
                self.text(argument).into_owned()
            })
            .collect()
    }

    /// A value of a column of a table: hidden if the column holds secrets, or may hold some and the value was
    /// generated; otherwise [`Self::text`].
    #[must_use]
    pub fn cell<'a>(&self, column: &str, value: &'a str) -> Cow<'a, str> {
        let named = names::is_secret_column(column) && value::present(value.as_bytes());
        let generated = names::may_be_secret(column) && value::generated(value.as_bytes());
        if named || generated { Cow::Borrowed(NAMED) } else { self.text(value) }
    }

    /// The value of a flag: `--auth X`, `-passin pass:X` and `-u USER:X` are secret, too.
    fn flag_value(&self, name: &str, value: &str) -> String {
        let word = value.bytes().all(|byte| byte.is_ascii_lowercase());
        match (name, value.split_once(':')) {
            ("passin" | "passout" | "pass", Some(("pass", _))) => format!("pass:{NAMED}"),
            ("auth" | "pw" | "pwd", _) if !word && value::present(value.as_bytes()) => NAMED.into(),
            ("u" | "user" | "proxy-user", Some((user, _))) if !value.contains("//") => {
                format!("{user}:{NAMED}")
            }
            _ => self.given(name, value),
        }
    }

    /// The value of an option or a parameter.
    fn given(&self, name: &str, value: &str) -> String {
        match rules::ordinary::is_secret_option(name, value.as_bytes()) {
            true => NAMED.to_owned(),
            false => self.text(value).into_owned(),
        }
    }

    /// The value of a variable of an environment, or of a parameter without dashes.
    fn variable(&self, name: &str, value: &str) -> String {
        if !value.is_empty() && is_variable_secret(name, value) && !name.contains(char::is_lowercase) {
            return NAMED.to_owned();
        }
        self.given(name, value)
    }

    /// The part of an environment that may be stored: allowed names only, values still checked. Trackway's own variables are not among
    /// them: their table says what of each is stored.
    #[must_use]
    pub fn environment<N: AsRef<str>, V: AsRef<str>>(
        &self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> BTreeMap<String, String> {
        variables
            .into_iter()
            .filter(|(name, _)| names::is_allowed(name.as_ref()))
            .map(|(name, value)| {
                (name.as_ref().to_owned(), self.value(name.as_ref(), value.as_ref()).into_owned())
            })
            .collect()
    }

    /// Variables that a user set on purpose (a run file's `set`): every name stays; values are redacted when the name
    /// or their form marks them as secret.
    #[must_use]
    pub fn settings(&self, settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let clean = |name: &str, value: &str| {
            if is_variable_secret(name, value) {
                return NAMED.to_owned();
            }
            self.value(name, value).into_owned()
        };
        settings.iter().map(|(name, value)| (name.clone(), clean(name, value))).collect()
    }

    /// Parameters and tags that were given to a run: every name stays. Where a name is that of a secret or of something
    /// else (`key`, `token`, `pat`), only a value that looks like a secret is redacted.
    #[must_use]
    pub fn parameters(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        given.iter().map(|(name, value)| (name.clone(), self.given(name, value))).collect()
    }

    /// The same redactor, with the secret values among these variables as well.
    #[must_use]
    pub fn extended<N: AsRef<str>, V: AsRef<str>>(
        &self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let extended = Self::from_literals(self.search.literals().to_vec(), variables);
        // What is looked for is prepared once.
        let adds_nothing = extended.search.literals() == self.search.literals();
        if adds_nothing { Self { search: Arc::clone(&self.search) } } else { extended }
    }

    /// Every text in a JSON document, by the name of its field and by its look.
    pub fn json(&self, document: &mut serde_json::Value) {
        self.json_field("", document);
    }

    fn json_field(&self, name: &str, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => *text = self.value(name, text).into_owned(),
            serde_json::Value::Array(items) if items.iter().all(serde_json::Value::is_string) => {
                let argv: Vec<String> =
                    items.iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect();
                *items = self.argv(&argv).into_iter().map(serde_json::Value::String).collect();
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| self.json_field(name, item)),
            serde_json::Value::Object(fields) => {
                fields.iter_mut().for_each(|(name, field)| self.json_field(name, field));
            }
            _ => {}
        }
    }

    /// A redactor for bytes that arrive in pieces.
    #[must_use]
    pub fn stream(&self) -> StreamRedactor<'_> {
        StreamRedactor::new(&self.search)
    }
}

/// Replaces the value of a secret name.
const NAMED: &str = "[redacted:named]";

/// Behind a name that is not a flag, as in `aws configure set aws_secret_access_key X`, most often the next word is not its value.
fn is_set_value(argument: &str) -> bool {
    value::random_case(argument.as_bytes()) && !argument.contains("://")
}

/// Whether an argument is, as it is, the name of a secret, of more than one word.
fn is_secret_word(argument: &str) -> bool {
    is_plain_name(argument) && argument.contains(['_', '.', '-']) && names::is_secret(argument)
}

/// Whether the flag `-p` or `-P` of this command is its password.
fn takes_a_password(argument: &str) -> bool {
    const COMMANDS: [&str; 16] = [
        "login", "sshpass", "mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump",
        "mongosh", "unzip", "zip", "7z", "unrar", "rar", "sqlcmd", "bcp",
    ];
    COMMANDS.contains(&argument.rsplit('/').next().unwrap_or_default())
}

/// Whether an argument is the next flag rather than a value that begins with a dash.
fn is_flag(argument: &str) -> bool {
    argument.starts_with("--") || (argument.starts_with('-') && argument.len() <= 2)
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte))
}

/// Whether the value of a variable is secret. `AUTH=basic` names a way, and `CREDS=./creds.json` a file.
fn is_variable_secret(name: &str, value: &str) -> bool {
    let may_be_word = || !names::is_whole_name(name) && names::says(name) != Says::Credentials;
    let value = value.as_bytes();
    names::is_secret_variable(name)
        && value::present(value)
        && !value::places::is_path(value)
        && !value::is_special(value)
        && (may_be_word() || value::unlike_a_word(value))
}

/// The literal secrets in one variable. A value of several lines (a PEM key) gives one literal per long line, because
/// the search goes line by line; a list or a JSON document gives its parts, too.
fn collect_literals(name: &str, value: &str, literals: &mut Vec<Vec<u8>>) {
    if is_variable_secret(name, value) {
        let several = value.contains('\n');
        for line in value.lines().map(str::trim).filter(|line| line.len() >= LITERAL_BYTES_MIN) {
            // The first and last line of a PEM block are not secret; an existing path is where a secret is stored.
            let marker = several && line.starts_with("-----");
            let path = !several && line.starts_with('/') && std::path::Path::new(line).exists();
            if !marker && !path {
                push_literal(line.as_bytes(), literals);
            }
        }
        match serde_json::from_str(value) {
            Ok(document) => collect_json("", &document, literals),
            Err(_) if value.contains([',', ';']) => collect_list(value, literals),
            Err(_) => {}
        }
    }
    if let Some((_, rest)) = value.split_once("://")
        && let Some((user, _)) = rest.rsplit_once('@')
        && let Some((_, password)) = user.split_once(':')
    {
        push_literal(password.as_bytes(), literals);
        // What is encoded in the URL is plain where the script uses it.
        for view in lines::view::View::of(password.as_bytes()) {
            push_literal(&view.bytes, literals);
        }
    }
}

/// The secrets in a JSON document: by the names of its fields, by their look, and every item of a list.
fn collect_json(name: &str, document: &serde_json::Value, literals: &mut Vec<Vec<u8>>) {
    match document {
        serde_json::Value::String(text) => {
            let random = value::random(text.as_bytes()) && !text.contains("://");
            if random || names::is_secret(name) || name == LIST_ITEM {
                text.lines().for_each(|line| push_literal(line.as_bytes(), literals));
            }
        }
        serde_json::Value::Array(items) => {
            items.iter().for_each(|item| collect_json(LIST_ITEM, item, literals))
        }
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| collect_json(name, field, literals));
        }
        _ => {}
    }
}

/// Replaces the name that an item of a list lacks.
const LIST_ITEM: &str = "[]";

/// The secrets in `a,b` and in `name=a;name=b`.
fn collect_list(value: &str, literals: &mut Vec<Vec<u8>>) {
    for item in value.split([',', ';']).map(str::trim) {
        match item.split_once('=').filter(|(_, value)| !value.is_empty() && !value.starts_with('=')) {
            Some((name, value)) if names::is_secret(name) || value::random(value.as_bytes()) => {
                push_literal(value.as_bytes(), literals)
            }
            Some(_) => {}
            None => push_literal(item.as_bytes(), literals),
        }
    }
}

fn push_literal(bytes: &[u8], literals: &mut Vec<Vec<u8>>) {
    let pieces = bytes.chunks(LITERAL_BYTES_MAX);
    literals.extend(pieces.filter(|piece| piece.len() >= LITERAL_BYTES_MIN).map(<[u8]>::to_vec));
}

#[cfg(test)]
mod tests;
