//! From a regular expression, the literals of which every match holds at least one: the prefilter.

use regex_syntax::hir::{Class, Hir, HirKind};

/// More literals than this for one part of an expression are no prefilter.
const MAX_LITERALS: usize = 96;
/// Longer literals are cut to a part of this length: it already distinguishes lines, and keeps the automaton small.
const MAX_LITERAL_BYTES: usize = 8;
/// What healthy logs are full of. A literal found here would make every line a candidate.
const HEALTHY: &str = " step 10/100 [00:10<01:00, 1.2it/s] epoch 3 iteration 120 global step batch size 32 train loss: 0.12 \
    training loss 0.1 val_loss 0.2 valid loss=1.0 test accuracy acc lr=0.001 learning rate grad_norm gradient norm time 0.4s \
    elapsed time per second (ms) samples tokens/s throughput memory mb gpu cuda model data device rank0 rank 0 worker \
    2026-01-01 10:00:00,123 info debug warning saving checkpoint to /path/model.pt loading dataset the of in is was to for \
    with from on at by a an and has have not it this that be are or no if eval metrics f1 auc mse mae rmse error= reward \
    process python file line log json true false none null started done finished best node job run state status running ";

/// Lower-case literals of which at least one is in every text that matches, or `None` when there is no such set.
pub(crate) fn required(pattern: &str) -> Option<Vec<Vec<u8>>> {
    let hir = regex_syntax::ParserBuilder::new()
        .case_insensitive(true)
        .unicode(false)
        .utf8(false)
        .build()
        .parse(pattern)
        .ok()?;
    let mut literals = any_of(&hir)?;
    for literal in &mut literals {
        *literal = telling_part(literal).to_vec();
    }
    literals.sort();
    literals.dedup();
    Some(literals)
}

/// A set of which one literal is in every match.
fn any_of(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    if let Some(all) = exactly(hir) {
        return usable(all);
    }
    match hir.kind() {
        HirKind::Capture(capture) => any_of(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => any_of(&repetition.sub),
        HirKind::Alternation(branches) => {
            let sets: Option<Vec<_>> = branches.iter().map(any_of).collect();
            usable(sets?.concat())
        }
        HirKind::Concat(parts) => best_of_concat(parts),
        _ => None,
    }
}

fn best_of_concat(parts: &[Hir]) -> Option<Vec<Vec<u8>>> {
    let mut candidates = Vec::new();
    let mut open: Vec<Vec<u8>> = vec![Vec::new()];
    let mut open_parts: Vec<Hir> = Vec::new();
    for part in parts {
        let joined = exactly(part).and_then(|next| cross(&open, &next));
        if let Some(joined) = joined {
            open = joined;
            open_parts.push(part.clone());
            continue;
        }
        // The parser factors common heads out of branches; joined again they make longer literals.
        if let (HirKind::Alternation(branches), false) = (part.kind(), open_parts.is_empty()) {
            let whole =
                |branch: &Hir| any_of(&Hir::concat(open_parts.iter().chain([branch]).cloned().collect()));
            let sets: Option<Vec<_>> = branches.iter().map(whole).collect();
            candidates.extend(sets.and_then(|sets| usable(sets.concat())));
        }
        open_parts.clear();
        candidates.extend(usable(std::mem::replace(&mut open, vec![Vec::new()])));
        match exactly(part) {
            Some(alone) => {
                open = alone;
                open_parts.push(part.clone());
            }
            None => candidates.extend(any_of(part)),
        }
    }
    candidates.extend(usable(open));
    candidates.into_iter().max_by_key(|set| score(set))
}

/// Every text that matches, when they are few.
fn exactly(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(vec![Vec::new()]),
        HirKind::Literal(literal) => Some(vec![literal.0.to_ascii_lowercase()]),
        HirKind::Class(Class::Bytes(class)) => {
            let mut bytes: Vec<u8> = Vec::new();
            for range in class.ranges() {
                if range.end() - range.start() > 12 {
                    return None;
                }
                bytes.extend((range.start()..=range.end()).map(|byte| byte.to_ascii_lowercase()));
            }
            bytes.sort_unstable();
            bytes.dedup();
            (bytes.len() <= 4).then(|| bytes.into_iter().map(|byte| vec![byte]).collect())
        }
        HirKind::Class(Class::Unicode(_)) => None,
        HirKind::Capture(capture) => exactly(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min == 0 && repetition.max == Some(1) => {
            let mut all = exactly(&repetition.sub)?;
            all.push(Vec::new());
            Some(all)
        }
        HirKind::Repetition(_) => None,
        HirKind::Alternation(branches) => {
            let all = branches.iter().map(exactly).collect::<Option<Vec<_>>>()?.concat();
            (all.len() <= MAX_LITERALS).then_some(all)
        }
        HirKind::Concat(parts) => {
            parts.iter().try_fold(vec![Vec::new()], |all, part| cross(&all, &exactly(part)?))
        }
    }
}

fn cross(heads: &[Vec<u8>], tails: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    if heads.len() * tails.len() > MAX_LITERALS {
        return None;
    }
    Some(
        heads
            .iter()
            .flat_map(|head| tails.iter().map(move |tail| [head.as_slice(), tail].concat()))
            .collect(),
    )
}

fn usable(set: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    (!set.is_empty() && set.iter().all(|literal| literal.len() >= 2)).then_some(set)
}

/// A part of the literal that healthy lines do not hold, if there is one.
fn telling_part(literal: &[u8]) -> &[u8] {
    let mut parts = literal.windows(MAX_LITERAL_BYTES);
    parts.find(|part| !is_common(part)).unwrap_or(&literal[..literal.len().min(MAX_LITERAL_BYTES)])
}

fn is_common(literal: &[u8]) -> bool {
    std::str::from_utf8(literal).is_ok_and(|text| HEALTHY.contains(text))
}

/// Rare, long and few is good, in this order.
fn score(set: &[Vec<u8>]) -> (i64, usize, i64) {
    let common = set.iter().filter(|literal| is_common(literal)).count() as i64;
    let shortest = set.iter().map(Vec::len).min().unwrap_or(0);
    (-common, shortest.min(5), -(set.len() as i64))
}
