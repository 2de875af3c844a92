//! A state that is in several files, by what was recognised in each: pure decisions.

use std::collections::{BTreeSet, HashMap};

use trackway_layouts::{
    By, Component, Entry, Layout, Part, PartName, Recognised, Root, StepOrigin, Wholeness,
};

/// Files of one state are last written to within so long of each other: ten minutes.
const APART_NS_MAX: i64 = 600_000_000_000;

/// What they are together. `name`: that of the model's file.
pub(crate) fn as_one(name: &str, parts: &[Recognised]) -> Recognised {
    let layout = parts.first().map_or(Layout::Unknown, |model| model.layout);
    let confidence = parts.iter().map(|part| part.confidence).max();
    let confidence = confidence.unwrap_or(trackway_layouts::LayoutConfidence::Guess);
    let mut found = Recognised::new(name, Root::File, layout, confidence);
    let stepped = parts.iter().filter(|part| part.step.is_some());
    if let Some(part) = stepped.min_by_key(|part| part.step_origin) {
        (found.step, found.step_origin) = (part.step, part.step_origin);
    }
    found.data_epoch = parts.iter().find_map(|part| part.data_epoch);
    found.components = parts.iter().flat_map(|part| part.components.iter().copied()).collect();
    // The parameters of a model of one layer have names that say nothing; that of its file does.
    let is_model = |part: &&Recognised| part.layout != Layout::Unknown && part_of(part) == Part::Model;
    if parts.iter().filter(is_model).any(|part| part.components.is_empty()) {
        found.components.insert(Component::Weights);
    }
    found
}

/// Whether nothing in the files contradicts their names: the model's file has weights only, and no other but an average has any.
pub(crate) fn are_of_one_state(parts: &[Recognised]) -> bool {
    parts.iter().all(|part| {
        // What has no names at its top is called weights by its format alone.
        let has_names = !matches!(part.layout, Layout::Safetensors | Layout::Numpy);
        let has_weights = has_names && part.components.contains(&Component::Weights);
        match part_of(part) {
            Part::Model | Part::Average => {
                part.components.iter().all(|it| matches!(it, Component::Weights | Component::TrainerState))
            }
            _ => !has_weights,
        }
    })
}

/// What the file of a part holds, by its name.
pub(crate) fn part_of(part: &Recognised) -> Part {
    PartName::of(&part.path).map_or(Part::Model, |name| name.part)
}

/// Whether they are whole together: each of them, and of one save.
pub(crate) fn wholeness(
    parts: &[Recognised],
    files: &[Entry],
    each: impl Iterator<Item = Wholeness>,
) -> Wholeness {
    let each: Vec<Wholeness> = each.collect();
    let first = |is: fn(&Wholeness) -> bool| each.iter().find(|one| is(one)).cloned();
    first(|one| matches!(one, Wholeness::Torn { .. }))
        .or_else(|| first(|one| matches!(one, Wholeness::Unfinished { .. })))
        .or_else(|| not_of_one_save(parts, files).map(|what| Wholeness::Unfinished { what }))
        .or_else(|| first(|one| matches!(one, Wholeness::CannotTell { .. })))
        .unwrap_or(Wholeness::Whole { by: By::Structure })
}

/// Why the files are of several saves, as while a script writes them again; none if nothing says so.
fn not_of_one_save(parts: &[Recognised], files: &[Entry]) -> Option<String> {
    let said = parts.iter().filter(|part| part.step_origin == Some(StepOrigin::Content));
    let steps: BTreeSet<u64> = said.filter_map(|part| part.step).collect();
    if let (Some(first), Some(last)) = (steps.first(), steps.last())
        && first != last
    {
        return Some(format!("its files are of steps {first} and {last}"));
    }
    let by_time = |file: &&Entry| file.modified_ns;
    let (first, last) = (files.iter().min_by_key(by_time)?, files.iter().max_by_key(by_time)?);
    let apart_ns = last.modified_ns.saturating_sub(first.modified_ns);
    (apart_ns > APART_NS_MAX).then(|| format!("`{}` is of an earlier save than `{}`", first.path, last.path))
}

/// How files are to those of a state that was judged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StateChange {
    /// They are some of these, or all.
    Known,
    /// They are these, and others were added.
    Added,
    /// Some are these, and others were written again.
    Mixed(String),
    /// None is one of these.
    New,
}

/// Compares the files of a state that was judged with those that there are now.
pub(crate) fn compared(before: &[Entry], now: &[Entry]) -> StateChange {
    let state = |file: &Entry| (file.device, file.inode, file.size, file.modified_ns);
    let known: HashMap<&str, &Entry> = before.iter().map(|file| (file.path.as_str(), file)).collect();
    let is_known = |file: &&Entry| known.get(file.path.as_str()).is_some_and(|it| state(it) == state(file));
    match now.iter().find(is_known) {
        None => StateChange::New,
        Some(_) if now.iter().all(|file| is_known(&file)) => StateChange::Known,
        Some(_) if now.iter().filter(is_known).count() == before.len() => StateChange::Added,
        Some(left) => StateChange::Mixed(format!("`{}` of it is that of the save before", left.path)),
    }
}

#[cfg(test)]
mod tests {
    use trackway_layouts::LayoutConfidence;

    use super::*;

    fn part(name: &str, components: &[Component], step: Option<u64>) -> Recognised {
        let mut found = Recognised::new(name, Root::File, Layout::TorchFile, LayoutConfidence::Likely);
        found.components = components.iter().copied().collect();
        (found.step, found.step_origin) = (step, step.map(|_| StepOrigin::Content));
        found
    }

    fn entry(path: &str, modified_ns: i64) -> Entry {
        Entry { path: path.into(), size: 1, modified_ns, inode: 1, device: 1, links: 1 }
    }

    /// Proves that files whose content says another thing than their names are no state together: a complete one beside
    /// an optimizer, and weights where an optimizer should be.
    #[test]
    fn content_may_contradict_the_names() {
        use Component::{Optimizer, Weights};
        let optimizer = part("optim-1.pt", &[Optimizer], None);
        for (model, expected) in [(&[Weights][..], true), (&[][..], true), (&[Weights, Optimizer], false)] {
            let parts = [part("model-1.pt", model, None), optimizer.clone()];
            assert_eq!(are_of_one_state(&parts), expected, "{model:?}");
        }
        let average = part("ema-1.pt", &[Weights], None);
        assert!(are_of_one_state(&[part("model-1.pt", &[Weights], None), average, optimizer]));
        assert!(!are_of_one_state(&[part("model-1.pt", &[], None), part("optim-1.pt", &[Weights], None)]));
        let mut tensors = part("optim-1.safetensors", &[Weights], None);
        tensors.layout = Layout::Safetensors;
        assert!(are_of_one_state(&[part("model-1.safetensors", &[Weights], None), tensors]));
    }

    /// Proves that they are whole only if each is and they are of one save, and together have the step and the components of each.
    #[test]
    fn all_are_whole_or_none_is() {
        use Component::{Optimizer, Weights};
        let files = [entry("model.pt", 0), entry("optim.pt", 5)];
        let parts = |step| [part("model.pt", &[Weights], Some(20)), part("optim.pt", &[Optimizer], step)];
        let whole = || Wholeness::Whole { by: By::Structure };
        let torn = || Wholeness::Torn { file: "optim.pt".into(), what: "it ends early".into() };
        let judged = |step, files: &[Entry], second: Wholeness| {
            wholeness(&parts(step), files, [whole(), second].into_iter())
        };
        assert_eq!(judged(None, &files, whole()), whole());
        assert_eq!(judged(None, &files, torn()), torn());
        let says = |found: Wholeness, text: &str| matches!(found, Wholeness::Unfinished { what } if what.contains(text));
        assert!(says(judged(Some(10), &files, whole()), "of steps 10 and 20"));
        let late = [entry("model.pt", 0), entry("optim.pt", APART_NS_MAX + 1)];
        assert!(says(judged(None, &late, whole()), "`model.pt` is of an earlier save"));
        let one = as_one("model.pt", &parts(None));
        assert_eq!((one.step, one.components), (Some(20), [Weights, Optimizer].into()));
    }

    /// Proves that a file which alone did not change is of the save before, and that what is left or was added is not.
    #[test]
    fn what_was_not_written_again_is_found() {
        let before = [entry("model.pt", 1), entry("optim.pt", 2)];
        let found = |now: &[Entry]| compared(&before, now);
        assert_eq!(found(&before), StateChange::Known);
        assert_eq!(found(&before[..1]), StateChange::Known, "the other was deleted");
        let mixed = found(&[entry("model.pt", 7), entry("optim.pt", 2)]);
        assert!(matches!(mixed, StateChange::Mixed(what) if what.contains("optim")));
        assert_eq!(found(&[entry("model.pt", 7), entry("optim.pt", 8)]), StateChange::New);
        assert_eq!(found(&[before[0].clone(), before[1].clone(), entry("rng.pt", 9)]), StateChange::Added);
        assert_eq!(compared(&[], &before), StateChange::New);
    }
}
