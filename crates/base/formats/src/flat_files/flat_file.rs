//! Files of keys without sections, in TOML: text in, values with their lines or *all* mistakes out.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::runfile::{RunFileError, line_and_column, nearest};

/// A kind of such a file.
pub(crate) struct FlatFile {
    /// A larger one is refused before it is parsed.
    pub bytes_max: usize,
    /// What it is, with its article.
    pub is: &'static str,
    /// What a key of it is called.
    pub key: &'static str,
    pub keys: &'static [&'static str],
}

/// Why a key and its value set nothing.
pub(crate) enum Mistake {
    /// There is no such key.
    Key,
    /// What its value must be.
    Value(String),
    /// Mistakes inside its value.
    Inside(Vec<MistakeInside>),
}

/// A mistake inside a value.
pub(crate) struct MistakeInside {
    /// Its bytes in the file.
    pub span: Range<usize>,
    pub message: String,
    pub hint: Option<String>,
}

impl Mistake {
    pub(crate) fn value(must_be: impl Into<String>) -> Self {
        Self::Value(must_be.into())
    }
}

impl FlatFile {
    /// Hands each key with its value and line to `set`. `name` is the file's name in messages.
    ///
    /// # Errors
    /// Every mistake of the file, in order. A file that is too large, not UTF-8 or not TOML has that mistake alone.
    pub(crate) fn read(
        &self,
        source: &[u8],
        name: &str,
        mut set: impl FnMut(&str, &DeValue<'_>, usize) -> Result<(), Mistake>,
    ) -> Result<(), Vec<RunFileError>> {
        let lossy = String::from_utf8_lossy(source);
        let error = |span, message, hint| RunFileError::at(name, &lossy, span, message, hint);
        if source.len() > self.bytes_max {
            let message = format!("the file has more than {} bytes, the most of {}", self.bytes_max, self.is);
            return Err(vec![error(0..0, message, None)]);
        }
        let text = std::str::from_utf8(source).map_err(|invalid| {
            let at = invalid.valid_up_to();
            vec![error(at..at, "the file is not valid UTF-8".to_owned(), Some("save it as UTF-8".to_owned()))]
        })?;
        let table = DeTable::parse(text).map_err(|invalid| {
            let message = format!("the file is not valid TOML: {}", invalid.message().replace('\n', ", "));
            vec![error(invalid.span().unwrap_or(0..0), message, None)]
        })?;
        let mut errors = Vec::new();
        for (key, value) in table.get_ref().iter() {
            let line = line_and_column(text, key.span().start).0;
            let name: &str = key.get_ref();
            match set(name, value.get_ref(), line) {
                Ok(()) => {}
                Err(Mistake::Key) => {
                    let hint = match nearest(name, self.keys.iter().copied()) {
                        Some(nearest) => format!("did you mean `{nearest}`?"),
                        None => format!("the {}s are `{}`", self.key, self.keys.join("`, `")),
                    };
                    errors.push(error(key.span(), format!("unknown {} `{name}`", self.key), Some(hint)));
                }
                Err(Mistake::Value(wanted)) => {
                    errors.push(error(value.span(), format!("`{name}` must be {wanted}"), None));
                }
                Err(Mistake::Inside(inside)) => {
                    errors.extend(inside.into_iter().map(|it| error(it.span, it.message, it.hint)));
                }
            }
        }
        errors.sort_by_key(|error| error.span.start);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// A list of different words; each is read by `read`.
pub(crate) fn list<T: Ord>(
    value: &DeValue<'_>,
    must_be: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<std::collections::BTreeSet<T>, Mistake> {
    let wrong = || Mistake::value(must_be);
    let DeValue::Array(items) = value else { return Err(wrong()) };
    let words = items.iter().map(|item| match item.get_ref() {
        DeValue::String(word) => read(word.trim()).ok_or_else(wrong),
        _ => Err(wrong()),
    });
    words.collect()
}

/// A string that is not empty.
pub(crate) fn text(value: &DeValue<'_>) -> Result<String, Mistake> {
    match value {
        DeValue::String(text) if !text.trim().is_empty() && !text.contains('\0') => Ok(text.to_string()),
        _ => Err(Mistake::value("a string that is not empty")),
    }
}

/// `true` or `false`.
pub(crate) fn flag(value: &DeValue<'_>) -> Result<bool, Mistake> {
    match value {
        DeValue::Boolean(flag) => Ok(*flag),
        _ => Err(Mistake::value("`true` or `false`")),
    }
}

/// A whole number from 1.
pub(crate) fn count(value: &DeValue<'_>) -> Result<u32, Mistake> {
    let count = match value {
        DeValue::Integer(integer) => u32::from_str_radix(integer.as_str(), integer.radix()).ok(),
        _ => None,
    };
    count.filter(|count| *count > 0).ok_or(Mistake::value("a whole number from 1 to 4294967295"))
}
