//! Reading the tree key by key: every unknown key, wrong type and bad value becomes an error with its place, and
//! reading continues, so that one run shows every mistake.

use super::tree::{Node, Place, Sources, Table, Value};
use crate::runfile::error::RunFileError;
use crate::runfile::schema::{SectionSchema, section_schema};

/// At most this many mistakes are reported; a file with more is not a run file.
pub const MAX_ERRORS: usize = 100;

/// The mistakes found so far.
pub(crate) struct Problems<'s> {
    sources: &'s Sources,
    /// With the index of the source, for the order.
    errors: Vec<(usize, RunFileError)>,
}

impl<'s> Problems<'s> {
    pub(crate) fn new(sources: &'s Sources) -> Self {
        Self { sources, errors: Vec::new() }
    }

    pub(crate) fn add(&mut self, place: Place, message: String, hint: Option<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push((place.source_index, self.sources.error(&place, message, hint)));
        }
    }

    /// Where a place is, as it is shown: a line of the file, or the change that made it.
    pub(crate) fn shown_place(&self, place: &Place) -> String {
        let here = self.sources.error(place, String::new(), None);
        match here.override_text {
            Some(_) => here.source_name,
            None => format!("{}:{}", here.source_name, here.line),
        }
    }

    /// The errors in the order of their places: the file's first, then those of its changes.
    pub(crate) fn into_errors(mut self) -> Vec<RunFileError> {
        self.errors.sort_by_key(|(source_index, error)| (*source_index, error.span.start));
        self.errors.into_iter().map(|(_, error)| error).collect()
    }
}

/// What is wrong with one value; [`Scope::read`] puts the key's name before the message.
pub(crate) struct Fault {
    place: Place,
    message: String,
    hint: Option<String>,
}

impl Node {
    /// A fault at this value: `message` continues the sentence "`section.key` …".
    pub(crate) fn fault(&self, message: impl Into<String>) -> Fault {
        Fault { place: self.place.clone(), message: message.into(), hint: None }
    }

    /// The fault of a value that has another type than the wanted one.
    pub(crate) fn not(&self, wanted: &str) -> Fault {
        self.fault(format!("must be {wanted}, not {}", self.value.kind()))
    }
}

impl Fault {
    /// A fault at another place than the value's own, such as a key inside it.
    pub(crate) fn at(place: Place, message: String) -> Self {
        Self { place, message, hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A table of the run file that is being read, with the schema it must obey.
pub(crate) struct Scope<'t> {
    path: String,
    pub(crate) place: Place,
    table: &'t Table,
    schema: &'static SectionSchema,
}

impl<'t> Scope<'t> {
    /// Opens a table and reports its unknown keys. `schema_name` is the name in the schema (`data.*` for every
    /// `[data.NAME]`), `path` the name in messages.
    pub(crate) fn open(
        node: &'t Node,
        schema_name: &str,
        path: impl Into<String>,
        place: Place,
        problems: &mut Problems,
    ) -> Option<Self> {
        let path = path.into();
        let schema = section_schema(schema_name)?;
        let Value::Table(table) = &node.value else {
            let fault = node.not("a table").hint(format!("write `[{path}]` or `{{ key = value }}`"));
            problems.add(fault.place, format!("`{path}` {}", fault.message), fault.hint);
            return None;
        };
        let scope = Self { path, place, table, schema };
        scope.report_unknown_keys(problems);
        Some(scope)
    }

    /// Opens a table inside this one, if it is there.
    pub(crate) fn section(&self, key: &str, problems: &mut Problems) -> Option<Scope<'t>> {
        self.table_of(key, &self.path_of(key), problems)
    }

    /// What `read` makes of the section of that key, if it is there.
    pub(crate) fn part<T>(
        &self,
        key: &str,
        problems: &mut Problems,
        read: impl FnOnce(&Scope<'t>, &mut Problems) -> T,
    ) -> Option<T> {
        self.section(key, problems).map(|scope| read(&scope, problems))
    }

    /// As [`Self::section`], of a table that obeys another schema than its path names, such as `detect.*`.
    pub(crate) fn table_of(&self, key: &str, schema: &str, problems: &mut Problems) -> Option<Scope<'t>> {
        let entry = self.table.get(key)?;
        Scope::open(&entry.node, schema, self.path_of(key), entry.key_place.clone(), problems)
    }

    /// The keys and values of a table whose keys the user chooses.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'t String, &'t super::tree::Entry)> {
        self.table.iter()
    }

    pub(crate) fn node(&self, key: &str) -> Option<&'t Node> {
        self.table.get(key).map(|entry| &entry.node)
    }

    /// The key's value through `parse`; `None` when it is absent or at fault (which is reported).
    pub(crate) fn read<T>(
        &self,
        key: &str,
        problems: &mut Problems,
        parse: impl Fn(&Node) -> Result<T, Fault>,
    ) -> Option<T> {
        debug_assert!(self.schema.has(key), "`{key}` of `{}` is missing from the schema", self.path);
        let node = &self.table.get(key)?.node;
        match parse(node) {
            Ok(value) => Some(value),
            Err(fault) => {
                problems.add(fault.place, format!("`{}` {}", self.path_of(key), fault.message), fault.hint);
                None
            }
        }
    }

    /// Reports the key as missing if it is; `example` becomes the hint.
    pub(crate) fn require(&self, key: &str, example: &str, problems: &mut Problems) {
        if !self.table.contains_key(key) {
            let message = format!("`{}` is missing", self.path_of(key));
            problems.add(self.place.clone(), message, Some(format!("add `{key} = {example}`")));
        }
    }

    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn report_unknown_keys(&self, problems: &mut Problems) {
        if self.schema.free_keys {
            return;
        }
        for (key, entry) in self.table {
            if !self.schema.has(key) {
                let message = if self.path.is_empty() {
                    format!("unknown section or key `{key}`")
                } else {
                    format!("unknown key `{key}` in `{}`", self.path)
                };
                problems.add(entry.key_place.clone(), message, Some(self.schema.advice_for(key)));
            }
        }
    }
}
