use trackway_formats::Variable;

use crate::error::RankError;

/// Where votes are, below a checkpoint's folder and below the root.
pub(crate) const VOTES_FOLDER: &str = "votes";
/// How long ranks wait for each other by default. Long: a rank may have to write many gigabytes.
const WAIT_SECONDS: f64 = 600.0;
/// What the names of a rank's files begin with, in front of its number.
const FILE_PREFIX: &str = "rank-";
/// How launchers give a process its rank and their number, besides `RANK` and `WORLD_SIZE`: the first of which both
/// are set counts. Slurm: not `SLURM_NTASKS`, which a batch script has too, of which there is one; the number of tasks of
/// a step is set by `srun` alone.
const LAUNCHERS: [(&str, &str); 4] = [
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// Which of the processes that train together this one is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankGroup {
    rank: u32,
    world_size: u32,
    round: u32,
    wait_seconds: f64,
}

impl RankGroup {
    /// Rank `rank` of `world_size`, numbered from 0, in the first round of its attempt.
    ///
    /// # Errors
    /// [`RankError::Environment`] when there is no such rank.
    pub fn new(rank: u32, world_size: u32) -> Result<Self, RankError> {
        if rank >= world_size {
            let expected = "a rank must be lower than `WORLD_SIZE`";
            return Err(RankError::Environment { variable: "RANK", value: rank.to_string(), expected });
        }
        Ok(Self { rank, world_size, round: 0, wait_seconds: WAIT_SECONDS })
    }

    /// From `RANK` and `WORLD_SIZE`, as torchrun sets them; else from the variables of Horovod, Open MPI, MPICH and Intel
    /// MPI, and Slurm's `srun`, in this order. Without any there is one rank. `WORLD_SIZE` without `RANK`, as scripts
    /// export it beside `MASTER_ADDR`, needs one of these launchers for the rank. Also `TORCHELASTIC_RESTART_COUNT` and
    /// `TRACKWAY_CHECKPOINT_WAIT_SECONDS`.
    ///
    /// # Errors
    /// [`RankError::Environment`].
    pub fn from_environment() -> Result<Self, RankError> {
        Self::from_variables(&|name| std::env::var(name).ok())
    }

    /// The same from variables that come from elsewhere.
    ///
    /// # Errors
    /// [`RankError::Environment`].
    pub fn from_variables(variable: &impl Fn(&str) -> Option<String>) -> Result<Self, RankError> {
        let round = number(variable, "TORCHELASTIC_RESTART_COUNT")?.unwrap_or(0);
        let group = Self::of_launcher(variable)?.in_round(round);
        let wait = variable(Variable::CheckpointWaitSeconds.as_str()).and_then(|text| text.parse().ok());
        Ok(wait.filter(|seconds| *seconds > 0.0).map_or(group, |seconds| group.waiting(seconds)))
    }

    fn of_launcher(variable: &impl Fn(&str) -> Option<String>) -> Result<Self, RankError> {
        let missing = |variable| {
            let expected = "set both `RANK` and `WORLD_SIZE`, or neither";
            RankError::Environment { variable, value: String::new(), expected }
        };
        match (number(variable, "RANK")?, number(variable, "WORLD_SIZE")?) {
            (Some(rank), Some(world_size)) => Self::new(rank, world_size),
            (Some(_), None) => Err(missing("WORLD_SIZE")),
            (None, Some(1)) => Self::new(0, 1),
            (None, expected_size) => match (Self::of_other_launcher(variable)?, expected_size) {
                (Some(group), Some(world_size)) if group.world_size != world_size => {
                    let expected = "the launcher of this process started another number of ranks";
                    let value = world_size.to_string();
                    Err(RankError::Environment { variable: "WORLD_SIZE", value, expected })
                }
                (Some(group), _) => Ok(group),
                (None, Some(_)) => Err(missing("RANK")),
                (None, None) => Self::new(0, 1),
            },
        }
    }

    fn of_other_launcher(variable: &impl Fn(&str) -> Option<String>) -> Result<Option<Self>, RankError> {
        for (rank_name, size_name) in LAUNCHERS {
            let (Some(rank), Some(world_size)) = (number(variable, rank_name)?, number(variable, size_name)?)
            else {
                continue;
            };
            if rank >= world_size {
                let expected = "a rank must be lower than the number of ranks";
                let value = rank.to_string();
                return Err(RankError::Environment { variable: rank_name, value, expected });
            }
            return Self::new(rank, world_size).map(Some);
        }
        Ok(None)
    }

    /// The same rank in another round: how often the ranks were all started again within this attempt.
    pub(crate) fn in_round(self, round: u32) -> Self {
        Self { round, ..self }
    }

    /// The same rank, waiting so long for what another rank does before it gives up.
    #[must_use]
    pub fn waiting(self, wait_seconds: f64) -> Self {
        Self { wait_seconds, ..self }
    }

    /// The number of this rank, from 0.
    #[must_use]
    pub fn rank(self) -> u32 {
        self.rank
    }

    /// How many ranks there are.
    #[must_use]
    pub fn world_size(self) -> u32 {
        self.world_size
    }

    /// How often the ranks were all started again within this attempt.
    #[must_use]
    pub fn round(self) -> u32 {
        self.round
    }

    /// How long one rank waits for what another does.
    #[must_use]
    pub fn wait_seconds(self) -> f64 {
        self.wait_seconds
    }

    /// Whether this rank decides what is committed, and writes the files that all ranks have alike.
    #[must_use]
    pub fn coordinates(self) -> bool {
        self.rank == 0
    }

    /// The name of a file that this rank writes: `model.safetensors` becomes `rank-0003-model.safetensors`.
    #[must_use]
    pub fn file_name(self, name: &str) -> String {
        format!("{FILE_PREFIX}{:04}-{name}", self.rank)
    }

    /// The rank that a file belongs to, by its name, when this rank may write it; `None`: it is every rank's.
    pub(crate) fn owner_of(self, name: &str) -> Result<Option<u32>, RankError> {
        match rank_in(name) {
            Some(rank) if rank == self.rank => Ok(Some(rank)),
            None if self.coordinates() && name != VOTES_FOLDER => Ok(None),
            _ => Err(RankError::FileName { rank: self.rank, name: name.into() }),
        }
    }
}

/// A variable that is a number, if it is set.
fn number(variable: &impl Fn(&str) -> Option<String>, name: &'static str) -> Result<Option<u32>, RankError> {
    let expected = "expected a whole number, 0 or more";
    let parse =
        |value: String| value.parse().map_err(|_| RankError::Environment { variable: name, value, expected });
    variable(name).map(parse).transpose()
}

/// The rank that a file's name begins with.
fn rank_in(name: &str) -> Option<u32> {
    split_rank(name).map(|(rank, _)| rank)
}

/// A file's name without the rank in front.
pub(crate) fn without_rank(name: &str) -> &str {
    split_rank(name).map_or(name, |(_, rest)| rest)
}

fn split_rank(name: &str) -> Option<(u32, &str)> {
    let (digits, rest) = name.strip_prefix(FILE_PREFIX)?.split_once('-')?;
    let rank = digits.parse().ok()?;
    (format!("{rank:04}") == digits).then_some((rank, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<RankGroup, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        RankGroup::from_variables(&variable).map_err(|error| error.to_string())
    }

    /// Proves that the rank is taken from torchrun's variables, and that what cannot be is refused by name.
    #[test]
    fn the_environment_names_the_rank() {
        assert_eq!(from(&[]).unwrap(), RankGroup::new(0, 1).unwrap());
        assert_eq!(from(&[("WORLD_SIZE", "1")]).unwrap(), RankGroup::new(0, 1).unwrap());
        let three = [("RANK", "3"), ("WORLD_SIZE", "4"), ("TORCHELASTIC_RESTART_COUNT", "2")];
        assert_eq!(from(&three).unwrap(), RankGroup::new(3, 4).unwrap().in_round(2));
        assert_eq!(from(&[("TRACKWAY_CHECKPOINT_WAIT_SECONDS", "7.5")]).unwrap().wait_seconds(), 7.5);
        for (variables, expected) in [
            (
                &[("RANK", "4"), ("WORLD_SIZE", "4")][..],
                "`RANK` is `4`: a rank must be lower than `WORLD_SIZE`",
            ),
            (&[("WORLD_SIZE", "4")], "`RANK` is ``: set both `RANK` and `WORLD_SIZE`, or neither"),
            (&[("RANK", "-1"), ("WORLD_SIZE", "4")], "`RANK` is `-1`: expected a whole number, 0 or more"),
        ] {
            assert_eq!(from(variables).unwrap_err(), expected);
        }
    }

    /// Proves which launchers are known, which of them counts, and that none is taken for one by half of its variables.
    #[test]
    fn launchers_give_the_rank() {
        let known = |rank, world_size| Ok(RankGroup::new(rank, world_size).unwrap());
        for (rank, world_size) in LAUNCHERS {
            assert_eq!(from(&[(rank, "3"), (world_size, "4")]), known(3, 4));
            assert_eq!(from(&[(rank, "3"), (world_size, "4"), ("WORLD_SIZE", "4")]), known(3, 4));
            assert_eq!(
                from(&[(rank, "3"), (world_size, "4"), ("RANK", "1"), ("WORLD_SIZE", "2")]),
                known(1, 2)
            );
            assert_eq!(from(&[(rank, "3")]), known(0, 1));
            let why = format!("`{rank}` is `4`: a rank must be lower than the number of ranks");
            assert_eq!(from(&[(rank, "4"), (world_size, "4")]), Err(why));
        }
        let both =
            [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("PMI_RANK", "5"), ("PMI_SIZE", "8")];
        assert_eq!(from(&both), known(5, 8));
        assert_eq!(from(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]), known(0, 1));
        let other = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "8"), ("WORLD_SIZE", "4")];
        let why = "`WORLD_SIZE` is `4`: the launcher of this process started another number of ranks";
        assert_eq!(from(&other), Err(why.into()));
    }

    /// Proves that a file's name determines its rank, and that no rank can write another's.
    #[test]
    fn a_name_says_whose_file_it_is() {
        let third = RankGroup::new(3, 4).unwrap();
        let name = third.file_name("model.safetensors");
        assert_eq!(name, "rank-0003-model.safetensors");
        assert_eq!(third.owner_of(&name).unwrap(), Some(3));
        let first = RankGroup::new(0, 4).unwrap();
        assert_eq!(first.owner_of("config.json").unwrap(), None);
        assert_eq!(first.owner_of("rank-list.json").unwrap(), None);
        for (group, name) in [
            (third, "config.json"),
            (first, "votes"),
            (third, "rank-0002-x"),
            (first, "rank-0003-x"),
            (third, "rank-3-x"),
        ] {
            let refused = group.owner_of(name);
            assert!(matches!(refused, Err(RankError::FileName { .. })), "{name}: {refused:?}");
        }
    }
}
