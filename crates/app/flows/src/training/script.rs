//! What a training script imports, as far as its text shows it.

use std::io::Read as _;
use std::path::Path;

use trackway_files::open_regular;

/// A script is read this far for what it imports.
pub const SCRIPT_BYTES_MAX: u64 = 1 << 20;

/// Packages with which a script trains in PyTorch.
const TORCH_PACKAGES: [&str; 5] = ["torch", "lightning", "pytorch_lightning", "transformers", "accelerate"];

/// Whether a Python script imports `trackway`, without which it cannot request checkpoints. None: it cannot be read, or is
/// not a Python script.
#[must_use]
pub fn imports_trackway(script: &Path) -> Option<bool> {
    Some(imported_packages(&text_of(script)?).contains(&"trackway"))
}

/// Whether a Python script imports `trackway` and iterates over `.batches(…)`: what a rehearsal repeats.
#[must_use]
pub fn takes_batches(script: &Path) -> bool {
    let Some(text) = text_of(script) else { return false };
    imported_packages(&text).contains(&"trackway") && code_of(&text).any(|code| code.contains(".batches("))
}

/// Whether a Python script compiles its model with `torch.compile`. None: it cannot be read, or does not use PyTorch.
#[must_use]
pub fn compiles(script: &Path) -> Option<bool> {
    const WAYS: [&str; 2] = ["torch.compile(", "torch_compile=True"];
    let text = text_of(script)?;
    let uses_torch = imported_packages(&text).iter().any(|name| TORCH_PACKAGES.contains(name));
    uses_torch.then(|| code_of(&text).any(|code| WAYS.iter().any(|way| code.contains(way))))
}

/// Whether a Python script loads weights that were trained before.
#[must_use]
pub fn loads_weights(script: &Path) -> bool {
    const WAYS: [&str; 3] = ["from_pretrained(", "pretrained=True", "_Weights."];
    text_of(script).is_some_and(|text| code_of(&text).any(|code| WAYS.iter().any(|way| code.contains(way))))
}

/// Lines without comments.
fn code_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.split('#').next())
}

/// The text of a Python script.
fn text_of(script: &Path) -> Option<String> {
    let is_python = script.extension().is_some_and(|extension| extension == "py");
    let mut bytes = Vec::new();
    open_regular(script).ok().filter(|_| is_python)?.take(SCRIPT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The packages that a Python text imports, by their first names.
#[must_use]
pub fn imported_packages(text: &str) -> Vec<&str> {
    let first = |name: &'_ str| name.find(['.', ' ', ';', '#']).unwrap_or(name.len());
    let mut packages = Vec::new();
    for line in text.lines().map(str::trim_start) {
        let names = match (line.strip_prefix("import "), line.strip_prefix("from ")) {
            (Some(names), _) => names,
            (None, Some(names)) => names.split(" import").next().unwrap_or_default(),
            (None, None) => continue,
        };
        packages.extend(names.split(',').map(str::trim).map(|name| &name[..first(name)]));
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only a script that imports Trackway and takes its batches from it is one that a rehearsal can repeat.
    #[test]
    fn batches_of_trackway_show() {
        let folder = tempfile::tempdir().unwrap();
        let takes = |text: &str| {
            std::fs::write(folder.path().join("train.py"), text).unwrap();
            takes_batches(&folder.path().join("train.py"))
        };
        assert!(takes("import trackway\nrun = trackway.attach()\nfor b in run.batches(x):\n    pass\n"));
        assert!(!takes("import trackway\n# for b in run.batches(x)\n"));
        assert!(!takes("for b in run.batches(x):\n    pass\n"));
    }

    /// Proves that `torch.compile` shows in a script of PyTorch, and weights that are loaded in any; a comment shows neither.
    #[test]
    fn compiling_and_trained_weights_show() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.py");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("import torch\nmodel = torch.compile(AutoModel.from_pretrained('x'))\n");
        assert_eq!((compiles(&path), loads_weights(&path)), (Some(true), true));
        write("import torch\n# torch.compile(model), from_pretrained(x)\n");
        assert_eq!((compiles(&path), loads_weights(&path)), (Some(false), false));
        write("import sklearn\n");
        assert_eq!(compiles(&path), None);
    }

    /// Proves that an import shows, and that a comment and a file that cannot be read do not.
    #[test]
    fn an_import_of_trackway_shows() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.py"), "from trackway import attach\n").unwrap();
        std::fs::write(folder.path().join("plain.py"), "import torch  # trackway\n").unwrap();
        assert_eq!(imports_trackway(&folder.path().join("train.py")), Some(true));
        assert_eq!(imports_trackway(&folder.path().join("plain.py")), Some(false));
        assert_eq!(imports_trackway(&folder.path().join("missing.py")), None);
    }
}
