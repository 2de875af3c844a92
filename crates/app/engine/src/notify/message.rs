//! What a notification says.

use trackway_api::home::notification::{
    Notification, NotificationAbout, NotifiedDetection, NotifiedGate, NotifiedRun, VERSION,
};
use trackway_core::registry::GateVerdict;
use trackway_core::text::{counted, duration};
use trackway_core::{Health, Timestamp, with_fields_of};
use trackway_ledger::RunRow;

/// What is to be sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    End,
    Detection(NotifiedDetection),
    Gates(Vec<NotifiedGate>),
    Test,
}

impl Message {
    pub fn about(&self) -> NotificationAbout {
        match self {
            Self::End => NotificationAbout::End,
            Self::Detection(_) => NotificationAbout::Detection,
            Self::Gates(_) => NotificationAbout::Gate,
            Self::Test => NotificationAbout::Test,
        }
    }
}

impl Message {
    /// What its notice is named by within its run: the same message again has the same key.
    pub fn key(&self, run: Option<&RunRow>) -> String {
        let attempts = run.map_or(0, |run| run.attempt_count);
        match self {
            Self::End => format!("end:{attempts}:{}", run.map_or("unknown", |run| run.state.as_str())),
            Self::Detection(found) => format!("detection:{attempts}:{}:{}", found.detector, found.step),
            Self::Gates(gates) => {
                let met = gates.iter().filter(|gate| gate.verdict == GateVerdict::Pass).count();
                format!("gate:{attempts}:{met}/{}", gates.len())
            }
            Self::Test => "test".into(),
        }
    }
}

/// The notification of a message about a run as it is now.
pub(super) fn notification(message: Message, run: Option<&RunRow>, at: Timestamp) -> Notification {
    let about = message.about();
    let text = sentence(&message, run);
    let (detection, gates) = match message {
        Message::Detection(found) => (Some(found), Vec::new()),
        Message::Gates(gates) => (None, gates),
        Message::End | Message::Test => (None, Vec::new()),
    };
    Notification { version: VERSION, about, at, text, run: run.map(notified_run), detection, gates }
}

fn notified_run(run: &RunRow) -> NotifiedRun {
    with_fields_of!(
        NotifiedRun,
        &run,
        [
            run_id, name, state, owner, team, attempt_count, termination_reason, health, last_committed_step,
            wall_seconds, cost_usd,
        ],
    )
}

fn sentence(message: &Message, run: Option<&RunRow>) -> String {
    let Some(run) = run else { return "Trackway can send notifications here".into() };
    let name = &run.name;
    match message {
        Message::End => {
            let reason = run.termination_reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            let attempts = counted(u64::from(run.attempt_count), "attempt");
            let doubtful = run.health.filter(|health| !Health::is_good(Some(*health)));
            let health = doubtful.map(|health| format!(", and is {health}")).unwrap_or_default();
            let took = duration(run.wall_seconds);
            format!("run `{name}` {}{reason} after {attempts} in {took}{health}", run.state)
        }
        Message::Detection(found) => format!("run `{name}`: {}", found.message),
        Message::Gates(gates) => format!("run `{name}`: {}", of_gates(gates)),
        Message::Test => format!("run `{name}`: a test"),
    }
}

/// `1 of 2 gates is not met: accuracy >= 0.84 (fail)`
fn of_gates(gates: &[NotifiedGate]) -> String {
    let open: Vec<&NotifiedGate> = gates.iter().filter(|gate| gate.verdict != GateVerdict::Pass).collect();
    let all = counted(gates.len() as u64, "gate");
    if open.is_empty() {
        return format!("{all} met");
    }
    let rules: Vec<String> = open.iter().map(|gate| format!("{} ({})", gate.rule, gate.verdict)).collect();
    format!("{} of {all} not met: {}", open.len(), rules.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that gates that are not met are named with their verdicts.
    #[test]
    fn gates_in_a_sentence() {
        let gate = |rule: &str, verdict| NotifiedGate { rule: rule.into(), verdict, why: String::new() };
        let gates = [gate("a > 1", GateVerdict::Pass), gate("b > 2", GateVerdict::Inconclusive)];
        assert_eq!(of_gates(&gates), "1 of 2 gates not met: b > 2 (inconclusive)");
        assert_eq!(of_gates(&gates[..1]), "1 gate met");
    }

    /// Proves that one message has one key, and that another end, another step or another verdict has another one.
    #[test]
    fn a_message_has_a_key() {
        let gate = |verdict| NotifiedGate { rule: "a > 1".into(), verdict, why: String::new() };
        let met = Message::Gates(vec![gate(GateVerdict::Pass)]);
        assert_eq!(met.key(None), "gate:0:1/1");
        assert_eq!(Message::Gates(vec![gate(GateVerdict::Fail)]).key(None), "gate:0:0/1");
        assert_eq!(Message::End.key(None), "end:0:unknown");
    }

    /// Proves that a notification has what it is about, and nothing of another subject.
    #[test]
    fn a_notification_is_about_one_thing() {
        let gate = NotifiedGate { rule: "a > 1".into(), verdict: GateVerdict::Fail, why: "0".into() };
        let made = notification(Message::Gates(vec![gate.clone()]), None, Timestamp::from_micros(1));
        assert_eq!(
            (made.about, &made.detection, &made.gates[..]),
            (NotificationAbout::Gate, &None, &[gate][..])
        );
        let made = notification(Message::Test, None, Timestamp::from_micros(1));
        assert!(made.run.is_none() && made.gates.is_empty() && !made.text.is_empty());
    }
}
