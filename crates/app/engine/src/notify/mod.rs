//! Notifications by webhook (`docs/unattended.md`): when a run ends, when a detector finds something, when gates are judged. They
//! are sent beside the run and never hold it up; one that does not arrive is an event of the run. Each is a notice of
//! the ledger before it is sent, so that a tick delivers what a supervisor could not.

mod delivery;
mod message;
mod outbox;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use trackway_api::home::notification::{Notification, NotifiedDetection, NotifiedGate};
use trackway_api::runs::RunReport;
use trackway_core::detect::Detector;
use trackway_core::{Clock as _, RunId, Step};
use trackway_formats::runfile::{NotifyOn, NotifySection, PlanPatch};
use trackway_formats::settings::is_web_address;
use trackway_redact::Redactor;
use trackway_system::SystemClock;

use self::delivery::{Delivery, Sender, TRIES_MAX, body, failed, post_patiently};
use self::message::{Message, notification};
pub use self::outbox::{Delivered, deliver_due, is_too_old};
use crate::Context;
use crate::error::{AppError, ErrorKind};
use crate::reporter::{Notice, Progress, Reporter, Stream, TerminalStreams};
use crate::run::{Job, Prepared, RunSource};

/// Scheme and host of an address, without the part that is secret.
#[must_use]
pub fn host_of(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}

/// Reports what another reporter reports, and sends what the run file wants to its webhook.
pub struct Notifier<'a> {
    inner: &'a dyn Reporter,
    run_id: RunId,
    on: Vec<NotifyOn>,
    delivery: Option<Delivery>,
    /// The detector and the first step of what was sent last: an episode that worsens is sent once.
    episode: Mutex<Option<(Detector, Step)>>,
}

impl<'a> Notifier<'a> {
    /// For a run that is about to be supervised. Without an address nothing is sent.
    pub fn start(context: &Context, prepared: &Prepared, inner: &'a dyn Reporter) -> Self {
        let run_id = prepared.run.run_id;
        let section = prepared.job.plan.notify.as_ref();
        let address = match address(section, context.webhook.as_deref()) {
            Ok(address) => address,
            Err(why) => {
                let text = format!("no notifications are sent: {why}");
                remember_failure(context, run_id, &text);
                inner.note(text);
                None
            }
        };
        let delivery = address.map(|address| {
            Delivery::start(Sender {
                address,
                run_id,
                home: context.home.clone(),
                ledger: context.ledger.clone(),
                redactor: Arc::clone(&context.redactor),
                clock: Arc::clone(&context.clock),
            })
        });
        let on = section.cloned().unwrap_or_default().on;
        Self { inner, run_id, on, delivery, episode: Mutex::new(None) }
    }

    /// Sends how the run ended, and waits a little until everything has arrived.
    pub fn finish(self, context: &Context, report: Option<&RunReport>) {
        let Some(delivery) = self.delivery else { return };
        let mut unsent = 0;
        for (on, message) in report.map(last_messages).unwrap_or_default() {
            unsent += u32::from(self.on.contains(&on) && !delivery.send(message));
        }
        let mut failures = delivery.finish(&context.request.cancel);
        if unsent > 0 {
            let text = "notifications were not sent: too many were waiting";
            remember_failure(context, self.run_id, text);
            failures.push(text.into());
        }
        failures.into_iter().for_each(|text| self.inner.note(text));
    }
}

fn remember_failure(context: &Context, run_id: RunId, text: &str) {
    let event = failed(&*context.clock, run_id, text);
    let _ = context.ledger_write_now(|ledger| ledger.append_event(&event));
}

/// What is sent at the end of a run. One that continues without this supervisor has not ended.
fn last_messages(report: &RunReport) -> Vec<(NotifyOn, Message)> {
    let mut messages = Vec::new();
    if !report.gates.is_empty() {
        let gates = report.gates.iter().map(|gate| NotifiedGate {
            rule: gate.rule.clone(),
            verdict: gate.verdict,
            why: gate.why.clone(),
        });
        messages.push((NotifyOn::Gate, Message::Gates(gates.collect())));
    }
    if report.outcome.state.is_final() {
        messages.push((NotifyOn::End, Message::End));
    }
    messages
}

/// The address that a run file and the settings mean; none: no notifications are wanted.
fn address(section: Option<&NotifySection>, setting: Option<&str>) -> Result<Option<String>, String> {
    let Some(section) = section else { return Ok(setting.map(str::to_owned)) };
    let Some(variable) = &section.webhook else {
        let missing = "`[notify]` has no `webhook`, and the setting `webhook` (TRACKWAY_WEBHOOK) is not set";
        return setting.map(|setting| Some(setting.to_owned())).ok_or(missing.into());
    };
    match std::env::var(variable) {
        Ok(address) if is_web_address(&address) => Ok(Some(address)),
        Ok(_) => Err(format!("the variable `{variable}` of `notify.webhook` is not an address of HTTP")),
        Err(_) => Err(format!("the variable `{variable}` of `notify.webhook` is not set")),
    }
}

/// Sends a test notification to the webhook of a run file or of the settings. Returns it as it is sent, and why it did not arrive.
///
/// # Errors
/// [`ErrorKind::Usage`] when the run file is wrong, or nothing names a webhook.
pub fn send_test(
    run_file: Option<&Path>,
    setting: Option<&str>,
) -> Result<(Notification, Result<String, String>), AppError> {
    let redactor = Redactor::of_this_process();
    let source = |path: &Path| RunSource::File { path: path.to_owned(), patch: PlanPatch::default() };
    let job = run_file.map(|path| Job::read(&source(path), &redactor)).transpose()?;
    let section = job.and_then(|job| job.plan.notify);
    let refused = |why: String| {
        AppError::new(ErrorKind::Usage, why).hint("see docs/unattended.md: TRACKWAY_WEBHOOK, or `[notify]`")
    };
    let address = address(section.as_ref(), setting).map_err(refused)?;
    let address = address.ok_or_else(|| refused("no webhook is set".into()))?;
    let sent = notification(Message::Test, None, SystemClock.now());
    let document = body(&sent, &redactor).map_err(|why| AppError::new(ErrorKind::Fault, why))?;
    let done = post_patiently(&address, &document, TRIES_MAX);
    let host = host_of(&address);
    Ok((sent, done.map(|()| host.clone()).map_err(|failure| format!("{host}: {}", failure.why))))
}

impl Reporter for Notifier<'_> {
    fn notice(&self, notice: &Notice) {
        self.inner.notice(notice);
        let Notice::Detected { detector, severity, first_step, step, text } = notice else { return };
        let episode = Some((*detector, *first_step));
        let mut last = self.episode.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *last, episode) == episode {
            return;
        }
        if let Some(delivery) = self.delivery.as_ref().filter(|_| self.on.contains(&NotifyOn::Detection)) {
            let (detector, severity, step) = (*detector, *severity, *step);
            let found = NotifiedDetection { detector, severity, step, message: text.clone() };
            // In the ledger it is anyway.
            let _ = delivery.send(Message::Detection(found));
        }
    }

    fn terminal(&self) -> TerminalStreams {
        self.inner.terminal()
    }

    fn output(&self, stream: Stream, bytes: &[u8]) {
        self.inner.output(stream, bytes);
    }

    fn progress(&self, progress: &Progress) {
        self.inner.progress(progress);
    }

    fn reading_data(&self, done_bytes: u64, total_bytes: u64) {
        self.inner.reading_data(done_bytes, total_bytes);
    }

    fn searching(&self, predicates: usize, done: u64, total: u64) {
        self.inner.searching(predicates, done, total);
    }

    fn uploading(&self, done_bytes: u64, total_bytes: u64) {
        self.inner.uploading(done_bytes, total_bytes);
    }

    fn fetching(&self, done_bytes: u64, total_bytes: u64) {
        self.inner.fetching(done_bytes, total_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an address is shown without its path and its user, in which its secret is.
    #[test]
    fn the_host_of_an_address() {
        for (address, host) in [
            ("https://hooks.example.org/services/T0/secret", "https://hooks.example.org"),
            ("http://user:secret@localhost:8080?token=secret", "http://localhost:8080"),
            ("https://h.example", "https://h.example"),
        ] {
            assert_eq!(host_of(address), host);
        }
    }

    /// Proves where the address comes from: the variable that the run file names, else the setting; and that one that is missing is
    /// an error only where a run file wants notifications.
    #[test]
    fn where_the_address_comes_from() {
        let section = |variable: Option<&str>| NotifySection {
            webhook: variable.map(str::to_owned),
            ..NotifySection::default()
        };
        let setting = Some("https://h.example/setting");
        assert_eq!(address(None, None), Ok(None));
        assert_eq!(address(None, setting).unwrap().as_deref(), setting);
        assert_eq!(address(Some(&section(None)), setting).unwrap().as_deref(), setting);
        assert!(address(Some(&section(None)), None).unwrap_err().contains("TRACKWAY_WEBHOOK"));
        let missing = section(Some("SURELY_NOT_SET_HERE"));
        assert!(address(Some(&missing), setting).unwrap_err().contains("`SURELY_NOT_SET_HERE`"));
        let wrong = section(Some("PATH"));
        assert!(address(Some(&wrong), None).unwrap_err().contains("is not an address of HTTP"));
    }
}
