//! Whether the launcher gives what the run file requests of it: what `trackway run` would refuse, with the same keys and reasons.

use std::collections::BTreeSet;

use trackway_core::checks::{CheckResult, Finding, NoRows, Severity};
use trackway_core::text::quoted_list;
use trackway_engine::error::AppError;
use trackway_engine::run::{Offered, offered};
use trackway_formats::runfile::{LaunchSection, Plan, PlanEntry, ResourcesSection};

use super::{Looker, Work};
use crate::training::preflight::facts::{OFFER, PlanFacts};

/// Whether a launcher could refuse something of the run.
pub fn has_request(facts: &PlanFacts<'_>) -> Result<(), String> {
    match requests(facts.plan) {
        true => Ok(()),
        false => Err("the run file requests nothing of its launcher".into()),
    }
}

fn requests(plan: &Plan) -> bool {
    let Plan { resources, launch, container, retry, .. } = plan;
    // A price is only recorded.
    let recorded =
        ResourcesSection { usd_per_gpu_hour: resources.usd_per_gpu_hour, ..ResourcesSection::default() };
    let by_entry = |entry: &PlanEntry| {
        !entry.resources.is_empty() || !entry.placement.is_empty() || entry.launcher.is_some()
    };
    *resources != recorded
        || *launch != LaunchSection::default()
        || container.is_some()
        || retry.rules.values().flat_map(|rule| &rule.plan).any(by_entry)
}

/// Compares the requests with what the launcher has now.
pub fn offer(work: &Work<'_>, _: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    Ok(vec![answer(&offered(work.context, &work.job.plan)?)])
}

fn answer(offered: &Offered) -> CheckResult {
    let refused = offered.refused.iter().map(|refusal| {
        let finding = Finding::new(OFFER, Severity::Block, refusal.reason());
        finding.about(refusal.key.as_str()).action(refusal.instead.as_str())
    });
    let unknown = offered.unknown.iter().map(|text| Finding::new(OFFER, Severity::Note, text.as_str()));
    CheckResult::about(OFFER, NoRows::Settings, refused.chain(unknown).collect()).because(why(offered))
}

/// What is known of the offer: what was compared, and nothing of what is only recorded or left to the engine.
fn why(offered: &Offered) -> String {
    let engine = &offered.engine;
    if !offered.refused.is_empty() {
        return format!("the engine `{engine}` does not give what is requested");
    }
    if offered.compared.is_empty() {
        return format!(
            "the engine `{engine}` refuses nothing of what is requested, and nothing of it was compared with what it has"
        );
    }
    let has = |(engine, keys): (&String, &BTreeSet<&'static str>)| {
        let keys: Vec<&str> = keys.iter().copied().collect();
        format!("the engine `{engine}` has what was compared: {}", quoted_list(&keys))
    };
    offered.compared.iter().map(has).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use trackway_core::checks::Verdict;
    use trackway_formats::runfile::parse;
    use trackway_launch::Refusal;

    use super::*;

    /// Proves that each refusal blocks with its key and what to do instead, and that what is not known is a note.
    #[test]
    fn a_refusal_blocks() {
        let refusal = Refusal {
            key: "launch.queue".into(),
            wanted: "gpu".into(),
            why: "it starts attempts at once".into(),
            instead: "leave it out".into(),
        };
        let unknown = vec!["whether `here` has as many is not known".to_owned()];
        let engine = "local".to_owned();
        let refused = answer(&Offered { engine, refused: vec![refusal], unknown, ..Offered::default() });
        assert_eq!((refused.verdict, refused.findings.len()), (Verdict::Block, 2));
        let finding = &refused.findings[0];
        assert_eq!(finding.message, "`launch.queue` = gpu: it starts attempts at once");
        assert_eq!(
            (finding.column.as_deref(), finding.action.as_deref()),
            (Some("launch.queue"), Some("leave it out"))
        );
        let unknown = Offered {
            refused: Vec::new(),
            unknown: refused.findings.iter().map(|it| it.message.clone()).collect(),
            ..Offered::default()
        };
        assert_eq!(answer(&unknown).verdict, Verdict::Pass);
    }

    /// Proves that the reason of a check that blocks does not say that all is given, and that of one that passes names
    /// what was compared and nothing else.
    #[test]
    fn a_reason_names_what_was_compared() {
        let why = |refused: Vec<Refusal>, compared: &[(&str, &[&'static str])]| {
            let keys = |(engine, keys): &(&str, &[&'static str])| {
                ((*engine).to_owned(), keys.iter().copied().collect::<BTreeSet<_>>())
            };
            let compared = compared.iter().map(keys).collect();
            answer(&Offered { engine: "local".into(), refused, compared, ..Offered::default() }).why.unwrap()
        };
        let text = || "x".to_owned();
        let refusal = Refusal { key: text(), wanted: text(), why: text(), instead: text() };
        let refused = why(vec![refusal], &[("local", &["resources.cpus"])]);
        assert_eq!(refused, "the engine `local` does not give what is requested");
        let given = why(Vec::new(), &[("local", &["resources.cpus", "resources.gpus"])]);
        assert_eq!(given, "the engine `local` has what was compared: `resources.cpus`, `resources.gpus`");
        let of_both = why(Vec::new(), &[("box", &["resources.gpus"]), ("local", &["resources.cpus"])]);
        assert_eq!(
            of_both,
            "the engine `box` has what was compared: `resources.gpus`; \
             the engine `local` has what was compared: `resources.cpus`"
        );
        assert!(why(Vec::new(), &[]).ends_with("nothing of it was compared with what it has"));
    }

    /// Proves which run files request something of a launcher: also in an entry of a retry plan, and not by what is only recorded.
    #[test]
    fn only_requests_are_compared() {
        let is_compared = |more: &str| {
            let text = format!("[run]\nname = \"a\"\ncommand = [\"true\"]\n{more}");
            requests(&parse(&text, "f", &[]).unwrap().plan)
        };
        for more in [
            "[resources]\ngpus = 1\n",
            "[resources]\ngpu = \"a100\"\n",
            "[launch]\nengine = \"box\"\n",
            "[retry]\nhost_oom = { plan = [{ resources = { memory = \"1GiB\" } }] }\n",
        ] {
            assert!(is_compared(more), "{more}");
        }
        assert!(!is_compared("[resources]\nusd_per_gpu_hour = 2.0\n"));
        assert!(!is_compared("[retry]\ndevice_oom = { plan = [{ set = { A = \"1\" } }] }\n"));
    }
}
