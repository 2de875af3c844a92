//! One file of a data set: its hash, its rows, and on request its profile.
//!
//! The bytes are hashed on one thread while others parse them; both read the same pages of the system's cache.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use trackway_formats::runfile::{DataFormat, DataSpec};
use trackway_tables::DataError;
use trackway_tables::files::{ByteSource, Identity, format_of, is_text};
use trackway_tables::pass::{PassObserver, scan, strictly};
use trackway_tables::profile::Profile;
use trackway_tables::read::{Coverage, Source, losses, open, read_full};

use super::Resolver;
use super::cache::read_as;
use crate::manifest::DataFile;
use crate::snapshot::ProfileKeeper;

/// Bytes hashed at a time.
const HASH_BYTES: usize = 1 << 20;

/// A file and, where one is kept, its profile.
pub(crate) type Examined = (DataFile, Option<Profile>);

/// Reads the files of one data set.
pub(crate) struct Examiner<'e> {
    pub(crate) set: &'e str,
    pub(crate) spec: &'e DataSpec,
    pub(crate) resolver: &'e Resolver<'e>,
    pub(crate) root: &'e Path,
    pub(crate) keeper: Option<&'e ProfileKeeper<'e>>,
    pub(crate) text_is_table: bool,
    /// Called with the bytes that are done.
    pub(crate) advance: &'e (dyn Fn(u64) + Sync),
}

/// What a reading of the rows finds.
struct Content {
    source: Source,
    coverage: Coverage,
    profile: Option<Profile>,
}

/// Files of a batch per thread. The profiles of a batch are in memory at the same time.
const BATCH_PER_THREAD: usize = 2;

impl Examiner<'_> {
    /// All files in their order, with the profile of all tables together.
    pub(crate) fn read_all(
        &self,
        paths: &[PathBuf],
        watch: &PassObserver<'_>,
    ) -> Result<(Vec<DataFile>, Option<Profile>), DataError> {
        let batch_length = BATCH_PER_THREAD * rayon::current_num_threads();
        let one_unit = PassObserver { units_in_flight: 1, ..*watch };
        let mut files = Vec::with_capacity(paths.len());
        let mut whole: Option<Profile> = None;
        for batch in paths.chunks(batch_length) {
            // Few files are read one after the other, each on all cores.
            let examined: Vec<Examined> = match paths.len() < batch_length {
                true => batch.iter().map(|path| self.read(path, watch)).collect::<Result<_, _>>()?,
                false => batch.par_iter().map(|path| self.read(path, &one_unit)).collect::<Result<_, _>>()?,
            };
            for (file, profile) in examined {
                if let Some(mut profile) = profile {
                    profile.is_of_file(files.len());
                    match &mut whole {
                        Some(whole) => whole.merge(profile).expect("profiles of one set have one label"),
                        None => whole = Some(profile),
                    }
                }
                files.push(file);
            }
        }
        Ok((files, whole))
    }

    /// The file as it is, from what is known of it or by reading it.
    pub(crate) fn read(&self, path: &Path, watch: &PassObserver<'_>) -> Result<Examined, DataError> {
        let context = self.resolver.context;
        let before = Identity::of(path, context).map_err(|source| self.unreadable(path, source))?;
        let format = self.spec.format.unwrap_or_else(|| format_of(path));
        let is_table = format != DataFormat::Other || (self.text_is_table && is_text(path));
        let read_as = read_as(format, is_table, self.spec);
        if let Some(known) = self.known(path, &before, &read_as) {
            (self.advance)(known.0.size_bytes);
            return Ok(known);
        }
        let started = self.resolver.clock.now();
        let bytes = open(path, context).map_err(|source| self.unreadable(path, source))?;
        let (hashed, content) = rayon::join(
            || self.hash(bytes.as_ref(), watch),
            || is_table.then(|| self.content(path, watch)).transpose(),
        );
        if watch.cancelled.load(Ordering::Relaxed) {
            return Err(DataError::Cancelled { set: self.set.to_owned() });
        }
        let after = Identity::of(path, context).map_err(|source| self.unreadable(path, source))?;
        let changed = || DataError::Changed { set: self.set.to_owned(), path: self.display(path) };
        // Checked first: any other error may come from the change.
        if after != before {
            return Err(changed());
        }
        let content = content?;
        let (size_bytes, blake3) = hashed.map_err(|source| self.unreadable(path, source))?;
        if after.size_bytes() != size_bytes {
            return Err(changed());
        }
        let (file, profile) = self.entry(path, format, (size_bytes, blake3), content);
        if let Some(cache) = self.resolver.cache {
            cache.put(path, before, read_as.clone(), &file, started);
        }
        if let (Some(keeper), Some(profile)) = (self.keeper, &profile) {
            keeper.put(&file, &read_as, profile);
        }
        Ok((file, profile))
    }

    /// What the cache has; nothing where a profile is wanted and none is kept.
    fn known(&self, path: &Path, identity: &Identity, read_as: &str) -> Option<Examined> {
        let cache = self.resolver.cache?;
        let known = cache.get(path, identity, read_as)?;
        if self.resolver.context.is_strict() && losses(&known.reading).is_some() {
            return None;
        }
        let file = DataFile { path: self.display(path), name: self.name(path), ..known };
        let profile = match self.keeper {
            Some(keeper) if file.schema.is_some() => Some(keeper.get(&file, read_as)?),
            _ => None,
        };
        cache.hit();
        Some((file, profile))
    }

    fn display(&self, path: &Path) -> String {
        path.strip_prefix(self.resolver.base).unwrap_or(path).to_string_lossy().into_owned()
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(self.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    fn entry(
        &self,
        path: &Path,
        format: DataFormat,
        (size_bytes, blake3): (u64, String),
        content: Option<Content>,
    ) -> Examined {
        let mut file = DataFile {
            path: self.display(path),
            name: self.name(path),
            size_bytes,
            blake3,
            format,
            rows: None,
            rows_rejected: 0,
            rejects: Vec::new(),
            rows_recoded: 0,
            schema: None,
            header: None,
            delimiter: None,
            reading: Vec::new(),
        };
        let Some(Content { source, coverage, profile }) = content else { return (file, None) };
        file.rows = Some(coverage.rows_read);
        file.rows_rejected = coverage.rows_rejected;
        file.rejects = coverage.rejects;
        file.rows_recoded = coverage.rows_recoded;
        file.schema = Some(source.columns().to_vec());
        let dialect = source.files()[0].dialect();
        file.header = dialect.map(|(header, _)| header);
        file.delimiter = dialect.map(|(_, delimiter)| delimiter);
        file.reading = source.reading();
        (file, profile)
    }

    fn hash(&self, bytes: &dyn ByteSource, watch: &PassObserver<'_>) -> io::Result<(u64, String)> {
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; HASH_BYTES];
        let mut size_bytes = 0;
        loop {
            let length = read_full(bytes, size_bytes, &mut buffer)?;
            if length == 0 || watch.cancelled.load(Ordering::Relaxed) {
                return Ok((size_bytes, hasher.finalize().to_hex().to_string()));
            }
            hasher.update(&buffer[..length]);
            size_bytes += length as u64;
            (self.advance)(length as u64);
        }
    }

    fn content(&self, path: &Path, watch: &PassObserver<'_>) -> Result<Content, DataError> {
        let (base, context) = (self.resolver.base, self.resolver.context);
        let mut source = Source::open_files(base, self.set, self.spec, vec![path.to_owned()], context)?;
        // Progress is reported where the bytes are hashed.
        let watch = PassObserver { progress: &|_, _| {}, ..*watch };
        if let Some(keeper) = self.keeper {
            let label = keeper.label.filter(|label| source.columns().iter().any(|it| it.name == *label));
            let (mut profile, coverage) = Profile::of(&mut source, label, &watch)?;
            profile.label = keeper.label.map(str::to_owned);
            keeper.mask.apply(&mut profile);
            self.check_rows(path, &coverage)?;
            return Ok(Content { source, coverage, profile: Some(profile) });
        }
        if let (Some(rows), false) = (source.rows(), source.may_widen()) {
            strictly(&source)?;
            let coverage = Coverage { rows_read: rows, ..Coverage::default() };
            return Ok(Content { source, coverage, profile: None });
        }
        let ((), coverage) = scan(&mut source, &|_| (), &watch)?;
        self.check_rows(path, &coverage)?;
        Ok(Content { source, coverage, profile: None })
    }

    /// A file of which no row can be read has not the format of its name.
    fn check_rows(&self, path: &Path, coverage: &Coverage) -> Result<(), DataError> {
        let first = coverage.rejects.first().and_then(|rejects| rejects.examples.first());
        match first.filter(|_| coverage.rows_read == 0) {
            None => Ok(()),
            Some(first) => {
                let (count, line, detail) = (coverage.rows_rejected, first.place.row, &first.detail);
                Err(self.no_row(path, format!("none of its {count} rows can be read: line {line}: {detail}")))
            }
        }
    }

    fn no_row(&self, path: &Path, message: String) -> DataError {
        let (set, path) = (self.set.to_owned(), self.display(path));
        DataError::Corrupt { set, path, format: "table", message }
    }

    fn unreadable(&self, path: &Path, source: io::Error) -> DataError {
        DataError::Unreadable { set: self.set.to_owned(), path: path.to_owned(), source }
    }
}
