//! Which writer's word counts where several recorded the same metric or parameter.

use std::collections::HashMap;

use super::Origin;

impl Origin {
    /// Of several writers the one with the highest number counts: the script's own recorder, then its event files, then other
    /// files of metrics, then what it printed.
    #[must_use]
    pub const fn precedence(self) -> u8 {
        match self {
            Self::Sdk | Self::Import => 4,
            Self::TensorBoard => 3,
            Self::Files => 2,
            Self::Stdout => 1,
            Self::Telemetry | Self::Other(_) => 0,
        }
    }

    /// The same of parameters: a configuration that a framework wrote beside its results names only what nothing else does.
    #[must_use]
    pub const fn precedence_of_parameters(self) -> u8 {
        match self {
            Self::Files => 0,
            other => other.precedence(),
        }
    }

    /// The writer that a word means.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        let mut known = (0..=u8::MAX).map(Self::from_code).filter(|origin| !matches!(origin, Self::Other(_)));
        known.find(|origin| origin.as_str() == word)
    }
}

/// Of each metric the writer that counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OriginOfEach(HashMap<String, u8>);

impl OriginOfEach {
    /// Takes in that a writer recorded a metric. True: it takes the place of another, whose values no longer count.
    pub fn take(&mut self, name: &str, origin: Option<Origin>) -> bool {
        let rank = origin.map_or(0, Origin::precedence);
        let Some(known) = self.0.get_mut(name) else {
            self.0.insert(name.to_owned(), rank);
            return false;
        };
        let replaces = rank > *known;
        *known = rank.max(*known);
        replaces
    }

    /// Metrics that were taken in.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no metric was taken in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a writer's values of a metric count. A metric that was not taken in counts.
    #[must_use]
    pub fn counts(&self, name: &str, origin: Option<Origin>) -> bool {
        let rank = origin.map_or(0, Origin::precedence);
        self.0.get(name).is_none_or(|known| *known == rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that one writer counts for each metric, and which.
    #[test]
    fn one_writer_counts() {
        let mut origins = OriginOfEach::default();
        let seen =
            [("a", Origin::Stdout), ("a", Origin::Sdk), ("a", Origin::TensorBoard), ("b", Origin::Stdout)];
        let replaces: Vec<bool> =
            seen.into_iter().map(|(name, origin)| origins.take(name, Some(origin))).collect();
        assert_eq!(replaces, [false, true, false, false]);
        let counts = |name, origin| origins.counts(name, Some(origin));
        assert!(
            counts("a", Origin::Sdk) && !counts("a", Origin::TensorBoard) && !counts("a", Origin::Stdout)
        );
        assert!(counts("b", Origin::Stdout) && counts("c", Origin::Stdout));
        let files = [Origin::Stdout, Origin::Files, Origin::TensorBoard]
            .map(|origin| origins.take("d", Some(origin)));
        assert_eq!(files, [false, true, true]);
        let all = [
            Origin::Sdk,
            Origin::Stdout,
            Origin::TensorBoard,
            Origin::Files,
            Origin::Import,
            Origin::Telemetry,
        ];
        assert!(all.iter().all(|origin| Origin::of_word(&origin.to_string()) == Some(*origin)));
    }
}
