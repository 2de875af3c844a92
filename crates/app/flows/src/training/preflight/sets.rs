//! The data sets of a run, opened for checking.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use trackway_api::runs::preflight::SetQuote;
use trackway_core::checks::CheckResult;
use trackway_data::integrity::{TableEvidence, unreadable};
use trackway_data::media::are_images;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::run::Job;
use trackway_formats::runfile::{DataFormat, DataRole, DataSpec, Plan};
use trackway_tables::DataError;
use trackway_tables::ReadContext;
use trackway_tables::read::Source;

use super::facts::{PlanFacts, SetFacts};
use crate::data::table::{TableRequest, data_error};

/// All of them, by name.
pub struct DataSets {
    sets: Vec<DataSet>,
}

/// One data set.
pub struct DataSet {
    /// Its name in the run file.
    pub name: String,
    /// How the run file declares it.
    pub spec: DataSpec,
    /// What it is for.
    pub role: Option<DataRole>,
    pub content: Content,
    pub read_context: ReadContext,
}

/// What a data set turned out to be when it was opened.
pub enum Content {
    Table(Box<Source>),
    /// A folder of images, or of texts with labels.
    Media,
    /// Other files that are not tables.
    Files,
    /// A table that cannot be opened: the result of `data.values`.
    Unreadable(CheckResult),
}

/// What a data set is like, for pages.
#[derive(Clone)]
pub struct SetProfile {
    /// Its name in the run file.
    pub name: String,
    /// What it is for.
    pub role: Option<DataRole>,
    /// The column that is predicted.
    pub label: Option<String>,
    /// Its statistics.
    pub evidence: Arc<TableEvidence>,
}

impl DataSets {
    /// Finds the files of every data set and opens those that are tables.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] and [`ErrorKind::Usage`] for a path that names nothing, or a column that is not there.
    pub fn open(job: &Job, context: &ReadContext) -> Result<Self, AppError> {
        let mut sets = Vec::new();
        for (name, spec) in &job.plan.data {
            let role = spec.role.or_else(|| DataRole::of_name(name));
            let content = match spec.format {
                Some(DataFormat::Other) => files(job, name, spec, context),
                _ => open(job, name, spec, context)?,
            };
            let (name, spec, read_context) = (name.clone(), spec.clone(), context.clone());
            sets.push(DataSet { name, spec, role, content, read_context });
        }
        Ok(Self { sets })
    }

    /// What planning needs.
    pub fn facts<'f>(&'f self, plan: &'f Plan, one_batch: Result<(), String>) -> PlanFacts<'f> {
        let facts = |set: &'f DataSet| SetFacts {
            spec: &set.spec,
            role: set.role,
            is_table: set.is_table(),
            is_media: matches!(set.content, Content::Media),
        };
        PlanFacts { plan, sets: self.sets.iter().map(facts).collect(), one_batch }
    }

    /// All of them.
    pub fn all(&self) -> &[DataSet] {
        &self.sets
    }

    /// Those that are tables, with their sources.
    pub fn tables(&self) -> impl Iterator<Item = (&DataSet, &Source)> {
        self.sets.iter().filter_map(|set| match &set.content {
            Content::Table(source) => Some((set, source.as_ref())),
            Content::Media | Content::Files | Content::Unreadable(_) => None,
        })
    }

    /// The training set, beside each set that evaluates it, where both are tables.
    pub fn pairs(&self) -> Vec<(&DataSet, &DataSet)> {
        self.pairs_of(DataSet::is_table)
    }

    /// The same where both are folders of images or texts.
    pub fn media_pairs(&self) -> Vec<(&DataSet, &DataSet)> {
        self.pairs_of(|set| matches!(set.content, Content::Media))
    }

    fn pairs_of(&self, fits: fn(&DataSet) -> bool) -> Vec<(&DataSet, &DataSet)> {
        let of = |wanted: fn(DataRole) -> bool| {
            self.sets.iter().filter(move |set| set.role.is_some_and(wanted) && fits(set))
        };
        let train = of(|role| role == DataRole::Train).next();
        let judges = of(|role| role != DataRole::Train);
        train.map(|train| judges.map(|judge| (train, judge)).collect()).unwrap_or_default()
    }

    /// Sizes, for the quote.
    pub fn quotes(&self) -> Vec<SetQuote> {
        let quote = |(set, source): (&DataSet, &Source)| SetQuote {
            name: set.name.clone(),
            file_count: source.files().len(),
            size_bytes: source.size_bytes(),
        };
        self.tables().map(quote).collect()
    }

    /// What is known of each set, in their order.
    pub fn profiles(&self, gathered: &GatheredEvidence) -> Vec<SetProfile> {
        let of = |set: &DataSet| {
            Some(SetProfile {
                name: set.name.clone(),
                role: set.role,
                label: set.spec.label.clone(),
                evidence: gathered.of(&set.name)?,
            })
        };
        self.sets.iter().filter_map(of).collect()
    }
}

impl DataSet {
    fn is_table(&self) -> bool {
        matches!(self.content, Content::Table(_) | Content::Unreadable(_))
    }

    /// The data set as the commands about data take it.
    pub fn request(&self) -> TableRequest {
        TableRequest {
            paths: vec![self.spec.path.clone()],
            spec: self.spec.clone(),
            read_context: self.read_context.clone(),
        }
    }
}

/// The result of one reading of each table, used by every step that needs it.
#[derive(Default)]
pub struct GatheredEvidence(Mutex<BTreeMap<String, Arc<TableEvidence>>>);

impl GatheredEvidence {
    /// Keeps that of one set.
    pub fn keep(&self, set: &str, evidence: TableEvidence) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(set.to_owned(), Arc::new(evidence));
    }

    /// That of a set, if it could be read.
    pub fn of(&self, set: &str) -> Option<Arc<TableEvidence>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(set).cloned()
    }
}

/// Files that are not a table. Those behind a URL are not read one by one.
fn files(job: &Job, name: &str, spec: &DataSpec, context: &ReadContext) -> Content {
    let has_labels = spec.masks.is_some() || spec.labels.is_some();
    let is_here = !spec.path.contains("://");
    // A path that cannot be read is reported where the data is hashed.
    let images = || are_images(&job.base, name, std::slice::from_ref(&spec.path), context).unwrap_or(false);
    if is_here && (has_labels || images()) { Content::Media } else { Content::Files }
}

fn open(job: &Job, name: &str, spec: &DataSpec, context: &ReadContext) -> Result<Content, AppError> {
    let source = match Source::open(&job.base, name, spec, context) {
        Ok(source) => source,
        Err(DataError::NotATable { .. }) if spec.format.is_none() => {
            return Ok(files(job, name, spec, context));
        }
        // Of a run file, everything it names must be there.
        Err(error) => {
            let usage = |error| data_error(error).with_kind(ErrorKind::Usage);
            return unreadable(&error).map(Content::Unreadable).ok_or_else(|| usage(error));
        }
    };
    // A table without a column has no row either, which is what is reported.
    if source.columns().is_empty() {
        return Ok(Content::Table(Box::new(source)));
    }
    for (role, column) in [("label", &spec.label), ("group", &spec.group), ("time", &spec.time)] {
        let Some(column) = column else { continue };
        source.index_of(column, role).map_err(data_error)?;
    }
    let lists = [("group_by", &spec.group_by), ("ignored", &spec.ignore)];
    for (role, column) in lists.iter().flat_map(|(role, names)| names.iter().map(move |name| (*role, name))) {
        source.index_of(column, role).map_err(data_error)?;
    }
    Ok(Content::Table(Box::new(source)))
}
