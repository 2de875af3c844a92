//! The local modules that Python scripts import and the settings that they name, as far as their texts show it: an
//! evaluator is what it imports, too. What a text does not show (a module whose name is computed) is seen when it is
//! opened ([`super`]).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::python_text::{search_folders, settings_files};

/// At most so many files are read.
const FILES_MAX: usize = 4096;
/// A longer text is data.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// A call that imports the module of a name.
const IMPORT_CALL: &str = "import_module(";

/// An import: `from ..a import b` has the level 2, the module `a` and the name `b`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Import {
    /// Dots before the module: 0 of an absolute import.
    level: usize,
    module: Vec<String>,
    names: Vec<String>,
}

/// What scripts use of the files here. Sorted; without the scripts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LocalFiles {
    pub modules: BTreeSet<PathBuf>,
    /// Files of settings that the scripts or these modules name.
    pub settings: BTreeSet<PathBuf>,
}

/// The files of modules that the scripts import, and those import, from the folders of the scripts, from `folder`, where
/// they are started, from the `searched` folders and from those that a script adds to its search path. Also the
/// settings that these texts name.
pub(super) fn local_files(scripts: &[PathBuf], folder: &Path, searched: &[PathBuf]) -> LocalFiles {
    let mut roots: Vec<PathBuf> =
        scripts.iter().filter_map(|script| Some(script.parent()?.to_owned())).collect();
    roots.extend([folder.to_owned()].into_iter().chain(searched.iter().cloned()));
    let mut found = LocalFiles::default();
    let mut waiting: Vec<PathBuf> = scripts.to_vec();
    while let Some(script) = waiting.pop() {
        let is_text = std::fs::metadata(&script).is_ok_and(|about| about.len() <= FILE_BYTES_MAX);
        let Some(text) = is_text.then(|| std::fs::read_to_string(&script).ok()).flatten() else { continue };
        let added: Vec<PathBuf> = search_folders(&text, &script, folder)
            .into_iter()
            .filter(|added| !roots.contains(added))
            .collect();
        if !added.is_empty() {
            // What was read before may import from these, too.
            roots.extend(added);
            waiting = scripts.iter().chain(&found.modules).cloned().collect();
            continue;
        }
        let beside = script.parent().unwrap_or(folder);
        found.settings.extend(settings_files(&text, &[folder, beside]));
        for import in imports_of(&text) {
            for path in files_of(&import, &script, &roots) {
                let is_new = found.modules.len() < FILES_MAX
                    && !scripts.contains(&path)
                    && found.modules.insert(path.clone());
                waiting.extend(is_new.then_some(path));
            }
        }
    }
    found
}

/// The files that an import may run: those of its packages, its module, and of what it takes from that.
fn files_of(import: &Import, script: &Path, roots: &[PathBuf]) -> Vec<PathBuf> {
    let above = script.ancestors().nth(import.level);
    let bases: Vec<&Path> = match import.level {
        0 => roots.iter().map(PathBuf::as_path).collect(),
        _ => above.into_iter().collect(),
    };
    let mut files = Vec::new();
    for base in bases {
        let mut place = base.to_owned();
        for part in &import.module {
            place.push(part);
            files.extend(module_at(&place));
        }
        files.extend(import.names.iter().filter_map(|name| module_at(&place.join(name))));
        // `from . import a` runs the package itself.
        if import.level > 0 && import.module.is_empty() {
            files.extend(module_at(base));
        }
        if !files.is_empty() {
            break;
        }
    }
    files
}

/// The file of a module or package at this path, without its ending.
fn module_at(place: &Path) -> Option<PathBuf> {
    let mut name = place.file_name()?.to_owned();
    name.push(".py");
    [place.join("__init__.py"), place.with_file_name(name)].into_iter().find(|path| path.is_file())
}

/// The imports of a text, in any of its blocks.
fn imports_of(text: &str) -> Vec<Import> {
    let mut imports: Vec<Import> =
        statements(text).iter().flat_map(|statement| imports_in(statement)).collect();
    for call in text.split(IMPORT_CALL).skip(1) {
        let call = call.trim_start();
        let quote = call.chars().next().filter(|quote| matches!(quote, '"' | '\''));
        let name = quote.and_then(|quote| call[1..].split_once(quote)).map(|(name, _)| name);
        imports.extend(name.map(|name| absolute(name, Vec::new())));
    }
    imports
}

/// Lines that begin with `import` or `from`, without comments, each with the lines that its brackets or a backslash continue it on.
fn statements(text: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let code = line.split('#').next().unwrap_or_default().trim();
        let is_import = code.starts_with("import ") || code.starts_with("from ");
        match statements.last_mut().filter(|_| is_open) {
            Some(statement) => {
                statement.push(' ');
                statement.push_str(code);
            }
            None if is_import => statements.push(code.to_owned()),
            None => continue,
        }
        if let Some(statement) = statements.last_mut() {
            let is_continued = statement.ends_with('\\');
            if is_continued {
                statement.pop();
            }
            is_open = is_continued || statement.contains('(') && !statement.contains(')');
        }
    }
    statements
}

fn imports_in(statement: &str) -> Vec<Import> {
    let first = |part: &str| part.split_whitespace().next().unwrap_or_default().to_owned();
    let parts = |list: &str| -> Vec<String> {
        let list = list.split(';').next().unwrap_or_default();
        let names = list.split(',').map(|part| first(part.trim_matches(['(', ')', ' '])));
        names.filter(|name| !name.is_empty() && name != "*").collect()
    };
    if let Some(modules) = statement.strip_prefix("import ") {
        return parts(modules).iter().map(|module| absolute(module, Vec::new())).collect();
    }
    let Some((module, names)) = statement.strip_prefix("from ").and_then(|rest| rest.split_once(" import"))
    else {
        return Vec::new();
    };
    let module = module.trim();
    let name = module.trim_start_matches('.');
    vec![Import { level: module.len() - name.len(), ..absolute(name, parts(names)) }]
}

fn absolute(module: &str, names: Vec<String>) -> Import {
    let parts = module.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    Import { level: 0, module: parts, names }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that imports of every form are read, in any block and over several lines, and that comments are not.
    #[test]
    fn forms_of_imports() {
        let text = "import os, a.b as c  # import no\nfrom x.y import (one,\n    two as t,\n)\ndef f():\n    from . import near\n    \
                    from ..up import *\nimport \\\n  later\n# import never\nm = importlib.import_module('plug.in')\n";
        let shown: Vec<String> = imports_of(text)
            .into_iter()
            .map(|it| format!("{}{} {}", ".".repeat(it.level), it.module.join("."), it.names.join(",")))
            .collect();
        assert_eq!(shown, ["os ", "a.b ", "x.y one,two", ". near", "..up ", "later ", "plug.in "]);
    }

    /// Proves that local modules are found with what they import themselves, packages and relative imports too, that a loop of
    /// imports ends, and that installed modules and unused files are not among them.
    #[test]
    fn local_modules_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("job/eval.py", "import numpy\nimport scores\nfrom lib.metrics import f1\n"),
            ("job/scores.py", "import eval\nfrom lib import helper\n"),
            ("lib/__init__.py", ""),
            ("lib/metrics.py", "from . import shared\nfrom .shared import x\n"),
            ("lib/helper.py", "import missing\n"),
            ("lib/shared.py", ""),
            ("lib/unused.py", ""),
        ] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
        }
        let found = local_files(&[at("job/eval.py")], folder.path(), &[]);
        assert_eq!(
            below(&found.modules, folder.path()),
            ["job/scores.py", "lib/__init__.py", "lib/helper.py", "lib/metrics.py", "lib/shared.py"]
        );
        assert_eq!(local_files(&[at("absent.py")], folder.path(), &[]), LocalFiles::default());
    }

    /// Proves that a module from a folder that only `PYTHONPATH` or `sys.path` leads to is found, also by a file that
    /// was read before the folder was known, with the settings that it names.
    #[test]
    fn modules_of_other_folders_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("job/eval.py", "import early\nimport adds\nimport given\n"),
            ("job/adds.py", "import sys\nsys.path.insert(0, '../shared')\nimport outer\n"),
            ("job/early.py", "import later\n"),
            ("shared/outer.py", "T = open('thr.yaml').read()\n"),
            ("shared/later.py", ""),
            ("shared/unused.py", ""),
            ("given/given.py", ""),
            ("job/thr.yaml", "0.5"),
        ] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
        }
        let found = local_files(&[at("job/eval.py")], &at("job"), &[at("given")]);
        let modules = ["given/given.py", "job/adds.py", "job/early.py", "shared/later.py", "shared/outer.py"];
        assert_eq!(below(&found.modules, folder.path()), modules);
        assert_eq!(below(&found.settings, folder.path()), ["job/thr.yaml"]);
    }

    fn below(files: &BTreeSet<PathBuf>, folder: &Path) -> Vec<String> {
        files.iter().map(|path| path.strip_prefix(folder).unwrap().to_string_lossy().into_owned()).collect()
    }
}
