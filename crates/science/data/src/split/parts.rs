//! Parts by hash: of rows, of groups, and within each class.

/// The index of a part, in the order of [`Shares`].
pub type Part = u8;

/// Names of parts with their fractions, which sum to one: `train=0.8, validation=0.1, test=0.1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    names: Vec<String>,
    /// The upper end of each part's range in `[0, 1]`.
    upper: Vec<f64>,
}

/// The most folds; more than a few dozen are leave-one-out by another name.
pub const FOLD_COUNT_MAX: usize = 100;

/// Why a split cannot be made as requested.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SplitError {
    #[error("a split has 2 to 255 parts, not {0}")]
    Parts(usize),
    #[error("`{name}` has a fraction of {share}; it must be between 0 and 1")]
    Share { name: String, share: f64 },
    #[error("the fractions sum to {0}, not to 1")]
    Sum(f64),
    #[error("two parts are called `{0}`")]
    Name(String),
    #[error("there are too few different times to make so many parts")]
    Moments,
    #[error(
        "{folds} folds of {groups} groups: choose 2 to {} folds, and no more than there are groups",
        FOLD_COUNT_MAX
    )]
    Folds { folds: usize, groups: usize },
}

/// How far from one fractions may sum, for 1/3 + 1/3 + 1/3 written in decimals.
const SUM_TOLERANCE: f64 = 1e-3;

impl Shares {
    /// Of names and fractions.
    ///
    /// # Errors
    /// [`SplitError`]: not 2 to 255 parts, a fraction outside 0 to 1, a sum that is not one, a name that comes twice.
    pub fn new(parts: &[(&str, f64)]) -> Result<Self, SplitError> {
        if !(2..=usize::from(Part::MAX)).contains(&parts.len()) {
            return Err(SplitError::Parts(parts.len()));
        }
        for (index, (name, share)) in parts.iter().enumerate() {
            if !(*share > 0.0 && *share < 1.0) {
                return Err(SplitError::Share { name: (*name).to_owned(), share: *share });
            }
            if parts[..index].iter().any(|(before, _)| before == name) {
                return Err(SplitError::Name((*name).to_owned()));
            }
        }
        let sum: f64 = parts.iter().map(|(_, share)| share).sum();
        if (sum - 1.0).abs() > SUM_TOLERANCE {
            return Err(SplitError::Sum(sum));
        }
        let mut reached = 0.0;
        let mut upper: Vec<f64> = Vec::with_capacity(parts.len());
        for (_, share) in parts {
            reached += share / sum;
            upper.push(reached);
        }
        upper[parts.len() - 1] = 1.0;
        Ok(Self { names: parts.iter().map(|(name, _)| (*name).to_owned()).collect(), upper })
    }

    /// The names, in the order of the parts.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The upper end of each part's range, the last one 1.
    pub(super) fn upper(&self) -> &[f64] {
        &self.upper
    }

    /// The part that holds this place in `[0, 1)`.
    pub(super) fn part_at(&self, unit: f64) -> Part {
        self.upper.partition_point(|upper| *upper <= unit).min(self.upper.len() - 1) as Part
    }
}

/// The part of each row so that every class is divided as requested, to the row. `units` come from
/// [`trackway_formats::subset::unit_of`] with purpose `split`, `classes` are small numbers, one for each label. Rows of
/// equal unit (equal keys) stay together.
#[must_use]
pub fn by_hash_within_classes(shares: &Shares, units: &[f64], classes: &[u32]) -> Vec<Part> {
    assert_eq!(units.len(), classes.len(), "every row has a class");
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_unstable_by(|one, other| {
        classes[*one].cmp(&classes[*other]).then(units[*one].total_cmp(&units[*other])).then(one.cmp(other))
    });
    let mut parts = vec![0; units.len()];
    for class in order.chunk_by(|one, other| classes[*one] == classes[*other]) {
        let mut together = None;
        for (rank, row) in class.iter().enumerate() {
            let unit = units[*row];
            let part = match together {
                Some((same, part)) if same == unit => part,
                // The middle of the row's place: a class of one goes where most go.
                _ => shares.part_at((rank as f64 + 0.5) / class.len() as f64),
            };
            together = Some((unit, part));
            parts[*row] = part;
        }
    }
    parts
}
