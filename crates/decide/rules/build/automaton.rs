//! The trie of all literals, as bytes from which a process makes its automaton: the nodes in the order of their depth.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

/// The trie of these literals, with what each belongs to.
pub(crate) fn as_rust(owners: &BTreeMap<Vec<u8>, Vec<usize>>) -> String {
    let bytes: BTreeSet<u8> = owners.keys().flatten().copied().collect();
    let mut class_of = [0_usize; 256];
    for (index, byte) in bytes.iter().enumerate() {
        class_of[usize::from(*byte)] = index + 1; // 0: in no literal
    }
    let (mut child_counts, mut edges, mut owner_ends, mut all_owners) = (vec![], vec![], vec![], vec![]);
    let mut prefixes = VecDeque::from([Vec::new()]);
    while let Some(prefix) = prefixes.pop_front() {
        let nexts = next_bytes(owners, &prefix);
        child_counts.push(nexts.len());
        all_owners.extend(owners.get(&prefix).into_iter().flatten().copied());
        owner_ends.push(all_owners.len());
        for byte in nexts {
            edges.push(class_of[usize::from(byte)]);
            prefixes.push_back([prefix.as_slice(), &[byte]].concat());
        }
    }
    let longest = owners.keys().map(Vec::len).max().unwrap_or(1);
    let mut text =
        format!("const CLASS_COUNT: usize = {};\nconst LONGEST_BYTES: usize = {longest};\n", bytes.len() + 1);
    for (name, of, values) in [
        ("CLASS_OF", "u8", class_of.as_slice()),
        ("CHILD_COUNTS", "u8", &child_counts),
        ("EDGES", "u8", &edges),
        ("OWNER_ENDS", "u16", &owner_ends),
        ("OWNERS", "u16", &all_owners),
    ] {
        writeln!(text, "static {name}: [{of}; {}] = {values:?};", values.len()).expect("text grows");
    }
    text
}

/// The bytes that follow `prefix` in a literal.
fn next_bytes(owners: &BTreeMap<Vec<u8>, Vec<usize>>, prefix: &[u8]) -> BTreeSet<u8> {
    let from_here = owners.range(prefix.to_vec()..).map(|(literal, _)| literal);
    from_here
        .take_while(|literal| literal.starts_with(prefix))
        .filter_map(|literal| literal.get(prefix.len()).copied())
        .collect()
}
