//! One streaming pass through a source: on all cores, in bounded memory, with a result that does not depend on threads.
//!
//! The source's units are read in parallel, each into a separate accumulator. Accumulators are merged in the order of
//! the units, so that the result is the same with one thread and with many, run after run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use trackway_core::boundary::contained;

use crate::error::DataError;
use crate::read::{Chunk, ChunkSink, Coverage, RejectedRow, Source, Stop, Unit, Units, losses};

/// An accumulator over the chunks of a source.
pub trait Pass: Send {
    /// Whether the pass gets the rows that cannot be read, and chunks list every misfit.
    const WANTS_FAULTY: bool = false;

    /// Takes the next rows. Chunks of one unit come in row order.
    fn observe(&mut self, chunk: &Chunk);

    /// Takes the rows of a unit that cannot be read, after the others; called only if they are wanted.
    fn rejected(&mut self, _rows: Vec<RejectedRow>) {}

    /// Adds what another accumulator took from rows that come later. A fresh accumulator changes nothing.
    fn merge(&mut self, later: Self);
}

/// Nothing but the account of what was read.
impl Pass for () {
    fn observe(&mut self, _: &Chunk) {}

    fn merge(&mut self, (): Self) {}
}

/// Two passes in one reading.
impl<A: Pass, B: Pass> Pass for (A, B) {
    fn observe(&mut self, chunk: &Chunk) {
        self.0.observe(chunk);
        self.1.observe(chunk);
    }

    fn merge(&mut self, later: Self) {
        self.0.merge(later.0);
        self.1.merge(later.1);
    }
}

/// A pass that may be left out.
impl<P: Pass> Pass for Option<P> {
    fn observe(&mut self, chunk: &Chunk) {
        if let Some(pass) = self {
            pass.observe(chunk);
        }
    }

    fn merge(&mut self, later: Self) {
        if let (Some(pass), Some(later)) = (self, later) {
            pass.merge(later);
        }
    }
}

/// Observes a pass.
pub struct PassObserver<'w> {
    /// Called with the bytes done and the bytes in all, from several threads: when a scan begins, and once per unit.
    pub progress: &'w (dyn Fn(u64, u64) + Sync),
    /// Set it to end the scan at the next chunk.
    pub cancelled: &'w AtomicBool,
    /// Units that are read, or wait to be merged, at the same time. Each costs its decoded rows (a few MiB) and an
    /// accumulator, so this bounds the memory.
    pub units_in_flight: usize,
}

/// What columns that are open for reading may take in memory, in all threads together. Of very wide Parquet files fewer
/// units are read at a time.
const OPEN_BYTES_MAX: u64 = 192 << 20;

/// How many threads may read at the same time, each with columns open that take so much.
pub(crate) fn affordable_readers(open_bytes: u64) -> usize {
    usize::try_from(OPEN_BYTES_MAX / open_bytes.max(1)).unwrap_or(usize::MAX).max(1)
}

/// Units in flight per thread: one being read, and another so that no thread waits for a slow neighbour.
pub const UNITS_PER_THREAD: usize = 2;

/// No progress is reported, nothing cancels, all cores are used.
pub static UNWATCHED: std::sync::LazyLock<PassObserver<'static>> = std::sync::LazyLock::new(|| {
    static NEVER: AtomicBool = AtomicBool::new(false);
    PassObserver { progress: &|_, _| {}, cancelled: &NEVER, units_in_flight: default_units_in_flight() }
});

/// [`UNITS_PER_THREAD`] for each thread of the pool.
#[must_use]
pub fn default_units_in_flight() -> usize {
    rayon::current_num_threads() * UNITS_PER_THREAD
}

/// How often a scan begins again with wider types before it takes them as they are.
const MAX_WIDENINGS: usize = 16;

/// Reads the whole source through one accumulator per unit, made by `make` from the source as it is read.
///
/// Types that turn out too narrow are widened in `source` and the scan begins again; see [`crate::read`].
///
/// # Errors
/// [`DataError`] of the first unit, in order, that cannot be read; [`DataError::Cancelled`]; [`DataError::NotAsWritten`] of a
/// strict reading. No error leaves threads behind.
pub fn scan<P: Pass>(
    source: &mut Source,
    make: &(impl Fn(&Source) -> P + Sync),
    watch: &PassObserver<'_>,
) -> Result<(P, Coverage), DataError> {
    for widening in 0.. {
        let may_widen = widening < MAX_WIDENINGS;
        let ending = scan_once(source, make, watch, may_widen);
        // A file that changed meanwhile explains every other error, and without one the answer is of no state of it.
        if let Some(file) = source.changed_file() {
            return Err(DataError::Changed { set: source.set().to_owned(), path: file.path.clone() });
        }
        match ending? {
            Ending::Done(pass, coverage) => {
                source.remember(&coverage);
                strictly(source)?;
                return Ok((pass, *coverage));
            }
            Ending::TooNarrow(wider) => *source = *wider,
        }
    }
    unreachable!("after MAX_WIDENINGS a scan ends")
}

/// Shows some columns of the first rows to `observe`, of whole chunks until there are `rows_min` rows or the table
/// ends. Returns whether they could be read: why not is for a scan to report.
pub fn head(source: &Source, columns: &[usize], rows_min: usize, mut observe: impl FnMut(&Chunk)) -> bool {
    if columns.is_empty() {
        return true;
    }
    let source = source.only(columns);
    contained(|| read_head(&source, rows_min, &mut observe)).is_ok_and(|read| read.is_ok())
}

fn read_head(source: &Source, rows_min: usize, observe: &mut dyn FnMut(&Chunk)) -> Result<(), DataError> {
    let mut units = Units::new(source);
    let (mut done, mut rows) = (None, 0);
    while rows < rows_min
        && let Some(unit) = units.next(done.take())?
    {
        let mut take = |chunk: &Chunk| {
            observe(chunk);
            rows += chunk.batch.num_rows();
            if rows < rows_min { Ok(()) } else { Err(Stop::Cancelled) }
        };
        match source.read(&unit, &mut ChunkSink::new(unit.file, source, false, &mut take)) {
            Ok(()) | Err(Stop::Cancelled) => {}
            Err(Stop::Failed(error)) => return Err(error),
        }
        done = Some(unit);
    }
    Ok(())
}

/// Ends a strict reading where something was not read as it is written.
///
/// # Errors
/// [`DataError::NotAsWritten`].
pub fn strictly(source: &Source) -> Result<(), DataError> {
    let is_strict = source.context().is_strict();
    match losses(&source.reading()).filter(|_| is_strict) {
        Some(what) => Err(DataError::NotAsWritten { set: source.set().to_owned(), what }),
        None => Ok(()),
    }
}

enum Ending<P> {
    Done(P, Box<Coverage>),
    TooNarrow(Box<Source>),
}

type Answer<P> = (usize, Result<(P, Coverage), DataError>);

fn scan_once<P: Pass>(
    source: &Source,
    make: &(impl Fn(&Source) -> P + Sync),
    watch: &PassObserver<'_>,
    may_widen: bool,
) -> Result<Ending<P>, DataError> {
    (watch.progress)(0, source.size_bytes());
    let open_bytes: u64 = source.layout().open_bytes.iter().sum();
    let in_flight = watch.units_in_flight.max(1);
    let threads = rayon::current_num_threads().min(in_flight).min(affordable_readers(open_bytes));
    let (answer, answers) = channel();
    let (permit, permits) = channel();
    (0..in_flight).for_each(|_| permit.send(()).expect("the other end is held here"));
    let queue = Mutex::new(Queue { units: Units::new(source), permits, next: 0 });
    let stopped = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let worker = Worker { source, make, watch, queue: &queue, stopped: &stopped, done: &done };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let answer = answer.clone();
            scope.spawn(|| worker.work(answer));
        }
        drop(answer);
        let ending = merge_in_order(source, make(source), &answers, permit, may_widen);
        stopped.store(true, Ordering::Relaxed);
        ending
    })
}

/// Merges answers in the order of their units; each one merged lets another unit begin.
fn merge_in_order<P: Pass>(
    source: &Source,
    mut pass: P,
    answers: &Receiver<Answer<P>>,
    permit: Sender<()>,
    may_widen: bool,
) -> Result<Ending<P>, DataError> {
    let mut coverage = Coverage::default();
    coverage.columns.resize_with(source.columns().len(), Default::default);
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for (index, result) in answers {
        waiting.insert(index, result);
        while let Some(result) = waiting.remove(&next) {
            let (later, more) = result?;
            pass.merge(later);
            coverage.merge(more);
            if may_widen && let Some(wider) = source.wider(&coverage) {
                return Ok(Ending::TooNarrow(Box::new(wider)));
            }
            next += 1;
            // It is not taken when all units are given out.
            let _ = permit.send(());
        }
    }
    Ok(Ending::Done(pass, Box::new(coverage)))
}

/// The units still to be given out. A unit needs a permit, so that no more than the allowed number are in flight.
struct Queue<'s> {
    units: Units<'s>,
    permits: Receiver<()>,
    next: usize,
}

impl Queue<'_> {
    /// `None` when there are no more, or when the merging side has ended.
    fn take(&mut self, done: Option<Unit>) -> Option<(usize, Result<Unit, DataError>)> {
        self.permits.recv().ok()?;
        let unit = contained(|| self.units.next(done))
            .unwrap_or_else(|panic| Err(self.units.fault(panic)))
            .transpose()?;
        self.next += 1;
        Some((self.next - 1, unit))
    }
}

struct Worker<'w, F> {
    source: &'w Source,
    make: &'w F,
    watch: &'w PassObserver<'w>,
    queue: &'w Mutex<Queue<'w>>,
    stopped: &'w AtomicBool,
    done: &'w AtomicU64,
}

impl<F> Worker<'_, F> {
    fn work<P: Pass>(&self, answer: Sender<Answer<P>>)
    where
        F: Fn(&Source) -> P,
    {
        let mut done = None;
        loop {
            // The guard is dropped before the unit is read.
            let taken = self.queue.lock().unwrap_or_else(PoisonError::into_inner).take(done.take());
            let Some((index, unit)) = taken else { break };
            let result = unit.and_then(|unit| {
                let result = contained(|| self.read(&unit))
                    .unwrap_or_else(|panic| Err(self.source.fault(unit.file, panic)));
                done = Some(unit);
                result
            });
            let failed = result.is_err();
            if answer.send((index, result)).is_err() || failed {
                break;
            }
        }
    }

    fn read<P: Pass>(&self, unit: &Unit) -> Result<(P, Coverage), DataError>
    where
        F: Fn(&Source) -> P,
    {
        let mut pass = (self.make)(self.source);
        let mut take = |chunk: &Chunk| {
            if self.stopped.load(Ordering::Relaxed) || self.watch.cancelled.load(Ordering::Relaxed) {
                return Err(Stop::Cancelled);
            }
            pass.observe(chunk);
            Ok(())
        };
        let mut sink = ChunkSink::new(unit.file, self.source, P::WANTS_FAULTY, &mut take);
        match self.source.read(unit, &mut sink) {
            Ok(()) => {}
            Err(Stop::Cancelled) => return Err(DataError::Cancelled { set: self.source.set().to_owned() }),
            Err(Stop::Failed(error)) => return Err(error),
        }
        let mut coverage = sink.coverage;
        if let Some(rejected) = coverage.rejected.take() {
            pass.rejected(rejected);
        }
        let before = self.done.fetch_add(coverage.bytes_read, Ordering::Relaxed);
        let total = self.source.size_bytes();
        (self.watch.progress)((before + coverage.bytes_read).min(total), total);
        Ok((pass, coverage))
    }
}
