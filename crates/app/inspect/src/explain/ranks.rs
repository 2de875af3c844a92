//! Whether an attempt may have had several ranks. Pure.

use trackway_ledger::AttemptRow;

/// The launcher that starts one process.
const LOCAL: &str = "local";
/// Parts of commands that start several processes of one training, or say which one it is.
const STARTERS: [&str; 10] = [
    "rank", "torchrun", "torch.distributed", "accelerate", "composer", "deepspeed", "horovodrun", "mpirun",
    "mpiexec", "srun",
];

/// Whether it may have had several ranks: its launcher or its command starts several processes, it was given several GPUs, or what ended it
/// speaks of ranks.
pub(super) fn may_have_several(attempt: &AttemptRow, gpus: u32) -> bool {
    let evidence = attempt.termination_evidence.as_ref().map(ToString::to_string).unwrap_or_default();
    gpus > 1
        || attempt.launcher != LOCAL
        || starts_several(&attempt.command)
        || evidence.to_lowercase().contains("rank")
}

fn starts_several(command: &[String]) -> bool {
    let text = command.join(" ").to_lowercase();
    STARTERS.iter().any(|starter| text.contains(starter))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that commands that start several processes are recognised, and that one Python script is one process.
    #[test]
    fn commands_of_several_ranks_are_recognised() {
        for (command, expected) in [
            ("python3 compile.py --lr 0.1", false),
            ("torchrun --nproc-per-node 2 train.py", true),
            ("python3 -m torch.distributed.run train.py", true),
            ("sh -c RANK=1 python3 train.py & RANK=0 python3 train.py; wait", true),
            ("mpirun -n 4 python3 train.py", true),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(starts_several(&words), expected, "{command}");
        }
    }
}
