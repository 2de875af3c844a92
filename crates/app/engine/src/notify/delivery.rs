//! Sends notifications, beside the run: a queue with a bound, a thread, and tries whose time is bounded together.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use trackway_api::home::notification::{Notification, NotificationAbout};
use trackway_core::text::counted;
use trackway_core::{Clock, RunId};
use trackway_formats::EventKind;
use trackway_ledger::{DeliveryEnd, EventRow, Ledger, NoticeRow, SubjectKind};
use trackway_redact::Redactor;
use trackway_system::Cancel;

use super::message::{Message, notification};
use crate::home::Home;
use crate::ledger::row_copies::{keep_end, keep_new_notice, keep_try};

/// Notifications that wait to be sent, at most; what comes then is not sent.
const QUEUE_MAX: usize = 64;
/// Tries of one notification; a single one while the webhook failed the last.
pub const TRIES_MAX: u32 = 4;
/// How long one try may take.
const TRY_SECONDS: u64 = 3;
/// The pause after the first try; each is twice the one before. All tries and pauses of a notification take 15.5 s at most.
const FIRST_PAUSE_MILLIS: u64 = 500;
/// How long no other process tries a notice that is tried here, in seconds: longer than all tries and pauses.
pub(super) const HELD_SECONDS: f64 = 30.0;
/// When a notice may be tried again after all of these failed, in seconds.
const LATER_SECONDS: f64 = 60.0;
/// How long the end of a run waits for what is still in the queue.
const FINISH_SECONDS: u64 = 20;
/// How long one look of this wait takes.
const TURN: Duration = Duration::from_millis(100);
/// Looks within a second.
const TURNS_PER_SECOND: u64 = 10;

/// Why a notification did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// What the webhook answered, or why it did not.
    pub why: String,
    /// How often it was tried.
    pub tries: u32,
    /// Whether another try may succeed.
    pub may_pass: bool,
}

/// A message as it is sent, and its notice.
struct Letter {
    about: NotificationAbout,
    document: Vec<u8>,
    notice: NoticeRow,
    /// Whether the ledger has it.
    is_stored: bool,
}

/// A letter, or why none could be made.
type LetterResult = Result<Letter, (NotificationAbout, Failure)>;

/// What sends the notifications of a run.
pub(super) struct Sender {
    /// The address, which is a secret.
    pub address: String,
    pub run_id: RunId,
    pub home: Home,
    pub ledger: Ledger,
    pub redactor: Arc<Redactor>,
    pub clock: Arc<dyn Clock>,
}

/// The queue of a run, and the thread behind it.
pub(super) struct Delivery {
    queue: SyncSender<Message>,
    /// What was not delivered, when the thread has ended.
    ended: Mutex<Receiver<Vec<String>>>,
}

impl Delivery {
    pub fn start(sender: Sender) -> Self {
        let (queue, messages) = sync_channel(QUEUE_MAX);
        let (end, ended) = channel();
        let (made, letters) = sync_channel(QUEUE_MAX);
        let sender = Arc::new(sender);
        let keeper = Arc::clone(&sender);
        // In a thread beside that which sends: a message is in the ledger while those before it are still tried.
        std::thread::spawn(move || keeper.keep_all(&messages, &made));
        std::thread::spawn(move || {
            // The run may have ended without waiting for it.
            let _ = end.send(sender.deliver_all(&letters));
        });
        Self { queue, ended: Mutex::new(ended) }
    }

    /// Puts a message into the queue; false if that is full.
    pub fn send(&self, message: Message) -> bool {
        self.queue.try_send(message).is_ok()
    }

    /// Waits until everything was sent, its time is up, or a person wants the process to end. Returns what was not delivered.
    pub fn finish(self, cancel: &Cancel) -> Vec<String> {
        let Self { queue, ended } = self;
        // The threads end when their queue is closed and empty.
        drop(queue);
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        let requests = cancel.stop_requests();
        for _ in 0..FINISH_SECONDS * TURNS_PER_SECOND {
            match ended.recv_timeout(TURN) {
                Ok(failures) => return failures,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if cancel.stop_requests() > requests => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        vec!["notifications were not delivered before the supervisor ended".into()]
    }
}

impl Sender {
    /// Makes letters of messages and stores their notices, so that they survive this process.
    fn keep_all(&self, messages: &Receiver<Message>, made: &SyncSender<LetterResult>) {
        for message in messages {
            let about = message.about();
            let failed = |why| (about, Failure { why, tries: 0, may_pass: true });
            if made.send(self.letter(message).map_err(failed)).is_err() {
                return;
            }
        }
    }

    fn deliver_all(&self, letters: &Receiver<LetterResult>) -> Vec<String> {
        let mut tries_max = TRIES_MAX;
        let mut failures = Vec::new();
        for letter in letters {
            let failure = letter.and_then(|letter| {
                self.deliver(&letter, tries_max).map_err(|failure| (letter.about, failure))
            });
            // A webhook that is down would otherwise take all tries for each message of a full queue.
            tries_max = if failure.is_err() { 1 } else { TRIES_MAX };
            failures.extend(failure.err().map(|(about, failure)| self.record(about, &failure)));
        }
        failures
    }

    /// The notification as it is sent, without secrets, after the ledger took it. One that the ledger cannot take is sent all the same.
    fn letter(&self, message: Message) -> Result<Letter, String> {
        let run = self.ledger.run(self.run_id).map_err(|error| error.to_string())?;
        let (about, at) = (message.about(), self.clock.now());
        let notice_id = format!("{}:{}", self.run_id, message.key(run.as_ref()));
        let document_json = cleaned(&notification(message, run.as_ref(), at), &self.redactor)?;
        let document = serde_json::to_vec(&document_json).map_err(|error| error.to_string())?;
        let notice = NoticeRow {
            notice_id,
            subject_kind: SubjectKind::Run,
            subject_id: self.run_id.to_string(),
            project: run.and_then(|run| run.project),
            at,
            about: about.to_string(),
            document_json,
        };
        // Before the ledger has it: from then on another process may deliver it, and its copy is the newer one.
        keep_new_notice(&self.home, &self.ledger, &notice);
        let is_stored = self.ledger.post_notice(&notice).is_ok();
        Ok(Letter { about, document, notice, is_stored })
    }

    /// Sends a letter, unless it has arrived already or another process sends it now.
    fn deliver(&self, letter: &Letter, tries_max: u32) -> Result<(), Failure> {
        let notice_id = &letter.notice.notice_id;
        if letter.is_stored && matches!(self.ledger.take_notice(notice_id, HELD_SECONDS), Ok(false)) {
            return Ok(());
        }
        keep_try(&self.home, &self.ledger, &letter.notice);
        let done = post_patiently(&self.address, &letter.document, tries_max);
        let end = match &done {
            Ok(()) => DeliveryEnd::Delivered,
            Err(Failure { why, may_pass: true, .. }) => {
                DeliveryEnd::Later { seconds: LATER_SECONDS, why: why.clone() }
            }
            Err(Failure { why, .. }) => DeliveryEnd::GivenUp { why: why.clone() },
        };
        if letter.is_stored {
            // Where the ledger does not take it, the notice is sent once more later: at least once is what is promised.
            let _ = self.ledger.end_notice(notice_id, &end);
        }
        keep_end(&self.home, &self.ledger, &letter.notice, &end);
        done
    }

    /// Writes down that a notification did not arrive, as far as the ledger takes it now.
    fn record(&self, about: NotificationAbout, failure: &Failure) -> String {
        let message = sentence(about, &self.address, failure);
        let fields_json = Some(json!({ "about": about, "tries": failure.tries }));
        let event = EventRow { fields_json, ..failed(&*self.clock, self.run_id, &message) };
        let _ = self.ledger.append_event(&event);
        message
    }
}

/// `the notification (end) did not reach https://hooks.example.org after 4 tries: it answered with status 500`
fn sentence(about: NotificationAbout, address: &str, failure: &Failure) -> String {
    let Failure { why, tries, .. } = failure;
    let tries = counted(u64::from(*tries), "try");
    format!("the notification ({about}) did not reach {} after {tries}: {why}", super::host_of(address))
}

/// The event of a notification that did not arrive.
pub(super) fn failed(clock: &dyn Clock, run_id: RunId, message: &str) -> EventRow {
    let (kind, at) = (EventKind::NotificationFailed, clock.now());
    EventRow {
        event_id: format!("{run_id}:{kind}:{}", at.as_micros()),
        ..EventRow::of_run(run_id, kind, at, message.into())
    }
}

/// The notification as a document without secrets.
fn cleaned(notification: &Notification, redactor: &Redactor) -> Result<serde_json::Value, String> {
    let mut document = serde_json::to_value(notification).map_err(|error| error.to_string())?;
    redactor.json(&mut document);
    Ok(document)
}

/// The body of the request.
pub(super) fn body(notification: &Notification, redactor: &Redactor) -> Result<Vec<u8>, String> {
    serde_json::to_vec(&cleaned(notification, redactor)?).map_err(|error| error.to_string())
}

/// Sends a document, at most so many times; an answer that another try does not change ends it.
pub(super) fn post_patiently(address: &str, document: &[u8], tries_max: u32) -> Result<(), Failure> {
    let mut pause = Duration::from_millis(FIRST_PAUSE_MILLIS);
    let mut tries = 0;
    loop {
        tries += 1;
        let (why, may_pass) = match post(address, document) {
            Ok(200..300) => return Ok(()),
            Ok(status) => (format!("it answered with status {status}"), is_passing(status)),
            Err(why) => (why, true),
        };
        if !may_pass || tries >= tries_max {
            return Err(Failure { why, tries, may_pass });
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
}

/// Whether the same request may be answered otherwise later.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..)
}

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
fn post(address: &str, document: &[u8]) -> Result<u16, String> {
    trackway_store::post_json(address, document.to_vec(), Duration::from_secs(TRY_SECONDS))
}

#[cfg(not(any(feature = "s3", feature = "gcs", feature = "azure")))]
fn post(_: &str, _: &[u8]) -> Result<u16, String> {
    let _ = TRY_SECONDS;
    Err("this program was built without an HTTP client: build it with the feature s3, gcs or azure".into())
}
