//! What a launch needs from the engine that starts it. A launcher provides it, or refuses the launch.

use serde::{Deserialize, Serialize};
use trackway_formats::runfile::{EngineTemplate, SecretReference};
use trackway_redact::Redactor;

/// All requirements on the engine; none by default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineRequest {
    /// Machines and their parts.
    pub resources: Resources,
    /// The container image that the command runs in.
    pub image: Option<String>,
    /// The account that is charged.
    pub account: Option<String>,
    /// The queue or partition.
    pub queue: Option<String>,
    /// The engine's own name or number of a priority.
    pub priority: Option<String>,
    /// Machines that it must not run on.
    pub exclude_hosts: Vec<String>,
    /// Variables that the engine fills from its own store of secrets.
    pub secrets: Vec<SecretReference>,
    /// A patch in the engine's own terms, applied to what the launcher submits.
    pub template: Option<EngineTemplate>,
}

/// Machines and their parts; what is none is left to the engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Machines.
    pub nodes: Option<u32>,
    /// Processes that the engine starts on each machine.
    pub processes_per_node: Option<u32>,
    /// Accelerators of each machine.
    pub gpus: Option<GpuRequest>,
    /// Processors of each machine.
    pub cpus: Option<u32>,
    /// Memory of each machine, at least.
    pub memory_bytes: Option<u64>,
    /// Free space for the attempt's files on each machine, at least.
    pub disk_bytes: Option<u64>,
    /// The longest the engine lets it run.
    pub time_limit_seconds: Option<f64>,
}

/// Accelerators of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuRequest {
    pub count: u32,
    /// The engine's name of their kind, such as `h200`.
    pub kind: Option<String>,
    /// Memory of each, at least.
    pub memory_bytes: Option<u64>,
}

impl EngineRequest {
    /// The request as it may be stored.
    pub(crate) fn redacted(&self, redactor: &Redactor) -> Self {
        let template = self.template.as_ref().map(|template| EngineTemplate {
            format: template.format,
            text: redactor.text(&template.text).into_owned(),
        });
        Self { template, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use trackway_formats::runfile::TemplateFormat;

    use super::*;

    /// Proves that a template is stored without the secrets in it.
    #[test]
    fn a_template_is_stored_without_secrets() {
        let token = format!("gh{}{}", "p_", "Ab1Cd2".repeat(6));
        let template =
            EngineTemplate { format: TemplateFormat::Yaml, text: format!("env:\n  note: {token}\n") };
        let request = EngineRequest { template: Some(template), ..EngineRequest::default() };
        let stored = request.redacted(&Redactor::of_shapes());
        assert_eq!(stored.template.unwrap().text, "env:\n  note: [redacted:github-token]\n");
    }
}
