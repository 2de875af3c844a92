//! What the engines of a run give of what it requests: known before anything is read, also of what a retry would request.

use std::collections::{BTreeMap, BTreeSet};

use trackway_formats::runfile::{Plan, PlanEntry, ResourcesChange, ResourcesSection};
use trackway_launch::{Accelerators, Offer, Refusal};

use crate::Context;
use crate::error::{AppError, ErrorKind};
use crate::run::job::unmet;

/// What the engines of a run do not give of it.
#[derive(Debug, Default)]
pub struct Offered {
    /// The engine of its first attempt: a name of the settings, or a kind.
    pub engine: String,
    /// What is refused, with the key of the run file: of `[resources]` and `[launch]`, then of entries of retry plans.
    pub refused: Vec<Refusal>,
    /// What is not compared with what the engine has, and why.
    pub unknown: Vec<String>,
    /// The keys that were compared with what an engine has, by the engine: entries of retry plans may have another one.
    pub compared: BTreeMap<String, BTreeSet<&'static str>>,
}

/// Compares what a plan and its retries request with what their engines have now.
///
/// # Errors
/// [`ErrorKind::Usage`] for an engine that the settings do not have; [`ErrorKind::Unavailable`] when one cannot be looked at now.
pub fn offered(context: &Context, plan: &Plan) -> Result<Offered, AppError> {
    let engine = plan.launch.engine_with(&PlanEntry::default());
    let mut offers = Offers { context, found: BTreeMap::new() };
    let offer = offers.of(engine)?;
    let (refused, unknown, compared) = unmet(plan, &PlanEntry::default(), offer);
    let unknown = unknown.or_else(|| without_count(plan, offer));
    let of_run: BTreeSet<String> = refused.iter().map(Refusal::reason).collect();
    let mut offered = Offered {
        engine: engine.to_owned(),
        refused,
        unknown: unknown.into_iter().collect(),
        compared: BTreeMap::new(),
    };
    offered.compare(engine, compared);
    for (reason, rule) in &plan.retry.rules {
        let (mut in_force, mut known) = (PlanEntry::default(), of_run.clone());
        for (index, entry) in rule.plan.iter().enumerate() {
            in_force.add(entry);
            let engine = plan.launch.engine_with(&in_force);
            let (refused, _, compared) = unmet(plan, &in_force, offers.of(engine)?);
            offered.compare(engine, compared);
            let new = refused.into_iter().filter(|refusal| known.insert(refusal.reason()));
            let entry_path = format!("retry.{reason}.plan[{index}]");
            offered.refused.extend(new.map(|refusal| of_entry(refusal, entry, &entry_path)));
        }
    }
    Ok(offered)
}

/// What is said of GPUs without a number of them: they are not requested, whatever the machine has.
fn without_count(plan: &Plan, offer: &Offer) -> Option<String> {
    let ResourcesSection { gpus: 0, gpu: Some(kind), .. } = &plan.resources else { return None };
    let place = offer.place();
    let said = match offer.gpus {
        Accelerators::UpTo(0) => {
            format!("{place} has no GPU; the run is launched all the same, as `resources.gpus` requests none")
        }
        Accelerators::UpTo(has) => {
            format!("of the GPUs of {place} ({has}) none counts as requested, as `resources.gpus` is not set")
        }
        _ => "no GPU is requested, as `resources.gpus` is not set".to_owned(),
    };
    Some(format!("`resources.gpu` = {kind}: {said}"))
}

/// The GPUs that a plan requests, at most as many as a machine of its engine has; all of them where that is not known.
///
/// # Errors
/// As for [`offered`].
pub fn gpus_at_hand(context: &Context, plan: &Plan) -> Result<u32, AppError> {
    let offer = context.offer_of(plan.launch.engine_with(&PlanEntry::default()))?;
    Ok(match offer.gpus {
        Accelerators::UpTo(has) => plan.resources.gpus.min(has),
        _ => plan.resources.gpus,
    })
}

/// Each engine is looked at once.
struct Offers<'c> {
    context: &'c Context,
    found: BTreeMap<String, Offer>,
}

impl Offers<'_> {
    fn of(&mut self, engine: &str) -> Result<&Offer, AppError> {
        if !self.found.contains_key(engine) {
            self.found.insert(engine.to_owned(), self.context.offer_of(engine)?);
        }
        Ok(&self.found[engine])
    }
}

/// A refusal with the key of the entry that requests it; of what only another launcher refuses, the key of the run file with that entry.
fn of_entry(refusal: Refusal, entry: &PlanEntry, entry_path: &str) -> Refusal {
    let ResourcesChange { gpus, gpu: _, cpus, memory_bytes } = &entry.resources;
    let below = match refusal.key.as_str() {
        "launch.exclude_hosts" if !entry.placement.is_empty() => Some("placement.exclude_hosts"),
        "resources.gpus" if gpus.is_some() => Some("resources.gpus"),
        "resources.cpus" if cpus.is_some() => Some("resources.cpus"),
        "resources.memory" if memory_bytes.is_some() => Some("resources.memory"),
        _ => None,
    };
    match below {
        Some(key) => Refusal { key: format!("{entry_path}.{key}"), ..refusal },
        None => Refusal { why: format!("{} (`{entry_path}.launcher`)", refusal.why), ..refusal },
    }
}

impl Offered {
    /// Adds keys that were compared with what an engine has.
    fn compare(&mut self, engine: &str, keys: Vec<&'static str>) {
        if !keys.is_empty() {
            self.compared.entry(engine.to_owned()).or_default().extend(keys);
        }
    }

    /// Refuses a run of which something is not given: a line for each key.
    ///
    /// # Errors
    /// [`ErrorKind::Blocked`] where anything is refused.
    pub(super) fn refuse(&self) -> Result<(), AppError> {
        let message = match self.refused.as_slice() {
            [] => return Ok(()),
            [refusal] => format!("not launched: {refusal}"),
            several => {
                let lines: String = several.iter().map(|refusal| format!("\n  {refusal}")).collect();
                format!("not launched: the engine `{}` does not give what is requested:{lines}", self.engine)
            }
        };
        let hint = "no `--skip` and no severity changes that: change the keys that are named, or launch it where they are given (`launch.engine`)";
        Err(AppError::new(ErrorKind::Blocked, message).hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use trackway_formats::runfile::PlacementChange;
    use trackway_launch::{Capacity, ContainerStart};

    use super::*;
    use crate::testing::{NAMED_ENGINE, SETTLES, World};

    fn refusal(key: &str) -> Refusal {
        let [wanted, why, instead] = ["2", "`here` has 1", "request less"].map(str::to_owned);
        Refusal { key: key.into(), wanted, why, instead }
    }

    /// Proves that a refusal names the key of the entry that requests it, and the launcher of an entry where that
    /// refuses what the run file requests.
    #[test]
    fn a_refusal_has_the_path_of_its_entry() {
        let more = ResourcesChange { gpus: Some(2), ..ResourcesChange::default() };
        let placement = PlacementChange { exclude_hosts: vec!["here".into()] };
        let entry = PlanEntry { resources: more, placement, ..PlanEntry::default() };
        let shown =
            |entry: &PlanEntry, key: &str| of_entry(refusal(key), entry, "retry.host_oom.plan[1]").reason();
        for (key, expected) in [
            ("resources.gpus", "`retry.host_oom.plan[1].resources.gpus` = 2: `here` has 1"),
            ("launch.exclude_hosts", "`retry.host_oom.plan[1].placement.exclude_hosts` = 2: `here` has 1"),
            ("launch.queue", "`launch.queue` = 2: `here` has 1 (`retry.host_oom.plan[1].launcher`)"),
            ("resources.nodes", "`resources.nodes` = 2: `here` has 1 (`retry.host_oom.plan[1].launcher`)"),
        ] {
            assert_eq!(shown(&entry, key), expected);
        }
        let only_launcher = shown(&PlanEntry::default(), "resources.gpus");
        assert_eq!(only_launcher, "`resources.gpus` = 2: `here` has 1 (`retry.host_oom.plan[1].launcher`)");
    }

    /// Proves that a kind of GPUs without their number is said to request none, with what the machine has, and
    /// that nothing is said with a number, or without them.
    #[test]
    fn gpus_without_a_number_are_said_to_be_none() {
        let said = |more: &str, gpus: Accelerators| {
            let text = format!("[run]\nname = \"a\"\ncommand = [\"true\"]\n[resources]\n{more}");
            let plan = trackway_formats::runfile::parse(&text, "f", &[]).unwrap().plan;
            without_count(&plan, &offer_with(gpus))
        };
        let alone = "gpu = \"a100\"\n";
        let none = said(alone, Accelerators::UpTo(0)).unwrap();
        assert!(none.starts_with("`resources.gpu` = a100: `here` has no GPU; the run is launched"), "{none}");
        let has = said(alone, Accelerators::UpTo(2)).unwrap();
        assert!(has.contains("of the GPUs of `here` (2) none counts as requested"), "{has}");
        let not_known = said(alone, Accelerators::Unlimited).unwrap();
        assert!(not_known.starts_with("`resources.gpu` = a100: no GPU is requested"), "{not_known}");
        assert_eq!(said("gpus = 1\ngpu = \"a100\"\n", Accelerators::UpTo(0)), None);
        assert_eq!(said("cpus = 1\n", Accelerators::UpTo(0)), None);
    }

    fn offer_with(gpus: Accelerators) -> Offer {
        Offer {
            launcher: "local",
            engine: None,
            host: Some("here".into()),
            cpus: Capacity::Unknown,
            memory_bytes: Capacity::Unknown,
            disk_bytes: Capacity::Unknown,
            gpus,
            refused: Vec::new(),
            isolates: true,
            container: ContainerStart::ByCommand,
        }
    }

    /// Proves that what an entry of a retry plan requests of another engine is compared with what that one has.
    #[test]
    fn each_engine_has_its_own_keys() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let plan = |more: &str| {
            let text = format!(
                "[run]\nname = \"a\"\ncommand = [\"true\"]\n{more}[launch]\nengine = \"{NAMED_ENGINE}\"\n\
                 [retry]\nhost_oom = {{ plan = [{{ launcher = \"local\", resources = {{ memory = \"1GiB\" }} }}] }}\n"
            );
            trackway_formats::runfile::parse(&text, "f", &[]).unwrap().plan
        };
        let compared = |more: &str| offered(&context, &plan(more)).unwrap().compared;
        let keys = BTreeSet::from(["resources.memory"]);
        assert_eq!(compared(""), BTreeMap::from([("local".to_owned(), keys.clone())]));
        let of_both = compared("[resources]\nmemory = \"2GiB\"\n");
        assert_eq!(
            of_both,
            BTreeMap::from([NAMED_ENGINE, "local"].map(|name| (name.to_owned(), keys.clone())))
        );
    }

    /// Proves that one refusal is one line, and that of several each has a line.
    #[test]
    fn each_refusal_is_a_line() {
        let refused = |keys: &[&str]| {
            let refused = keys.iter().map(|key| refusal(key)).collect();
            let offered = Offered { engine: "local".into(), refused, ..Offered::default() };
            offered.refuse().map_err(|error| (error.kind, error.to_string()))
        };
        assert_eq!(refused(&[]), Ok(()));
        let one = "not launched: `resources.gpus` = 2: `here` has 1; request less";
        assert_eq!(refused(&["resources.gpus"]), Err((ErrorKind::Blocked, one.into())));
        let (_, two) = refused(&["resources.gpus", "launch.queue"]).unwrap_err();
        let lines: Vec<&str> = two.lines().collect();
        assert_eq!(lines[0], "not launched: the engine `local` does not give what is requested:");
        assert_eq!(lines[1], "  `resources.gpus` = 2: `here` has 1; request less");
        assert_eq!(lines.len(), 3, "{two}");
    }
}
