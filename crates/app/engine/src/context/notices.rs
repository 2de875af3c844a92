//! The notices of a request: one stream, which its terminal reads as they come and others read when they can.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::reporter::{Notice, Progress, Reporter};

/// Notices that are kept for readers. A reader that is further behind learns how many it missed.
pub const NOTICES_MAX: usize = 1_024;

/// Gets every notice when it is published, on the thread that publishes it.
pub type Listener = Arc<dyn Fn(&Notice) + Send + Sync>;

/// The stream of a request; clones are the same stream.
#[derive(Clone, Default)]
pub struct Notices(Arc<Mutex<Stream>>);

#[derive(Default)]
struct Stream {
    kept: VecDeque<Notice>,
    /// The number of the next notice, counted from 0.
    next_number: u64,
    /// The newest progress: an earlier one is of no use to a reader, and takes no room from notices.
    progress: Option<Progress>,
    /// How often there was progress.
    progress_count: u64,
    listener: Option<Listener>,
}

impl fmt::Debug for Notices {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Notices")
            .field("published_count", &self.stream().next_number)
            .finish_non_exhaustive()
    }
}

impl Notices {
    /// Publishes a notice; the oldest one that is kept makes room for it.
    pub fn publish(&self, notice: Notice) {
        let listener = self.stream().listener.clone();
        if let Some(listener) = listener {
            listener(&notice);
        }
        let mut stream = self.stream();
        if let Notice::Progress(progress) = notice {
            stream.progress = Some(progress);
            stream.progress_count += 1;
            return;
        }
        // A wait is repeated while it lasts, and must not push out what was before it.
        let is_wait = |notice: &Notice| matches!(notice, Notice::Queued(_));
        if is_wait(&notice) && stream.kept.back().is_some_and(is_wait) {
            stream.kept.pop_back();
            stream.next_number -= 1;
        }
        if stream.kept.len() == NOTICES_MAX {
            stream.kept.pop_front();
        }
        stream.kept.push_back(notice);
        stream.next_number += 1;
    }

    /// Sets what gets each notice from now on; gives what got them before.
    pub fn listen(&self, listener: Option<Listener>) -> Option<Listener> {
        std::mem::replace(&mut self.stream().listener, listener)
    }

    /// A reader from the beginning of the stream on.
    #[must_use]
    pub fn reader(&self) -> NoticeReader {
        NoticeReader { notices: self.clone(), next_number: 0, progress_count: 0 }
    }

    fn stream(&self) -> MutexGuard<'_, Stream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What use cases report goes into the stream; the output of scripts is in their logs.
impl Reporter for Notices {
    fn notice(&self, notice: &Notice) {
        self.publish(notice.clone());
    }

    fn progress(&self, progress: &Progress) {
        self.publish(Notice::Progress(progress.clone()));
    }
}

/// A place in the stream.
#[derive(Debug)]
pub struct NoticeReader {
    notices: Notices,
    next_number: u64,
    progress_count: u64,
}

/// What was published since the last reading.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNotices {
    /// Notices before these that were dropped unread.
    pub dropped_count: u64,
    /// Oldest first, without progress.
    pub notices: Vec<Notice>,
    /// The newest progress, where there was some.
    pub progress: Option<Progress>,
}

impl NoticeReader {
    /// What was published since the last call, without waiting.
    pub fn read(&mut self) -> NewNotices {
        let stream = self.notices.stream();
        let oldest_number = stream.next_number - stream.kept.len() as u64;
        let dropped_count = oldest_number.saturating_sub(self.next_number);
        let read_count = self.next_number.saturating_sub(oldest_number);
        let unread = stream.kept.iter().skip(usize::try_from(read_count).unwrap_or(usize::MAX));
        let notices = unread.cloned().collect();
        let progress = stream.progress.clone().filter(|_| stream.progress_count > self.progress_count);
        let (next_number, progress_count) = (stream.next_number, stream.progress_count);
        drop(stream);
        (self.next_number, self.progress_count) = (next_number, progress_count);
        NewNotices { dropped_count, notices, progress }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use trackway_api::runs::watch::QueuedRun;

    use super::*;

    fn note(number: usize) -> Notice {
        Notice::Note { text: number.to_string() }
    }

    /// Proves that readers get each notice once and in order, that the stream is bounded, and that a slow reader learns how many
    /// notices it missed.
    #[test]
    fn a_slow_reader_learns_what_it_missed() {
        let notices = Notices::default();
        let (mut fast, mut slow) = (notices.reader(), notices.reader());
        notices.publish(note(0));
        assert_eq!(fast.read(), NewNotices { dropped_count: 0, notices: vec![note(0)], progress: None });
        assert_eq!(fast.read(), NewNotices { dropped_count: 0, notices: Vec::new(), progress: None });
        (1..NOTICES_MAX + 3).for_each(|number| notices.publish(note(number)));
        let seen = slow.read();
        assert_eq!((seen.dropped_count, seen.notices.len()), (3, NOTICES_MAX));
        assert_eq!(seen.notices.first(), Some(&note(3)));
        let seen = fast.read();
        assert_eq!((seen.dropped_count, seen.notices.len()), (2, NOTICES_MAX));
    }

    /// Proves that a wait which is repeated takes the room of one notice, and that the newest is read.
    #[test]
    fn a_repeated_wait_is_one_notice() {
        let notices = Notices::default();
        let mut reader = notices.reader();
        let wait = |seconds| {
            Notice::Queued(QueuedRun {
                name: "gpu".into(),
                at_most: 1,
                running: Some(1),
                place: Some(1),
                waiting: Some(1),
                waited_seconds: seconds,
            })
        };
        notices.publish(note(0));
        (0..2 * NOTICES_MAX).for_each(|second| notices.publish(wait(second as f64)));
        let seen = reader.read();
        assert_eq!((seen.dropped_count, seen.notices.len()), (0, 2));
        assert_eq!(seen.notices.last(), Some(&wait((2 * NOTICES_MAX - 1) as f64)));
    }

    /// Proves that a listener gets a notice before `publish` returns, until another takes its place.
    #[test]
    fn a_listener_gets_notices_at_once() {
        let (notices, heard) = (Notices::default(), Arc::new(AtomicU32::new(0)));
        let counter = Arc::clone(&heard);
        let count: Listener = Arc::new(move |_: &Notice| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        assert!(notices.listen(Some(count)).is_none());
        notices.publish(note(0));
        notices.progress(&Progress::default());
        assert_eq!(heard.load(Ordering::Relaxed), 2);
        assert!(notices.listen(None).is_some());
        notices.publish(note(1));
        assert_eq!(heard.load(Ordering::Relaxed), 2);
        assert_eq!(notices.reader().read().notices.len(), 2);
    }

    /// Proves that a reader gets the newest progress once, and that progress takes no room from notices.
    #[test]
    fn progress_takes_no_room() {
        let notices = Notices::default();
        let mut reader = notices.reader();
        notices.publish(note(0));
        let at = |step: u64| Progress { step: Some(step), ..Progress::default() };
        (0..=NOTICES_MAX as u64).for_each(|step| notices.progress(&at(step)));
        let seen = reader.read();
        assert_eq!((seen.dropped_count, seen.notices), (0, vec![note(0)]));
        assert_eq!(seen.progress, Some(at(NOTICES_MAX as u64)));
        assert_eq!(reader.read().progress, None);
    }
}
