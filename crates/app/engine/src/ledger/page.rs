//! Pages of lists: the use cases that list give a part at a time, in an order that new entries do not change.

/// Entries of a page where no other number is given.
pub const PAGE_ROWS: u32 = 20;
/// The most entries of a page.
pub const PAGE_ROWS_MAX: u32 = 10_000;

/// Which part of a list is wanted; `K` names an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page<K> {
    /// Only what comes after this entry in the order: [`Paged::next`] of the page before.
    pub after: Option<K>,
    /// At most so many entries, from 1 to [`PAGE_ROWS_MAX`].
    pub limit: u32,
}

impl<K> Page<K> {
    /// How many entries it has at most.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.limit.clamp(1, PAGE_ROWS_MAX)
    }
}

impl<K> Default for Page<K> {
    fn default() -> Self {
        Self { after: None, limit: PAGE_ROWS }
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paged<T, K> {
    /// In the order of the list.
    pub entries: Vec<T>,
    /// The last of the entries, where more come after it: [`Page::after`] of the next page.
    pub next: Option<K>,
    /// How many come after these.
    pub more_count: u64,
}

impl<T, K> Paged<T, K> {
    /// These entries, after which so many more come.
    pub fn new(entries: Vec<T>, more_count: u64, key: impl Fn(&T) -> K) -> Self {
        let next = entries.last().filter(|_| more_count > 0).map(key);
        Self { entries, next, more_count }
    }

    /// The first page of entries that were read whole, in the order of the list.
    pub fn of_all(mut entries: Vec<T>, rows: u32, key: impl Fn(&T) -> K) -> Self {
        let all_count = entries.len();
        entries.truncate(rows as usize);
        let more_count = (all_count - entries.len()) as u64;
        Self::new(entries, more_count, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that pages that follow `next` have every entry once and in order, that the last one has no next, and that a limit is
    /// bounded from both sides.
    #[test]
    fn pages_are_the_list() {
        let all: Vec<u32> = (1..=7).collect();
        let (mut seen, mut page) = (Vec::new(), Page { after: None, limit: 3 });
        loop {
            let left = all.iter().copied().filter(|number| page.after.is_none_or(|after| *number > after));
            let part = Paged::of_all(left.collect(), page.rows(), |number| *number);
            seen.extend(part.entries);
            assert_eq!(part.more_count as usize, all.len() - seen.len());
            let Some(next) = part.next else { break };
            page.after = Some(next);
        }
        assert_eq!(seen, all);
        let rows = |limit: u32| Page::<u32> { after: None, limit }.rows();
        assert_eq!([0, 20, u32::MAX].map(rows), [1, 20, PAGE_ROWS_MAX]);
    }
}
