use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_core::Step;
use trackway_formats::checkpoint_manifest::{Kind, ManifestError, check_file_name};

use crate::bulk::arena::{Arena, Region};
use crate::bulk::copy::copy_all;
use crate::bulk::mapping::BLOCK_BYTES;
use crate::bulk::plan::{FilePlan, MAX_FILE_BYTES, TensorSpec, plan_files};
use crate::bulk::write::DraftFile;
use crate::error::{CheckpointError, Result, TensorError};

/// A tensor and its bytes.
#[derive(Debug, Clone)]
pub struct TensorRef<'a> {
    pub spec: TensorSpec,
    /// Its elements, in little-endian order, the last axis running fastest.
    pub bytes: &'a [u8],
}

/// Lends the arena of a draft, and takes it back with its contents.
pub(crate) trait Home: Send + Sync {
    /// Seconds since a time of the monotonic clock.
    fn seconds_since(&self, micros: i64) -> f64;

    /// Takes a draft, to be written and committed.
    fn submit(&self, save: DraftSave);

    /// Takes the arena of a save that is over.
    fn give_back(&self, arena: Arena);
}

/// A save that is being filled. It holds the arena: there is one at a time. Dropped, it saves nothing.
pub struct Draft {
    home: Arc<dyn Home>,
    /// Gone when it was submitted.
    content: Option<Content>,
    begun_micros: i64,
}

#[derive(Debug)]
pub(crate) struct Content {
    pub arena: Arena,
    pub step: Step,
    files: Vec<PlacedFile>,
    sources: Vec<SourceFile>,
    global_cursor: Vec<u8>,
}

#[derive(Debug)]
struct PlacedFile {
    name: String,
    kind: Kind,
    begin: usize,
    size_bytes: usize,
}

/// A file on a disk, open since it was added, whose bytes are copied when the save is written.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub name: String,
    pub kind: Kind,
    pub path: PathBuf,
    pub file: File,
}

/// A submitted draft: its bytes are in memory, or in files that are open, and wait to be written and committed.
#[derive(Debug)]
pub struct DraftSave {
    pub(crate) content: Content,
    /// Values of metrics at that step.
    pub metrics: Vec<(String, f64)>,
    /// What the training loop waited: from the begin of the draft to its submission.
    pub stall_seconds: f64,
}

impl DraftSave {
    /// The step whose end it holds.
    #[must_use]
    pub fn step(&self) -> Step {
        self.content.step
    }

    /// The position in the data of all ranks together; empty unless several save together.
    #[must_use]
    pub fn global_cursor(&self) -> &[u8] {
        &self.content.global_cursor
    }

    /// Its files in memory, in the order they were added.
    #[must_use]
    pub fn files(&self) -> Vec<DraftFile<'_>> {
        let Content { arena, files, .. } = &self.content;
        files
            .iter()
            .map(|file| {
                let memory = arena.bytes(file.begin, file.size_bytes.next_multiple_of(BLOCK_BYTES));
                DraftFile::in_blocks(&file.name, file.kind, file.size_bytes, memory)
            })
            .collect()
    }

    /// Its files on disks, in the order they were added.
    pub(crate) fn sources(&self) -> &[SourceFile] {
        &self.content.sources
    }
}

impl Draft {
    pub(crate) fn new(home: Arc<dyn Home>, arena: Arena, step: Step, begun_micros: i64) -> Self {
        Self {
            home,
            content: Some(Content {
                arena,
                step,
                files: Vec::new(),
                sources: Vec::new(),
                global_cursor: Vec::new(),
            }),
            begun_micros,
        }
    }

    /// The step whose end it will hold.
    #[must_use]
    pub fn step(&self) -> Step {
        self.content().step
    }

    /// Copies tensors into files `STEM.safetensors`, or `STEM-00001-of-00003.safetensors` … when they are many.
    /// `metadata` goes into each header; it must be the same from save to save if unchanged files are to be shared.
    ///
    /// # Errors
    /// [`CheckpointError::Tensors`] for a tensor that cannot be stored, [`CheckpointError::Manifest`] for a name that
    /// is not allowed or used already, [`CheckpointError::Memory`] when there is no room. The draft is of no more use.
    pub fn tensors(
        &mut self,
        stem: &str,
        kind: Kind,
        tensors: &[TensorRef<'_>],
        metadata: &BTreeMap<String, String>,
    ) -> Result<()> {
        let specs: Vec<_> = tensors.iter().map(|tensor| tensor.spec.clone()).collect();
        let plans = self.plan(stem, &specs, metadata)?;
        check_sizes(tensors, &plans)?;
        let places = self.place(kind, &plans)?;
        let Some((first, end)) = places.first().map(|first| (*first, self.content().arena.used_bytes()))
        else {
            return Ok(());
        };
        let mut memory = self.content_mut().arena.bytes_mut(first, end - first);
        let mut position = first;
        let mut copies = Vec::with_capacity(tensors.len());
        for (plan, place) in plans.iter().zip(&places) {
            let mut begin = place + plan.header.len();
            for (tensor, size_bytes) in &plan.tensors {
                let (_, rest) = std::mem::take(&mut memory).split_at_mut(begin - position);
                let (target, rest) = rest.split_at_mut(*size_bytes);
                copies.push((tensors[*tensor].bytes, target));
                begin += size_bytes;
                (memory, position) = (rest, begin);
            }
        }
        copy_all(copies);
        Ok(())
    }

    /// Lays out such files and returns where each tensor goes, in the given order, for callers that copy them there
    /// themselves, from a device or another language. All of each region must be written before [`Draft::submit`], and
    /// nothing afterwards.
    ///
    /// # Errors
    /// As [`Draft::tensors`].
    pub fn reserve(
        &mut self,
        stem: &str,
        kind: Kind,
        specs: &[TensorSpec],
        metadata: &BTreeMap<String, String>,
    ) -> Result<Vec<Region>> {
        let plans = self.plan(stem, specs, metadata)?;
        let places = self.place(kind, &plans)?;
        let arena = &self.content().arena;
        let mut regions = vec![None; specs.len()];
        for (plan, place) in plans.iter().zip(&places) {
            let mut begin = place + plan.header.len();
            for (tensor, size_bytes) in &plan.tensors {
                regions[*tensor] = Some(arena.region(begin, *size_bytes));
                begin += size_bytes;
            }
        }
        Ok(regions.into_iter().flatten().collect())
    }

    /// Makes room for so many more bytes, and lets a GPU write to it at the speed of the bus: before [`Draft::reserve`], where tensors
    /// of a GPU follow. False: the process uses no GPU of CUDA, or the driver refuses; then copies are slower.
    ///
    /// # Errors
    /// [`CheckpointError::Memory`] when there is no room.
    pub fn pin(&mut self, size_bytes: usize) -> Result<bool> {
        let arena = &mut self.content_mut().arena;
        let size_bytes = arena.used_bytes().saturating_add(size_bytes);
        arena
            .pin(size_bytes)
            .map_err(|source| CheckpointError::Memory { size_bytes: size_bytes as u64, source })
    }

    /// Copies a file of any other content.
    ///
    /// # Errors
    /// [`CheckpointError::Manifest`] for a name that is not allowed or used already, [`CheckpointError::Memory`] when
    /// there is no room.
    pub fn bytes(&mut self, name: &str, kind: Kind, bytes: &[u8]) -> Result<()> {
        let begin = self.take(name, kind, bytes.len())?;
        copy_all(vec![(bytes, self.content_mut().arena.bytes_mut(begin, bytes.len()))]);
        Ok(())
    }

    /// Adds a file that another program wrote. It is opened now and copied when the save is written, chunk by chunk, so
    /// that its size takes no memory. If it is written to meanwhile, the save fails with [`CheckpointError::SourceChanged`].
    ///
    /// # Errors
    /// [`CheckpointError::Manifest`] for a name that is not allowed or used already, [`CheckpointError::Storage`] when
    /// it cannot be opened.
    pub fn file(&mut self, name: &str, kind: Kind, path: &Path) -> Result<()> {
        self.check_name(name)?;
        let file = File::open(path).map_err(CheckpointError::storage("open", path))?;
        self.content_mut().sources.push(SourceFile { name: name.into(), kind, path: path.into(), file });
        Ok(())
    }

    /// Sets the position in the data of all ranks together, when several save together: see
    /// [`crate::RankedSave::global_cursor`].
    pub fn set_global_cursor(&mut self, global_cursor: &[u8]) {
        self.content_mut().global_cursor = global_cursor.to_owned();
    }

    /// Hands the save to the background thread and returns at once. [`crate::bulk::BackgroundSaver::poll`] returns its
    /// outcome.
    pub fn submit(mut self, metrics: Vec<(String, f64)>) {
        if let Some(content) = self.content.take() {
            let stall_seconds = self.home.seconds_since(self.begun_micros);
            self.home.submit(DraftSave { content, metrics, stall_seconds });
        }
    }

    fn plan(
        &self,
        stem: &str,
        specs: &[TensorSpec],
        metadata: &BTreeMap<String, String>,
    ) -> Result<Vec<FilePlan>> {
        Ok(plan_files(stem, specs, metadata, MAX_FILE_BYTES)?)
    }

    /// Makes room for files and writes their headers.
    fn place(&mut self, kind: Kind, plans: &[FilePlan]) -> Result<Vec<usize>> {
        let place = |plan: &FilePlan| {
            let begin = self.take(&plan.name, kind, plan.size_bytes)?;
            self.content_mut().arena.bytes_mut(begin, plan.header.len()).copy_from_slice(&plan.header);
            Ok(begin)
        };
        plans.iter().map(place).collect()
    }

    fn take(&mut self, name: &str, kind: Kind, size_bytes: usize) -> Result<usize> {
        self.check_name(name)?;
        let content = self.content_mut();
        let begin = content.arena.take(size_bytes).map_err(|source| CheckpointError::Memory {
            size_bytes: (content.arena.used_bytes() as u64).saturating_add(size_bytes as u64),
            source,
        })?;
        content.files.push(PlacedFile { name: name.into(), kind, begin, size_bytes });
        Ok(begin)
    }

    fn check_name(&self, name: &str) -> Result<(), ManifestError> {
        check_file_name(name).map_err(|rule| ManifestError::Rule { rule })?;
        let content = self.content();
        let mut used =
            content.files.iter().map(|file| &file.name).chain(content.sources.iter().map(|file| &file.name));
        match used.any(|used| used == name) {
            true => Err(ManifestError::Rule { rule: format!("`{name}` was written already") }),
            false => Ok(()),
        }
    }

    fn content(&self) -> &Content {
        self.content.as_ref().expect("only `submit` takes it, and consumes the draft")
    }

    fn content_mut(&mut self) -> &mut Content {
        self.content.as_mut().expect("only `submit` takes it, and consumes the draft")
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(content) = self.content.take() {
            self.home.give_back(content.arena);
        }
    }
}

fn check_sizes(tensors: &[TensorRef<'_>], plans: &[FilePlan]) -> Result<(), TensorError> {
    let planned = plans.iter().flat_map(|plan| &plan.tensors);
    match planned.into_iter().find(|(tensor, size_bytes)| tensors[*tensor].bytes.len() != *size_bytes) {
        None => Ok(()),
        Some((tensor, size_bytes)) => {
            let TensorRef { spec, bytes } = &tensors[*tensor];
            let rule = format!(
                "the tensor `{}` was given {} bytes, but its type and shape need {size_bytes}",
                spec.name,
                bytes.len()
            );
            Err(TensorError::rule(rule))
        }
    }
}
