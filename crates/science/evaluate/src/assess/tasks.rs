//! Whether the rows of an evaluation answer its task set: each task once, with the labels of the set.

use std::collections::HashMap;

use trackway_data::model::{Frame, MISSING_CODE};
pub use trackway_results::assessment::TaskCoverage;

use crate::Columns;
use crate::columns::complete_columns;
use crate::error::Result;
use crate::metrics::rows::values_of;

/// Examples of each kind at most.
pub const TASK_EXAMPLES_MAX: usize = 5;

/// The coverage, and which rows are no answer to a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskMatch {
    /// What was found.
    pub coverage: TaskCoverage,
    /// For each row of the table whether it answers no task, one that was answered before, or one of another label.
    pub not_a_task: Vec<bool>,
}

/// Whether rows could be matched with tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matching {
    /// They were.
    Found(TaskMatch),
    /// The rows cannot be matched with the tasks, and why.
    Impossible(String),
}

/// Matches rows with tasks: by id where both have one, else by their number and their labels. `columns` are those of
/// the rows.
///
/// # Errors
/// The rows lack a column that `columns` name.
pub fn match_tasks(tasks: &Frame, rows: &Frame, columns: &Columns) -> Result<Matching> {
    let of_rows = complete_columns(columns.clone(), rows)?;
    let of_tasks = complete_columns(Columns::default(), tasks)?;
    // Completions, and the documents of a query, are several rows of one task.
    let is_many = of_rows.correct.is_some() || of_rows.query.is_some();
    let id = if of_rows.query.is_some() { &of_rows.query } else { &of_rows.id };
    let same = |own: &Option<String>, usual: Option<String>| {
        own.clone().filter(|name| tasks.index_of(name).is_some()).or(usual)
    };
    let label = |usual: Option<String>| same(&of_rows.label.clone().or(of_rows.reference.clone()), usual);
    let task_labels = label(of_tasks.label.clone().or(of_tasks.reference.clone()));
    let labels = of_rows.label.as_ref().or(of_rows.reference.as_ref()).zip(task_labels);
    let labels = labels.map(|(own, there)| (texts(rows, own), texts(tasks, &there)));
    let ids = id.as_ref().zip(same(id, of_tasks.id.clone()));
    let mut found = match ids {
        Some((own, there)) => {
            let ids = (texts(rows, own), texts(tasks, &there));
            let mut found = by_id(&ids, labels.as_ref(), is_many);
            found.coverage.id = Some(own.clone());
            found
        }
        // As many rows as tasks, or fewer, can be one answer to each.
        None if is_many && rows.rows() > tasks.rows() => {
            return Ok(Matching::Impossible(format!(
                "{} rows and {} tasks have no common column to match them by",
                rows.rows(),
                tasks.rows()
            )));
        }
        None => by_number(rows.rows(), tasks.rows(), labels.as_ref()),
    };
    let TaskCoverage { missing, repeated_tasks, different_labels, .. } = found.coverage;
    found.coverage.tasks = tasks.rows() as u64;
    found.coverage.answered =
        found.coverage.tasks.saturating_sub(missing + repeated_tasks + different_labels);
    Ok(Matching::Found(found))
}

type Texts = Vec<Option<String>>;

/// The text of each cell of a column that is there; whole numbers as such.
fn texts(frame: &Frame, name: &str) -> Texts {
    let Some(index) = frame.index_of(name) else { return vec![None; frame.rows()] };
    let (names, codes) = values_of(&frame.columns()[index]);
    let text = |code: &u32| (*code != MISSING_CODE).then(|| names[*code as usize].clone());
    codes.iter().map(text).collect()
}

/// Numbers are the same whatever their digits.
fn is_same(one: &str, other: &str) -> bool {
    one == other
        || one.parse::<f64>().ok().zip(other.parse::<f64>().ok()).is_some_and(|(one, other)| one == other)
}

fn by_id((own, there): &(Texts, Texts), labels: Option<&(Texts, Texts)>, is_many: bool) -> TaskMatch {
    let mut found = TaskMatch { not_a_task: vec![false; own.len()], ..TaskMatch::default() };
    // For each id its task and the rows that answer it.
    let mut known: HashMap<&str, (usize, u64)> = HashMap::new();
    let mut examples = Examples::default();
    for (task, id) in there.iter().enumerate() {
        let is_new = id.as_deref().is_some_and(|id| known.insert(id, (task, 0)).is_none());
        if !is_new {
            found.coverage.repeated_tasks += 1;
            examples.add(3, format!("the set has the id {} again", shown(id.as_deref())));
        }
    }
    for (row, id) in own.iter().enumerate() {
        let Some((task, answers)) = id.as_deref().and_then(|id| known.get_mut(id)) else {
            found.coverage.extra += 1;
            found.not_a_task[row] = true;
            examples.add(1, format!("id {} is not in the set", shown(id.as_deref())));
            continue;
        };
        *answers += 1;
        if *answers > 1 && !is_many {
            found.coverage.repeated += 1;
            found.not_a_task[row] = true;
            examples.add(2, format!("id {} is answered more than once", shown(id.as_deref())));
            continue;
        }
        let Some((own, there)) = labels else { continue };
        let (own, there) = (own[row].as_deref(), there[*task].as_deref());
        // A task without a label leaves it to the evaluator.
        if there.is_some_and(|there| own.is_none_or(|own| !is_same(own, there))) {
            found.coverage.different_labels += 1;
            found.not_a_task[row] = true;
            let (own, there) = (shown(own), shown(there));
            examples.add(4, format!("id {} has label {own}, in the set {there}", shown(id.as_deref())));
        }
    }
    for id in
        there.iter().flatten().filter(|id| known.get(id.as_str()).is_some_and(|(_, answers)| *answers == 0))
    {
        found.coverage.missing += 1;
        examples.add(0, format!("id {} is not answered", shown(Some(id))));
    }
    found.coverage.examples = examples.in_order();
    found
}

/// Without ids rows are interchangeable: how many of each label there are must be the same.
fn by_number(rows: usize, tasks: usize, labels: Option<&(Texts, Texts)>) -> TaskMatch {
    let mut found = TaskMatch { not_a_task: vec![false; rows], ..TaskMatch::default() };
    found.coverage.missing = tasks.saturating_sub(rows) as u64;
    found.coverage.extra = rows.saturating_sub(tasks) as u64;
    found.not_a_task.iter_mut().skip(tasks).for_each(|not| *not = true);
    let Some((own, there)) = labels.filter(|(_, there)| rows == tasks && there.iter().all(Option::is_some))
    else {
        return found;
    };
    let plain = |label: &Option<String>| {
        let label = label.as_deref().unwrap_or_default();
        label.parse::<f64>().map_or_else(|_| label.to_owned(), |number| number.to_string())
    };
    let mut left: HashMap<String, i64> = HashMap::new();
    there.iter().for_each(|label| *left.entry(plain(label)).or_default() += 1);
    let mut examples = Examples::default();
    for (row, label) in own.iter().enumerate() {
        let left = left.entry(plain(label)).or_default();
        *left -= 1;
        if *left < 0 {
            found.coverage.different_labels += 1;
            found.not_a_task[row] = true;
            examples.add(4, format!("the set has fewer labels {}", shown(label.as_deref())));
        }
    }
    found.coverage.examples = examples.in_order();
    found
}

fn shown(text: Option<&str>) -> String {
    text.map_or_else(|| "(none)".into(), |text| format!("`{text}`"))
}

/// Some of each kind, the kinds in order.
#[derive(Default)]
struct Examples([Vec<String>; 5]);

impl Examples {
    fn add(&mut self, kind: usize, text: String) {
        if self.0[kind].len() < TASK_EXAMPLES_MAX && !self.0[kind].contains(&text) {
            self.0[kind].push(text);
        }
    }

    fn in_order(self) -> Vec<String> {
        self.0.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{frame, numbers, texts as text_column};

    fn found(tasks: &Frame, rows: &Frame) -> TaskCoverage {
        match match_tasks(tasks, rows, &Columns::default()).unwrap() {
            Matching::Found(found) => found.coverage,
            Matching::Impossible(why) => panic!("{why}"),
        }
    }

    fn matched(ids: &[&str], labels: &[&str]) -> TaskCoverage {
        let of = |ids: &[&str], labels: &[&str]| {
            frame(vec![text_column("id", ids.iter().copied()), text_column("label", labels.iter().copied())])
        };
        let tasks = of(&["1", "2", "3"], &["a", "b", "a"]);
        found(&tasks, &of(ids, labels))
    }

    /// Proves that only rows which answer every task once, with its label, are complete, and that what is wrong is
    /// counted and shown.
    #[test]
    fn each_task_once_with_its_label() {
        assert!(matched(&["3", "1", "2"], &["a", "a", "b"]).is_complete());
        let cases: [(&[&str], &[&str], &str); 4] = [
            (&["1", "2"], &["a", "b"], "1 not answered (id `3` is not answered)"),
            (
                &["1", "2", "3", "4"],
                &["a", "b", "a", "a"],
                "1 answered and not in it (id `4` is not in the set)",
            ),
            (
                &["1", "2", "3", "3"],
                &["a", "b", "a", "a"],
                "1 answered again (id `3` is answered more than once)",
            ),
            (
                &["1", "2", "3"],
                &["a", "a", "a"],
                "1 with another label (id `2` has label `a`, in the set `b`)",
            ),
        ];
        for (ids, labels, expected) in cases {
            let found = matched(ids, labels);
            assert!(!found.is_complete());
            assert_eq!(found.sentence(), format!("the task set has 3 tasks: {expected}"));
        }
    }

    /// Proves that without ids the numbers of rows and of each label are compared, in whatever order.
    #[test]
    fn without_ids_numbers_count() {
        let tasks = frame(vec![numbers("label", [1.0, 0.0, 1.0])]);
        let of = |labels: &[f64]| {
            let rows = frame(vec![
                numbers("label", labels.iter().copied()),
                numbers("prediction", labels.iter().copied()),
            ]);
            found(&tasks, &rows)
        };
        assert!(of(&[1.0, 1.0, 0.0]).is_complete());
        assert_eq!(of(&[1.0]).missing, 2);
        assert_eq!(of(&[1.0, 0.0, 1.0, 1.0]).extra, 1);
        assert_eq!(of(&[1.0, 1.0, 1.0]).different_labels, 1);
    }

    /// Proves that several completions of each task without ids are not taken for a whole answer, and that fewer than
    /// tasks are incomplete.
    #[test]
    fn completions_without_ids_cannot_be_matched() {
        let tasks = frame(vec![numbers("label", [1.0, 0.0, 1.0])]);
        let completions = |right: &[f64]| frame(vec![numbers("correct", right.iter().copied())]);
        let many = match_tasks(&tasks, &completions(&[1.0; 9]), &Columns::default()).unwrap();
        assert!(
            matches!(&many, Matching::Impossible(why) if why.contains("9 rows and 3 tasks have no common column")),
            "{many:?}"
        );
        assert_eq!(found(&tasks, &completions(&[1.0, 1.0])).missing, 1);
        assert!(found(&tasks, &completions(&[1.0, 0.0, 1.0])).is_complete());
    }
}
