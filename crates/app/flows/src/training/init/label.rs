//! Which column of a table a script predicts, as far as its command and its text show it. Pure.

use trackway_formats::arguments::parameters_of;

use super::literals::literals;

/// Options of a command whose value is the column.
const OPTIONS: [&str; 8] = [
    "label", "label_column", "label_col", "label_name", "target", "target_column", "target_col",
    "target_name",
];
/// Words in the name of a variable that holds the labels or the name of their column.
const VARIABLES: [&str; 5] = ["label", "labels", "target", "targets", "y"];
/// Calls that separate the column from the others.
const SEPARATING: [&str; 2] = [".pop(", ".drop("];
/// Columns that are the label by their names.
const COLUMNS: [&str; 5] = ["label", "labels", "target", "class", "y"];

/// The column to predict, if exactly one is shown: by an option of the command, else by what is assigned in the script,
/// else by a call that separates it, else by its name.
pub(super) fn label_of(columns: &[String], command: &[String], script: &str) -> Option<String> {
    let is_column = |name: &str| columns.iter().any(|column| column == name);
    let options = parameters_of(command);
    let of_command = options.iter().filter(|(name, _)| OPTIONS.contains(&name.as_str()));
    let assigned = || of_lines(script, is_column, is_assigned_to_labels);
    let separated =
        || of_lines(script, is_column, |before| SEPARATING.iter().any(|call| before.contains(call)));
    let by_name = || columns.iter().filter(|column| COLUMNS.contains(&column.to_lowercase().as_str()));
    only(of_command.map(|(_, value)| value.as_str()).filter(|value| is_column(value)))
        .or_else(|| only(assigned()))
        .or_else(|| only(separated()))
        .or_else(|| only(by_name().map(String::as_str)))
        .map(str::to_owned)
}

/// The strings in a script that are columns, behind text of their line that `shows` it.
fn of_lines<'s>(
    script: &'s str,
    is_column: impl Fn(&str) -> bool,
    shows: impl Fn(&str) -> bool,
) -> impl Iterator<Item = &'s str> {
    let of_line = move |line: &'s str| {
        let found = literals(line).filter(|(before, literal)| is_column(literal) && shows(before));
        found.map(|(_, literal)| literal).collect::<Vec<_>>()
    };
    script.lines().flat_map(of_line)
}

/// Whether the text before a string ends in an assignment to, or an argument of, a name with one of the words: `y_train = rows[`,
/// `fit(label_column=`.
fn is_assigned_to_labels(before: &str) -> bool {
    let Some((left, _)) = before.rsplit_once('=') else { return false };
    let left = left.trim_end();
    let name =
        left.rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default();
    let others = left[..left.len() - name.len()].trim_end();
    // Of `x, y = table["a"], table["b"]` it is not known which string is whose.
    let is_of_several = others.ends_with(',') && !others.contains('(');
    !is_of_several && name.to_lowercase().split('_').any(|word| VARIABLES.contains(&word))
}

/// The only one of some names, however often it occurs.
fn only<'n>(names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut names = names;
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(command: &str, script: &str) -> Option<String> {
        let columns = ["age", "hours", "income", "class"].map(str::to_owned);
        let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
        label_of(&columns, &command, script)
    }

    /// Proves every way in which a script shows its label, and which of two counts.
    #[test]
    fn a_script_shows_its_label() {
        for script in [
            "LABEL = \"income\"",
            "y = table['income']",
            "y_train = train[\"income\"].map(code)\ny_test = test[\"income\"]",
            "model.fit(train, label_column='income')",
            "target=row[ \"income\" ]",
            "y = table.pop('income')",
            "x = table.drop(columns=[\"income\"])",
            "x = table.drop('income', axis=1)",
            "x = table.drop(columns=['income', 'age'])\ny = table['income']",
        ] {
            assert_eq!(label("python train.py", script).as_deref(), Some("income"), "{script}");
        }
        assert_eq!(label("python train.py --target hours", "y = t['income']").as_deref(), Some("hours"));
    }

    /// Proves that a column counts by its name only where nothing else shows one, and that two candidates of one kind,
    /// a comment and a comparison show none.
    #[test]
    fn what_is_not_certain_is_not_the_label() {
        for script in [
            "",
            "# y = table['income']",
            "x = table.drop(columns=['income', 'age'])",
            "if y == 'income': pass",
            "key = row['income']",
            "y = table['income']\ny = table['age']",
            "x, y = table['age'], table.income",
            "y = 'no column'",
        ] {
            assert_eq!(label("python train.py", script).as_deref(), Some("class"), "{script}");
        }
        assert_eq!(label_of(&["a".to_owned()], &[], "y = t['b']"), None);
    }
}
