//! Gates and the registry of models.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use trackway_core::registry::ModelStage;

const VERSION_HELP: &str = "A version: its number, an alias, `latest`, or a stage that one version is in";

#[derive(Debug, Subcommand)]
pub enum GatesCommand {
    /// Judge an evaluation by gates, and leave a receipt of what they said
    Judge(JudgeArgs),
    /// Show that gates can say no: ask them about models that are known to be bad
    Test(GatesTestArgs),
    /// Write the evidence of an evaluation as a fixture, made worse where asked for
    Fixture(FixtureArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway gates judge last
  trackway gates judge evl_01kabc --gate 'accuracy >= baseline - 0.002' --baseline evl_01kaaa
  trackway gates judge last --baseline income@production

Gates are those of the run file's `[evaluate] gates`, unless some are named here. docs/gates.md has their language.

Exit codes: 0 all pass; 5 one fails or is inconclusive")]
pub struct JudgeArgs {
    /// An evaluation: its id, a unique part of it, or `last`
    #[arg(value_name = "EVALUATION", default_value = "last")]
    pub evaluation: String,
    /// A gate, instead of those of the run file
    #[arg(long = "gate", value_name = "RULE")]
    pub rules: Vec<String>,
    /// The evaluation that `baseline` means: its id, `last`, or `MODEL@ALIAS` [default: the one it was compared with]
    #[arg(long, value_name = "EVALUATION")]
    pub baseline: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway gates test income.toml --bad gates/untrained.json
  trackway gates test income.toml --bad evl_01kabc          an evaluation of a model that must not pass
  trackway gates test --gate 'size_bytes < 2e9' --bad gates/large.json

A gate is armed when it said `fail` of at least one bad model; a promotion rests on armed gates only.

Exit codes: 0 every gate is armed; 5 one is not")]
pub struct GatesTestArgs {
    /// The run file whose `[evaluate] gates` are tested
    #[arg(value_name = "FILE", required_unless_present = "rules")]
    pub file: Option<PathBuf>,
    /// A gate, instead of those of a run file
    #[arg(long = "gate", value_name = "RULE", conflicts_with = "file")]
    pub rules: Vec<String>,
    /// A bad model: a file of `trackway gates fixture`, or an evaluation
    #[arg(long, value_name = "FILE|EVALUATION", required = true)]
    pub bad: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway gates fixture last --name 'no better than the majority' --set accuracy=0.76 --out gates/majority.json
  trackway gates fixture last --set size_bytes=9e9 --out gates/large.json

A number that is set keeps the width of its interval.")]
pub struct FixtureArgs {
    /// An evaluation: its id, a unique part of it, or `last`
    #[arg(value_name = "EVALUATION", default_value = "last")]
    pub evaluation: String,
    /// What is bad about it
    #[arg(long)]
    pub name: Option<String>,
    /// Another value for one of its numbers
    #[arg(long = "set", value_name = "NUMBER=VALUE")]
    pub changes: Vec<String>,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum RegistryCommand {
    /// List models with what is in production
    Ls,
    /// Show a model: its versions, where they stand, what stands against each
    Show {
        /// The model
        model: String,
    },
    /// Make a committed checkpoint the next version of a model
    Register(RegisterArgs),
    /// Move a version to another stage, if evaluation, gates and approvals allow it
    Promote(PromoteArgs),
    /// Approve a version with the verdicts of its gates
    Approve(ApproveArgs),
    /// Put an earlier version back into production, its files verified first
    Rollback(RollbackArgs),
    /// What happened to a model, or where it stood at a moment
    History(HistoryArgs),
    /// Point a name to a version
    Alias(AliasArgs),
    /// What promotions of a model to production ask for beside evaluation and gates
    Policy(PolicyArgs),
    /// Copy the files of a version, every byte checked, with card, signature and manifest
    Export(ExportArgs),
    /// Print the model card of a version
    Card {
        /// The model
        model: String,
        #[arg(id = "which", value_name = "VERSION", help = VERSION_HELP, default_value = "latest")]
        version: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry register income --run last
  trackway registry register income --run 01kabc --step 4000 --signature signature.json --description 'more data'

The checkpoint is verified and pinned: nothing deletes it. Exactly these weights again are the version they already are.")]
pub struct RegisterArgs {
    /// The model
    pub model: String,
    /// The run: its id, a unique part of it, its name, or `last`
    #[arg(long)]
    pub run: String,
    /// The checkpoint of this step [default: the newest committed one]
    #[arg(long, value_name = "N")]
    pub step: Option<u64>,
    /// What the model takes and gives: a JSON file with `inputs` and `outputs`
    #[arg(long, value_name = "FILE")]
    pub signature: Option<PathBuf>,
    /// A few words
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry promote income 3 --to staging
  trackway registry promote income 3 --to production --expect 2 --deploy /srv/models/income

To staging: files that verify and a complete evaluation of these very weights. To production: gates that pass on it, each of
which blocked a bad model before (`trackway gates test`), compared with what is in production now, and the approvals that the
model's policy asks for. docs/registry.md has all rules.

Exit codes: 0 done; 5 refused; 7 `--expect` does not hold, or somebody else changed the model meanwhile")]
pub struct PromoteArgs {
    /// The model
    pub model: String,
    #[arg(id = "which", value_name = "VERSION", help = VERSION_HELP)]
    pub version: String,
    /// The stage
    #[arg(long, default_value = "production", value_name = "STAGE")]
    pub to: ModelStage,
    #[command(flatten)]
    pub how: HowArgs,
}

#[derive(Debug, Args)]
pub struct HowArgs {
    /// Only if this version is in production now (`none`: only if none is)
    #[arg(long, value_name = "VERSION|none")]
    pub expect: Option<String>,
    /// Copy its files to DIR/vN, and point DIR/current there
    #[arg(long, value_name = "DIR")]
    pub deploy: Option<PathBuf>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry approve income 3 --why 'looked at the slices'
  trackway registry approve income 3 --by ben --for 2d

An approval is bound to the version, its weights and the receipt of its gates: when gates are judged anew, it is none any more.")]
pub struct ApproveArgs {
    /// The model
    pub model: String,
    #[arg(id = "which", value_name = "VERSION", help = VERSION_HELP)]
    pub version: String,
    /// Who approves [default: whoever is logged in]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// How long it holds, such as `2d` [default: as the model's policy says]
    #[arg(long = "for", value_name = "DURATION")]
    pub duration: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry rollback income --why 'errors after the release'
  trackway registry rollback income --to 2 --deploy /srv/models/income

No gate is asked: the version was in production before. Again, it goes one further back.")]
pub struct RollbackArgs {
    /// The model
    pub model: String,
    /// The version [default: the one before the one in production]
    #[arg(long, value_name = "VERSION")]
    pub to: Option<String>,
    #[command(flatten)]
    pub how: HowArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry history income
  trackway registry history income --at 2026-11-20T08:00:00Z     what was in production then")]
pub struct HistoryArgs {
    /// The model
    pub model: String,
    /// Where it stood at this moment (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry alias income champion 3
  trackway registry alias income champion 4 --expect 3
  trackway registry alias income champion --drop")]
pub struct AliasArgs {
    /// The model
    pub model: String,
    /// The name
    pub alias: String,
    #[arg(id = "which", value_name = "VERSION", help = VERSION_HELP, required_unless_present = "drop", conflicts_with = "drop")]
    pub version: Option<String>,
    /// Point it to nothing
    #[arg(long)]
    pub drop: bool,
    /// Only if it points to this version now (`none`: only if to none)
    #[arg(long, value_name = "VERSION|none")]
    pub expect: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry policy income                    show it
  trackway registry policy income --approvals 2 --approval-lasts 3d")]
pub struct PolicyArgs {
    /// The model
    pub model: String,
    /// So many people must approve
    #[arg(long, value_name = "N")]
    pub approvals: Option<u32>,
    /// How long an approval holds
    #[arg(long, value_name = "DURATION")]
    pub approval_lasts: Option<String>,
    /// Whether whoever registered a version may approve it too
    #[arg(long, value_name = "true|false")]
    pub own_approval: Option<bool>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry export income production model
  trackway registry export income 3 model-v3")]
pub struct ExportArgs {
    /// The model
    pub model: String,
    #[arg(id = "which", value_name = "VERSION", help = VERSION_HELP)]
    pub version: String,
    /// A folder that is not there yet
    pub folder: PathBuf,
}
