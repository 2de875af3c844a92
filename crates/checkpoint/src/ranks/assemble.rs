//! Whether votes make a checkpoint. Pure.

use std::collections::BTreeMap;

use trackway_formats::checkpoint_manifest::ManifestFile;

use crate::ranks::error::named;
use crate::ranks::vote::{Agreed, SaveVote};

/// Votes by rank; an error says why what stands there is none.
pub(crate) type SaveVotes = BTreeMap<u32, Result<SaveVote, String>>;

/// The files of the checkpoint, when every rank wrote its own and all agree with `expected`, which is what rank 0 says.
///
/// # Errors
/// A sentence that names the ranks because of which there is no checkpoint.
pub(crate) fn assemble(
    expected: &Agreed,
    votes: SaveVotes,
    wait_seconds: f64,
) -> Result<Vec<ManifestFile>, String> {
    check_failures(&votes)?;
    let missing: Vec<u32> = (0..expected.world_size).filter(|rank| !votes.contains_key(rank)).collect();
    if !missing.is_empty() {
        return Err(format!("{} did not vote within {wait_seconds} s", named(&missing)));
    }
    let wrote = votes.into_values().filter_map(|vote| match vote {
        Ok(SaveVote::Wrote { rank, agreed, files }) => Some((rank, agreed, files)),
        _ => None,
    });
    let wrote: Vec<_> = wrote.collect();
    check_agreement(expected, &wrote)?;
    let mut owners = BTreeMap::new();
    let mut files = Vec::new();
    for file in wrote.into_iter().flat_map(|(rank, _, files)| files.into_iter().map(move |file| (rank, file)))
    {
        let (rank, file) = file;
        if let Some(other) = owners.insert(file.name.clone(), rank) {
            return Err(format!("`{}` was written by {}", file.name, named(&[other, rank])));
        }
        if file.rank.unwrap_or(0) != rank {
            return Err(format!("`{}` was written by rank {rank} as that of another", file.name));
        }
        files.push(file);
    }
    files.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(files)
}

fn check_failures(votes: &SaveVotes) -> Result<(), String> {
    let failure = |(rank, vote): (&u32, &Result<SaveVote, String>)| match vote {
        Ok(SaveVote::Wrote { .. }) => None,
        Ok(SaveVote::Failed { why, .. }) => Some(format!("rank {rank} failed: {why}")),
        Err(why) => Some(format!("the vote of rank {rank} cannot be used: {why}")),
    };
    let failures: Vec<_> = votes.iter().filter_map(failure).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

type Wrote = (u32, Agreed, Vec<ManifestFile>);

fn check_agreement(expected: &Agreed, votes: &[Wrote]) -> Result<(), String> {
    type Same = fn(&Agreed, &Agreed) -> bool;
    let fields: [(&str, Same); 6] = [
        ("the position in the data", |one, other| one.cursor_blake3 == other.cursor_blake3),
        ("the step", |one, other| one.step == other.step),
        ("the number of ranks", |one, other| one.world_size == other.world_size),
        ("the config", |one, other| one.config_sha256 == other.config_sha256),
        ("the data", |one, other| one.data_sha256 == other.data_sha256),
        ("the attempt and the prefix", |one, other| {
            let of = |it: &Agreed| (it.epoch, it.attempt_id, it.round, it.object_prefix.clone());
            of(one) == of(other)
        }),
    ];
    let complaint = |(field, same): &(&str, Same)| {
        let ranks: Vec<u32> =
            votes.iter().filter(|(_, agreed, _)| !same(expected, agreed)).map(|vote| vote.0).collect();
        (!ranks.is_empty()).then(|| format!("{} and rank 0 disagree about {field}", named(&ranks)))
    };
    let complaints: Vec<_> = fields.iter().filter_map(complaint).collect();
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
}
