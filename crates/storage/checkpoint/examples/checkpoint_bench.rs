//! Measures saving and loading beside the floors: a memory copy, and the same bytes written and read with nothing
//! else. It holds a state of float32 tensors with Adam's two moments, takes one command per line on stdin, and answers
//! each with a line of JSON, so that `bench/checkpoint/peers.py` can take turns between this and others.
//!
//! Usage: `checkpoint_bench FOLDER MEBIBYTES`, then `memcpy`, `hash`, `save`, `save_little`, `raw_write`,
//! `raw_buffered`, `raw_read`, `raw_read_fresh`, `copy_fresh`, `load`, `load_warm`, `load_into`, `load_into_warm`,
//! `verify`, `verify_warm`.
//!
//! What reads into new memory is done by a new process, as every resume is: an old process has memory that it freed
//! just before, which would make reading look cheaper than it is.

#![allow(clippy::disallowed_methods, reason = "it deletes what it made")]
#![allow(clippy::print_stdout, reason = "it answers on stdout")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead as _, Read as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trackway_checkpoint::bulk::{
    BackgroundSaver, DraftSave, Dtype, FileWriter, Fill, Parent, SaveEnd, Saved, TensorInfo, TensorRef,
    TensorSpec, read_files, read_header, read_into, verify_files,
};
use trackway_checkpoint::{Kind, ManifestFile};
use trackway_core::{Clock, Timestamp};
use trackway_store::{Disk, RealDisk};

const TENSORS: usize = 200;
const RAW_BYTES: usize = 16 << 20;
const MIB: usize = 1 << 20;
/// The list of a save's files, beside them.
const LIST_NAME: &str = "manifest.json";
/// Before a command that a new process is to answer.
const ONCE: &str = "--once";

type Answer = Result<Value, Box<dyn Error>>;

#[derive(Debug)]
struct Stopwatch(Instant);

#[allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; the system clock stands above this crate"
)]
fn now() -> Instant {
    Instant::now()
}

impl Clock for Stopwatch {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.monotonic_micros())
    }

    fn monotonic_micros(&self) -> i64 {
        self.0.elapsed().as_micros() as i64
    }

    fn sleep(&self, duration: std::time::Duration) {
        std::thread::sleep(duration);
    }
}

/// A commit as far as the disk is concerned: where the files are, and what they are.
#[derive(Clone, Debug, Default)]
struct StoredCommit {
    folder: PathBuf,
    files: Vec<ManifestFile>,
}

impl StoredCommit {
    /// The save that a folder contains.
    fn open(folder: PathBuf) -> Result<Self, Box<dyn Error>> {
        let files = serde_json::from_slice(&std::fs::read(folder.join(LIST_NAME))?)?;
        Ok(Self { folder, files })
    }

    fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    /// A request to a new process.
    fn answer(&self, command: &str) -> Answer {
        match command {
            "raw_read_fresh" => self.raw_read(true),
            "copy_fresh" => self.copy_fresh(),
            "load" => self.load(false),
            "load_warm" => self.load(true),
            _ => Err(format!("no command `{command}`").into()),
        }
    }

    /// Reads the files directly, one after the other, and nothing else. `fresh`: into memory that was never touched, as
    /// a caller needs who keeps what was read; otherwise into one buffer again and again.
    fn raw_read(&self, fresh: bool) -> Answer {
        self.prepare_cache(false)?;
        let total_bytes = self.size_bytes() as usize + self.files.len() * (RAW_BYTES + 4096);
        let started = now();
        let mut memory = if fresh { Aligned::untouched(total_bytes) } else { Aligned::new(&[]) };
        let mut position = 0;
        for file in &self.files {
            let reader = RealDisk.open(&self.folder.join(&file.name), true)?;
            let mut offset = 0;
            while offset < file.size_bytes {
                offset += reader.read_at(offset, memory.piece_mut(position))? as u64;
                position += if fresh { RAW_BYTES } else { 0 };
            }
        }
        Ok(json!({ "seconds": started.elapsed().as_secs_f64(), "bytes": self.size_bytes() }))
    }

    /// The files, copied from the page cache into memory that was never touched, and hashed, by one thread: nothing
    /// else.
    fn copy_fresh(&self) -> Answer {
        self.prepare_cache(true)?;
        let started = now();
        let mut memory = vec![0; self.size_bytes() as usize];
        let mut rest = memory.as_mut_slice();
        for file in &self.files {
            let (bytes, behind) = rest.split_at_mut(file.size_bytes as usize);
            RealDisk.open(&self.folder.join(&file.name), false)?.read_at(0, bytes)?;
            std::hint::black_box(blake3::hash(bytes));
            rest = behind;
        }
        Ok(json!({ "seconds": started.elapsed().as_secs_f64(), "bytes": self.size_bytes() }))
    }

    fn load(&self, warm: bool) -> Answer {
        self.prepare_cache(warm)?;
        let before_kib = status_kib("VmRSS")?;
        reset_peak()?;
        let started = now();
        let loaded = read_files(&RealDisk, &self.folder, &self.files)?;
        let seconds = started.elapsed().as_secs_f64();
        let tensors = loaded
            .iter()
            .map(|file| file.tensors().map(|tensors| tensors.len()))
            .sum::<Result<usize, _>>()?;
        let extra_kib = status_kib("VmHWM")?.saturating_sub(before_kib);
        let bytes = self.size_bytes();
        Ok(json!({ "seconds": seconds, "bytes": bytes, "tensors": tensors, "extra_kib": extra_kib }))
    }

    fn verify(&self, warm: bool) -> Answer {
        self.prepare_cache(warm)?;
        let started = now();
        verify_files(&RealDisk, &self.folder, &self.files)?;
        Ok(json!({ "seconds": started.elapsed().as_secs_f64(), "bytes": self.size_bytes() }))
    }

    /// Puts the files into the page cache, or out of it.
    fn prepare_cache(&self, warm: bool) -> std::io::Result<()> {
        let mut buffer = vec![0; if warm { MIB } else { 0 }];
        for file in &self.files {
            let mut file = File::open(self.folder.join(&file.name))?;
            if warm {
                while file.read(&mut buffer)? > 0 {}
            } else {
                // SAFETY: advice about an open file.
                unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
            }
        }
        Ok(())
    }
}

/// Tensors that go into files of one name.
type Group = (&'static str, Kind, Vec<TensorSpec>, Vec<Vec<f32>>);

struct Bench {
    root: PathBuf,
    groups: [Group; 3],
    size_bytes: u64,
    saver: BackgroundSaver<StoredCommit>,
    stored: Arc<Mutex<StoredCommit>>,
    step: u64,
    clean_kib: u64,
}

impl Bench {
    fn new(root: PathBuf, size_bytes: usize) -> Result<Self, Box<dyn Error>> {
        let elements = size_bytes / 3 / 4 / TENSORS;
        let group = |stem, kind, seed: usize| {
            let value = |index: usize| ((index * 7 + seed) % 1_000_003) as f32 * 1e-6;
            let tensors: Vec<Vec<f32>> = (0..TENSORS)
                .map(|tensor| (0..elements).map(|index| value(index + tensor)).collect())
                .collect();
            let specs = (0..TENSORS)
                .map(|tensor| TensorSpec::new(format!("{stem}.{tensor}"), Dtype::F32, [elements as u64]));
            (stem, kind, specs.collect(), tensors)
        };
        let groups = [
            group("model", Kind::Weights, 1),
            group("optimizer.exp_avg", Kind::Optimizer, 2),
            group("optimizer.exp_avg_sq", Kind::Optimizer, 3),
        ];
        let clean_kib = status_kib("VmRSS")?;
        let clock = Arc::new(Stopwatch(now()));
        let writer = FileWriter::new(Arc::new(RealDisk), clock.clone());
        let stored = Arc::new(Mutex::new(StoredCommit::default()));
        let parent = stored.clone();
        let below = root.clone();
        let commit = Box::new(move |save: &DraftSave| commit(&writer, &below, &parent, save));
        let saver = BackgroundSaver::new(clock, commit)?;
        let size_bytes = (elements * TENSORS * 3 * 4) as u64;
        saver.prepare(size_bytes)?;
        Ok(Self { root, groups, size_bytes, saver, stored, step: 0, clean_kib })
    }

    fn answer(&mut self, command: &str) -> Answer {
        match command {
            "memcpy" => self.memcpy(),
            "hash" => self.hash(),
            "save" => {
                // One element per tensor: every file is another one, as in training.
                let tensors = self.groups.iter_mut().flat_map(|(_, _, _, tensors)| tensors);
                tensors.for_each(|tensor| tensor[0] += 1.0);
                self.save()
            }
            "save_little" => {
                // One tensor of 600 changes. A file that changed last time is written without waiting for its hash, so
                // the first of two such saves writes all of them once more.
                self.groups[0].3[0][0] += 1.0;
                self.save()?;
                self.groups[0].3[0][0] += 1.0;
                self.save()
            }
            "raw_write" => self.raw_write(true),
            "raw_buffered" => self.raw_write(false),
            "raw_read" => self.stored()?.raw_read(false),
            "raw_read_fresh" | "copy_fresh" | "load" | "load_warm" => self.in_new_process(command),
            "load_into" => self.load_into(false),
            "load_into_warm" => self.load_into(true),
            "verify" => self.stored()?.verify(false),
            "verify_warm" => self.stored()?.verify(true),
            _ => Err(format!("no command `{command}`").into()),
        }
    }

    /// One thread copies the state into memory that was touched before.
    fn memcpy(&mut self) -> Answer {
        let mut draft = self.saver.begin(0)?.ok_or("the last save is not done")?;
        let mut seconds = 0.0;
        for (stem, kind, specs, tensors) in &self.groups {
            let regions = draft.reserve(stem, *kind, specs, &BTreeMap::new())?;
            let started = now();
            for (region, tensor) in regions.iter().zip(tensors) {
                // SAFETY: the region has the tensor's size, and its draft is alive.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        tensor.as_ptr().cast(),
                        region.pointer(),
                        region.size_bytes(),
                    )
                };
            }
            seconds += started.elapsed().as_secs_f64();
        }
        Ok(json!({ "seconds": seconds, "bytes": self.size_bytes }))
    }

    fn hash(&mut self) -> Answer {
        let started = now();
        for tensor in self.groups.iter().flat_map(|(_, _, _, tensors)| tensors) {
            std::hint::black_box(blake3::hash(bytes_of(tensor)));
        }
        Ok(json!({ "seconds": started.elapsed().as_secs_f64(), "bytes": self.size_bytes }))
    }

    fn save(&mut self) -> Answer {
        // What other commands allocated and freed is not this one's.
        // SAFETY: gives free memory back, and nothing else.
        unsafe { libc::malloc_trim(0) };
        reset_peak()?;
        self.step += 1;
        let started = now();
        let mut draft = self.saver.begin(self.step)?.ok_or("the last save is not done")?;
        for (stem, kind, specs, tensors) in &self.groups {
            let tensors: Vec<_> = specs
                .iter()
                .zip(tensors)
                .map(|(spec, tensor)| TensorRef { spec: spec.clone(), bytes: bytes_of(tensor) })
                .collect();
            draft.tensors(stem, *kind, &tensors, &BTreeMap::new())?;
        }
        draft.submit(Vec::new());
        let stall = started.elapsed().as_secs_f64();
        let ended = self.saver.wait(Duration::from_secs(600));
        let seconds = started.elapsed().as_secs_f64();
        let outcome = self.saver.poll().pop().filter(|_| ended).ok_or("no outcome")?;
        let SaveEnd::Committed(saved) = outcome.end else {
            return Err(format!("{:?}", outcome.end).into());
        };
        let old = std::mem::replace(&mut *self.stored.lock().map_err(|_| "poisoned")?, saved.commit);
        if self.step > 1 {
            std::fs::remove_dir_all(old.folder)?;
        }
        Ok(json!({
            "stall": stall, "seconds": seconds, "write": saved.figures.write_seconds,
            "hash": saved.figures.hash_seconds, "direct": saved.figures.direct, "bytes": self.size_bytes,
            "bytes_written": saved.figures.bytes_written, "bytes_shared": saved.figures.bytes_shared,
            "extra_kib": status_kib("VmHWM")?.saturating_sub(self.clean_kib),
        }))
    }

    /// The same number of bytes into one file, in large pieces, synced: nothing else.
    fn raw_write(&mut self, direct: bool) -> Answer {
        let path = self.root.join("raw");
        let buffer = Aligned::new(&self.groups[0].3[0]);
        let started = now();
        let file = RealDisk.create(&path, direct)?;
        let mut offset = 0;
        while offset < self.size_bytes {
            file.write_at(offset, buffer.bytes())?;
            offset += RAW_BYTES as u64;
        }
        file.set_size(self.size_bytes)?;
        file.sync()?;
        let seconds = started.elapsed().as_secs_f64();
        let direct = file.direct();
        drop(file);
        std::fs::remove_file(path)?;
        Ok(json!({ "seconds": seconds, "direct": direct, "bytes": self.size_bytes }))
    }

    fn stored(&self) -> Result<StoredCommit, Box<dyn Error>> {
        Ok(self.stored.lock().map_err(|_| "poisoned")?.clone())
    }

    fn in_new_process(&self, command: &str) -> Answer {
        let program = std::env::current_exe()?;
        let output = Command::new(program).arg(self.stored()?.folder).args([ONCE, command]).output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{command}: {error}: {text}").into())
    }

    /// Into the state's own tensors.
    fn load_into(&mut self, warm: bool) -> Answer {
        let stored = self.stored()?;
        stored.prepare_cache(warm)?;
        reset_peak()?;
        let before_kib = status_kib("VmHWM")?;
        let started = now();
        let tensors = self.groups.iter_mut().flat_map(|(_, _, specs, tensors)| specs.iter().zip(tensors));
        let mut targets: BTreeMap<_, _> =
            tensors.map(|(spec, tensor)| (spec.name.as_str(), bytes_of_mut(tensor))).collect();
        let mut fills = Vec::new();
        for file in &stored.files {
            let header = read_header(&RealDisk, &stored.folder, file)?;
            let target = |info: &TensorInfo| Some((info.offset_bytes, targets.remove(info.name.as_str())?));
            fills.push(Fill {
                file: file.clone(),
                targets: header.tensors.iter().filter_map(target).collect(),
            });
        }
        read_into(&RealDisk, &stored.folder, fills)?;
        let extra_kib = status_kib("VmHWM")?.saturating_sub(before_kib);
        Ok(
            json!({ "seconds": started.elapsed().as_secs_f64(), "bytes": self.size_bytes, "extra_kib": extra_kib }),
        )
    }
}

/// Writes a save below a new folder, with a list of its files, and makes all names durable.
fn commit(
    writer: &FileWriter,
    root: &Path,
    parent: &Mutex<StoredCommit>,
    save: &DraftSave,
) -> Result<Saved<StoredCommit>, trackway_checkpoint::CheckpointError> {
    let failed = |error: std::io::Error| trackway_checkpoint::CheckpointError::state(error);
    let prefix = format!("step-{:08}", save.step());
    let folder = root.join(&prefix);
    RealDisk.make_folder(&folder).map_err(failed)?;
    let parent = parent.lock().map_err(|_| trackway_checkpoint::CheckpointError::state("poisoned"))?.clone();
    let prefix = parent.folder.to_string_lossy().into_owned();
    let parent = Parent { folder: &parent.folder, object_prefix: &prefix, files: &parent.files };
    let written = writer.write(&folder, &save.files(), Some(parent))?;
    let files: Vec<_> = written.files.into_iter().map(|file| file.file).collect();
    let list = serde_json::to_vec(&files).map_err(trackway_checkpoint::CheckpointError::state)?;
    let manifest = RealDisk.create(&folder.join(LIST_NAME), false).map_err(failed)?;
    manifest.write_at(0, &list).and_then(|()| manifest.sync()).map_err(failed)?;
    RealDisk.sync_folder(&folder).and_then(|()| RealDisk.sync_folder(root)).map_err(failed)?;
    Ok(Saved { commit: StoredCommit { folder, files }, figures: written.figures })
}

/// A buffer for direct I/O.
struct Aligned {
    memory: Vec<u8>,
    begin: usize,
}

impl Aligned {
    fn new(content: &[f32]) -> Self {
        let mut memory = vec![1; RAW_BYTES + 4096];
        let begin = memory.as_ptr().align_offset(4096);
        let content = &bytes_of(content)[..(content.len() * 4).min(RAW_BYTES)];
        memory[begin..begin + content.len()].copy_from_slice(content);
        Self { memory, begin }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..self.begin + RAW_BYTES]
    }

    fn untouched(size_bytes: usize) -> Self {
        let memory = vec![0; size_bytes + 4096];
        let begin = memory.as_ptr().align_offset(4096);
        Self { memory, begin }
    }

    fn piece_mut(&mut self, position: usize) -> &mut [u8] {
        &mut self.memory[self.begin + position..self.begin + position + RAW_BYTES]
    }
}

fn bytes_of(tensor: &[f32]) -> &[u8] {
    // SAFETY: floats have no padding, and any bytes may be looked at as bytes.
    unsafe { std::slice::from_raw_parts(tensor.as_ptr().cast(), size_of_val(tensor)) }
}

fn bytes_of_mut(tensor: &mut [f32]) -> &mut [u8] {
    // SAFETY: floats have no padding, and any bytes make a float.
    unsafe { std::slice::from_raw_parts_mut(tensor.as_mut_ptr().cast(), size_of_val(tensor)) }
}

fn status_kib(field: &str) -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).ok_or("no such field")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

/// Resets the peak of memory.
fn reset_peak() -> std::io::Result<()> {
    std::fs::write("/proc/self/clear_refs", "5")
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("which folder?")?);
    let what = arguments.next().ok_or("how many MiB?")?;
    if what == ONCE {
        let command = arguments.next().ok_or("which command?")?;
        println!("{}", StoredCommit::open(folder)?.answer(&command)?);
        return Ok(());
    }
    let mut bench = Bench::new(folder, what.parse::<usize>()? * MIB)?;
    println!("{}", json!({ "ready": true, "bytes": bench.size_bytes }));
    for line in std::io::stdin().lock().lines() {
        let answer = bench.answer(line?.trim()).unwrap_or_else(|error| json!({ "error": error.to_string() }));
        println!("{answer}");
    }
    Ok(())
}
