//! Sets of rows as bits, 64 rows a word.

/// Words that hold so many rows.
pub(super) fn words_for(rows: usize) -> usize {
    rows.div_ceil(64)
}

/// A set of the rows for which `holds`.
pub(super) fn bits_of(rows: usize, holds: impl Fn(usize) -> bool) -> Vec<u64> {
    let mut bits = vec![0; words_for(rows)];
    (0..rows).filter(|row| holds(*row)).for_each(|row| bits[row / 64] |= 1 << (row % 64));
    bits
}

/// The rows of both sets, in ascending order.
pub(super) fn rows_of_both<'b>(one: &'b [u64], other: &'b [u64]) -> impl Iterator<Item = usize> + 'b {
    one.iter().zip(other).enumerate().flat_map(|(index, (one, other))| {
        let mut word = one & other;
        std::iter::from_fn(move || {
            let bit = word.trailing_zeros() as usize;
            let found = word != 0;
            word &= word.wrapping_sub(1);
            found.then_some(index * 64 + bit)
        })
    })
}

/// Makes a function that is compiled three times over and runs as the fastest that this processor can: counting bits
/// is nearly all that the search does.
macro_rules! fastest {
    ($(#[$doc:meta])* $name:ident, $plain:ident, ($($argument:ident: $kind:ty),*) -> $answer:ty) => {
        $(#[$doc])*
        pub(super) fn $name($($argument: $kind),*) -> $answer {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq,popcnt")]
                fn widest($($argument: $kind),*) -> $answer {
                    $plain($($argument),*)
                }
                #[target_feature(enable = "avx2,popcnt")]
                fn wide($($argument: $kind),*) -> $answer {
                    $plain($($argument),*)
                }
                if is_x86_feature_detected!("avx512vpopcntdq")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("popcnt")
                {
                    // SAFETY: the processor has just reported these instructions.
                    return unsafe { widest($($argument),*) };
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                    // SAFETY: the processor has just reported these instructions.
                    return unsafe { wide($($argument),*) };
                }
            }
            $plain($($argument),*)
        }
    };
}

fastest!(
    /// The number of rows in both sets.
    count_both, count_both_plain, (one: &[u64], other: &[u64]) -> u32
);

fastest!(
    /// The number of rows that `set` has in common with each of two others.
    count_with_two, count_with_two_plain, (set: &[u64], one: &[u64], other: &[u64]) -> (u32, u32)
);

#[inline(always)]
fn count_both_plain(one: &[u64], other: &[u64]) -> u32 {
    one.iter().zip(other).map(|(one, other)| u64::from((one & other).count_ones())).sum::<u64>() as u32
}

#[inline(always)]
fn count_with_two_plain(set: &[u64], one: &[u64], other: &[u64]) -> (u32, u32) {
    let (mut first, mut second) = (0u64, 0u64);
    for ((set, one), other) in set.iter().zip(one).zip(other) {
        first += u64::from((set & one).count_ones());
        second += u64::from((set & other).count_ones());
    }
    (first as u32, second as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that counts and rows are those of the sets, also where the last word is not full.
    #[test]
    fn counts_and_rows() {
        let threes = bits_of(200, |row| row % 3 == 0);
        let fives = bits_of(200, |row| row % 5 == 0);
        let sevens = bits_of(200, |row| row % 7 == 0);
        assert_eq!(count_both(&threes, &fives), 14);
        assert_eq!(count_with_two(&threes, &fives, &sevens), (14, 10));
        let both: Vec<usize> = rows_of_both(&threes, &fives).collect();
        assert_eq!(both, (0..200).step_by(15).collect::<Vec<_>>());
        assert_eq!(count_both(&[], &[]), 0);
    }
}
