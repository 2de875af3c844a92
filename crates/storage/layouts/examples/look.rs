//! Prints what is found in a folder, one JSON document a line: each checkpoint with its wholeness, then what is unfinished.
//!
//! `cargo run -p trackway-layouts --example look -- FOLDER`

#![allow(clippy::print_stdout, reason = "an example that prints")]

use std::path::Path;

use trackway_layouts::{Folder, find, list, wholeness};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("name a folder")?;
    let listing = list(Path::new(&folder))?;
    let source = Folder::new(&folder);
    let found = find(&listing, &source);
    for checkpoint in &found.checkpoints {
        let whole = wholeness(&listing, &source, checkpoint);
        println!("{}", serde_json::json!({ "checkpoint": checkpoint, "wholeness": whole }));
    }
    for unfinished in &found.unfinished {
        println!("{}", serde_json::json!({ "unfinished": unfinished }));
    }
    Ok(())
}
