//! Tests over files that are built in memory.

mod build;
mod damage;
mod find;
mod formats;
mod listing;
mod settling;
pub(crate) mod tree;
mod wholeness;

use crate::{Recognised, Tree, recognise};

fn recognised(tree: &Tree, path: &str) -> Recognised {
    recognise(&tree.listing(), tree, path).unwrap_or_else(|| panic!("nothing is recognised at {path}"))
}
