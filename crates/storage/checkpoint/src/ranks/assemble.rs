//! Whether votes make a checkpoint. Pure.

use std::collections::BTreeMap;

use trackway_formats::checkpoint_manifest::ManifestFile;

use crate::error::named;
use crate::ranks::vote::{Agreed, SaveVote};

/// Votes by rank; an error explains why a file is not a vote.
pub(crate) type SaveVotes = BTreeMap<u32, Result<SaveVote, String>>;

/// The files of the checkpoint, when every rank wrote its files and all agree with `expected`, the vote of rank 0.
///
/// # Errors
/// A sentence that names the ranks because of which there is no checkpoint.
pub(crate) fn assemble(
    expected: &Agreed,
    votes: SaveVotes,
    wait_seconds: f64,
) -> Result<Vec<ManifestFile>, String> {
    // Failures first: one of them ends the wait, and votes of other ranks may be missing then.
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

#[cfg(test)]
mod tests {
    use trackway_core::{AttemptId, SequentialIds};
    use trackway_formats::checkpoint_manifest::Kind;

    use super::*;

    fn agreed() -> Agreed {
        Agreed {
            epoch: 2,
            attempt_id: AttemptId::new(&SequentialIds::default()),
            round: 0,
            world_size: 3,
            step: 10,
            object_prefix: "step-00000010/epoch-0002-00000000000000000000000003".into(),
            cursor_blake3: "c".into(),
            config_sha256: None,
            data_sha256: None,
        }
    }

    fn file(name: &str, rank: Option<u32>) -> ManifestFile {
        ManifestFile { rank, ..ManifestFile::new(name, Kind::Weights, 1, &blake3::hash(b"w")) }
    }

    fn votes() -> SaveVotes {
        let vote = |rank| {
            let files = vec![file(&format!("rank-{rank:04}-w"), Some(rank))];
            (rank, Ok(SaveVote::Wrote { rank, agreed: agreed(), files }))
        };
        (0..3).map(vote).collect()
    }

    /// Three votes of which the one of rank 1 is changed, and what is made of them.
    fn with(change: impl FnOnce(&mut Agreed, &mut Vec<ManifestFile>)) -> Result<Vec<ManifestFile>, String> {
        let mut votes = votes();
        if let Some(Ok(SaveVote::Wrote { agreed, files, .. })) = votes.get_mut(&1) {
            change(agreed, files);
        }
        assemble(&agreed(), votes, 60.0)
    }

    /// Proves that if the vote of any rank, a zombie's included, differs from rank 0's, there is no checkpoint, and
    /// that the reason names the rank.
    #[test]
    fn every_disagreement_is_named() {
        let names: Vec<_> = with(|_, _| {}).unwrap().into_iter().map(|file| file.name).collect();
        assert_eq!(names, ["rank-0000-w", "rank-0001-w", "rank-0002-w"]);
        type Change = fn(&mut Agreed, &mut Vec<ManifestFile>);
        let changes: [(&str, Change); 11] = [
            ("the position in the data", |agreed, _| agreed.cursor_blake3 = "d".into()),
            ("the step", |agreed, _| agreed.step = 11),
            ("the number of ranks", |agreed, _| agreed.world_size = 4),
            ("the config", |agreed, _| agreed.config_sha256 = Some("x".into())),
            ("the data", |agreed, _| agreed.data_sha256 = Some("x".into())),
            ("the attempt", |agreed, _| agreed.epoch = 1),
            ("the attempt", |agreed, _| agreed.round = 1),
            ("the attempt", |agreed, _| agreed.object_prefix.push('x')),
            ("`rank-0002-w` was written by ranks 1 and 2", |_, files| {
                files.push(file("rank-0002-w", Some(1)))
            }),
            ("`rank-0007-w` was written by rank 1 as that of another", |_, files| {
                files.push(file("rank-0007-w", Some(7)));
            }),
            ("`shared` was written by rank 1 as that of another", |_, files| {
                files.push(file("shared", None))
            }),
        ];
        for (expected, change) in changes {
            let why = with(change).unwrap_err();
            assert!(why.contains(expected) && why.contains('1'), "`{why}` does not say `{expected}`");
        }
    }

    /// Proves that failures come before missing votes, and that both name the ranks.
    #[test]
    fn failed_and_missing_votes_are_named() {
        let mut votes = votes();
        votes.remove(&0);
        votes.remove(&2);
        let missing = assemble(&agreed(), votes.clone(), 60.0).unwrap_err();
        assert_eq!(missing, "ranks 0 and 2 did not vote within 60 s");
        votes.insert(2, Err("its checksum does not match".into()));
        votes.insert(1, Ok(SaveVote::Failed { rank: 1, why: "no room".into() }));
        let failed = assemble(&agreed(), votes, 60.0).unwrap_err();
        assert_eq!(
            failed,
            "rank 1 failed: no room; the vote of rank 2 cannot be used: its checksum does not match"
        );
    }
}
