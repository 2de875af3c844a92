//! `[notify]`: what of a run is sent to a webhook, and where its address is.

use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

use super::keys::tree::{Node, Value};
use super::keys::values::{check_variable_name, list, one_of, text};
use super::keys::walker::{Fault, Problems, Scope};

closed_list!(
    /// What is sent to a webhook.
    NotifyOn, "notification", {
        /// The run has ended, for now or for good.
        End = "end",
        /// A detector found something.
        Detection = "detection",
        /// Its gates were judged.
        Gate = "gate",
    }
);

/// What is sent, and where to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotifySection {
    /// The variable of the environment that has the address; the setting `webhook` if it is not set. The address itself is
    /// a secret, and a plan is stored.
    pub webhook: Option<String>,
    /// What is sent.
    pub on: Vec<NotifyOn>,
}

impl Default for NotifySection {
    fn default() -> Self {
        Self { webhook: None, on: NotifyOn::ALL.to_vec() }
    }
}

pub(super) fn notify(scope: &Scope, problems: &mut Problems) -> NotifySection {
    NotifySection {
        webhook: scope.read("webhook", problems, variable_reference),
        on: scope
            .read("on", problems, list(1, one_of(NotifyOn::WORDS)))
            .unwrap_or_else(|| NotifyOn::ALL.to_vec()),
    }
}

/// `{ env = "NAME" }`: the name of the variable.
fn variable_reference(node: &Node) -> Result<String, Fault> {
    const EXAMPLE: &str =
        "write `{ env = \"SLACK_WEBHOOK\" }`, and set that variable where `trackway run` is started";
    let Value::Table(table) = &node.value else {
        let fault = node
            .fault("must name a variable: the address of a webhook is a secret, and run files are stored");
        return Err(fault.hint(EXAMPLE));
    };
    match table.get("env").filter(|_| table.len() == 1) {
        Some(entry) => {
            let name = text(&entry.node)?;
            check_variable_name(&name).map_err(|message| entry.node.fault(message))?;
            Ok(name)
        }
        None => Err(node.fault("must have the key `env` and no other").hint(EXAMPLE)),
    }
}
