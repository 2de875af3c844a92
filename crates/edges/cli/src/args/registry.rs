//! Gates and the registry of models.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use trackway_core::registry::ModelStage;

use super::UnsafeArgs;
use super::values::{PageArgs, Seconds};

const VERSION_HELP: &str = "Version: number, alias, `latest`, or a stage with a single version";

#[derive(Debug, Subcommand)]
pub enum GatesCommand {
    /// Judge an evaluation by gates and record a receipt
    Judge(JudgeArgs),
    /// Test gates against known-bad models
    Test(GatesTestArgs),
    /// Write known-bad evidence for gate tests, derived from an evaluation
    Fixture(FixtureArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway gates judge last
  trackway gates judge evl_01kabc --gate 'accuracy >= baseline - 0.002' --baseline evl_01kaaa
  trackway gates judge last --baseline income@production

Gates come from `[evaluate] gates` of the run file unless given with --gate. docs/gates.md describes the language.

Exit codes: 0 all pass; 5 one fails or is inconclusive")]
pub struct JudgeArgs {
    /// Evaluation: id, unique part of an id, or `last`
    #[arg(value_name = "EVALUATION", default_value = "last")]
    pub evaluation: String,
    /// Gate to use instead of those of the run file; repeatable
    #[arg(long = "gate", value_name = "RULE")]
    pub rules: Vec<String>,
    /// Baseline evaluation: id, `last`, or `MODEL@ALIAS` [default: the baseline it was compared with]
    #[arg(long, value_name = "EVALUATION")]
    pub baseline: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway gates test income.toml --bad shuffled     newest evaluation, shuffled
  trackway gates test income.toml --bad first        the first checkpoint, evaluated now
  trackway gates test income.toml --bad gates/untrained.json
  trackway gates test income.toml --bad evl_01kabc   an evaluation of a model that must fail
  trackway gates test --gate 'size_bytes < 2e9' --bad gates/large.json

A gate is verified once it has failed at least one known-bad model; promotions count verified gates only.

Exit codes: 0 all gates are verified; 5 one is not")]
pub struct GatesTestArgs {
    /// Run file whose `[evaluate] gates` to test
    #[arg(value_name = "FILE", required_unless_present = "rules")]
    pub file: Option<PathBuf>,
    /// Gate to test instead of those of a run file; repeatable
    #[arg(long = "gate", value_name = "RULE", conflicts_with = "file")]
    pub rules: Vec<String>,
    /// Known-bad model: `shuffled[:EVALUATION]`, `first`, a file of `trackway gates fixture`, or an evaluation
    #[arg(long, value_name = "BAD", required = true)]
    pub bad: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway gates fixture last --name 'no better than the majority' --set accuracy=0.76 \\
    --out gates/majority.json
  trackway gates fixture last --set size_bytes=9e9 --out gates/large.json

A changed number keeps the width of its interval.")]
pub struct FixtureArgs {
    /// Evaluation: id, unique part of an id, or `last`
    #[arg(value_name = "EVALUATION", default_value = "last")]
    pub evaluation: String,
    /// What is bad about this model
    #[arg(long)]
    pub name: Option<String>,
    /// Replace the value of a number; repeatable
    #[arg(long = "set", value_name = "NUMBER=VALUE")]
    pub changes: Vec<String>,
    /// Output file
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum RegistryCommand {
    /// List models and their production versions
    Ls,
    /// Show a model: versions, stages, and what blocks each promotion
    Show(ShowArgs),
    /// Register a committed checkpoint as the next version of a model
    Register(RegisterArgs),
    /// Move a version to another stage if evaluation, gates and approvals allow it
    Promote(PromoteArgs),
    /// Approve a version, given the verdicts of its gates
    Approve(ApproveArgs),
    /// Move an earlier version back to production, after verifying its files
    Rollback(RollbackArgs),
    /// Show the history of a model, or its state at a given time
    History(HistoryArgs),
    /// Point an alias to a version
    Alias(AliasArgs),
    /// Show or set what promotions to production require besides evaluation and gates
    Policy(PolicyArgs),
    /// Copy the files of a version, verified, with model card, signature and manifest
    Export(ExportArgs),
    /// Print the model card of a version
    Card {
        /// Model name
        model: String,
        #[arg(id = "which", value_name = "VERSION", help = VERSION_HELP, default_value = "latest")]
        version: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry register income --run last
  trackway registry register income --run last --checkpoint best
  trackway registry register income --run 01kabc --step 4000 --signature signature.json \\
    --description 'more data'

The checkpoint is verified and pinned, so it is never deleted. Registering the same weights again returns the existing version.")]
pub struct RegisterArgs {
    /// Model name
    pub model: String,
    /// Run: id, unique part of an id, name, or `last`
    #[arg(long)]
    pub run: String,
    /// Step of the checkpoint
    #[arg(long, value_name = "N", conflicts_with = "checkpoint")]
    pub step: Option<u64>,
    /// Checkpoint: a step, `latest`, `best`, `min METRIC`, `max METRIC`, or a prefix of a manifest's SHA-256
    #[arg(long, value_name = "REF", default_value = "latest")]
    pub checkpoint: String,
    /// Model signature: a JSON file with `inputs` and `outputs`
    #[arg(long, value_name = "FILE")]
    pub signature: Option<PathBuf>,
    /// Description
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    #[command(flatten)]
    pub accepts: UnsafeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry promote income 3 --to staging
  trackway registry promote income 3 --to production --expect 2 --deploy /srv/models/income

Staging requires files that verify and a completed evaluation of exactly these weights. Production also requires passing gates \
that were each verified against a known-bad model (`trackway gates test`), a comparison with the current production version, \
and the approvals of the model's policy. docs/registry.md has all rules.

Exit codes: 0 done; 5 refused; 7 `--expect` does not match, or the model was changed concurrently")]
pub struct PromoteArgs {
    /// Model name
    pub model: String,
    #[arg(id = "which", value_name = "VERSION", help = VERSION_HELP)]
    pub version: String,
    /// Target stage
    #[arg(long, default_value = "production", value_name = "STAGE")]
    pub to: ModelStage,
    #[command(flatten)]
    pub how: HowArgs,
}

#[derive(Debug, Args)]
pub struct HowArgs {
    /// Fail unless this version is in production now (`none`: no version)
    #[arg(long, value_name = "VERSION")]
    pub expect: Option<String>,
    /// Copy its files to DIR/vN and point DIR/current to them; for production only
    #[arg(long, value_name = "DIR")]
    pub deploy: Option<PathBuf>,
    /// Reason, recorded in the history
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry approve income 3 --why 'looked at the slices'
  trackway registry approve income 3 --by ben --for 2d

An approval is bound to the version, its weights and its gate receipt; it becomes invalid when gates are judged again.")]
pub struct ApproveArgs {
    /// Model name
    pub model: String,
    #[arg(id = "which", value_name = "VERSION", help = VERSION_HELP)]
    pub version: String,
    /// Approver [default: the login]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Lifetime of the approval, such as `2d` [default: the policy of the model]
    #[arg(long = "for", value_name = "DURATION")]
    pub duration: Option<Seconds>,
    /// Reason
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry rollback income --why 'errors after the release'
  trackway registry rollback income --to-version 2 --deploy /srv/models/income

Gates are not judged: the version was in production before. A second rollback goes back one more version.")]
pub struct RollbackArgs {
    /// Model name
    pub model: String,
    /// Version [default: the previous production version]
    #[arg(long = "to-version", value_name = "VERSION")]
    pub to: Option<String>,
    #[command(flatten)]
    pub how: HowArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry history income
  trackway registry history income --at 2026-11-20T08:00:00Z     state at that time")]
pub struct HistoryArgs {
    /// Model name
    pub model: String,
    /// Time (RFC 3339)
    #[arg(long, value_name = "TIME", conflicts_with = "after")]
    pub at: Option<String>,
    #[command(flatten)]
    pub page: PageArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry show income
  trackway registry show income --limit 50 --after 120     versions before 120")]
pub struct ShowArgs {
    /// Model name
    pub model: String,
    #[command(flatten)]
    pub page: PageArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry alias income champion 3
  trackway registry alias income champion 4 --expect 3
  trackway registry alias income champion --remove")]
pub struct AliasArgs {
    /// Model name
    pub model: String,
    /// Alias
    pub alias: String,
    #[arg(id = "which", value_name = "VERSION", help = VERSION_HELP, required_unless_present = "remove", conflicts_with = "remove")]
    pub version: Option<String>,
    /// Remove the alias
    #[arg(long)]
    pub remove: bool,
    /// Fail unless the alias points to this version now (`none`: to no version)
    #[arg(long, value_name = "VERSION")]
    pub expect: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry policy income                    show the policy
  trackway registry policy income --out policies/income.toml   write it as a file, to be edited
  trackway registry policy income --file policies/income.toml
  trackway registry policy income --approvals 2 --approval-lasts 3d

A new model has the default policy, which is strict. A file is the whole policy: what it does not set has its default. docs/registry.md lists its keys.")]
pub struct PolicyArgs {
    /// Model name
    pub model: String,
    /// Policy file (TOML), which replaces the policy
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Write the policy to a new file, from which `--file` reads it
    #[arg(long, short = 'o', value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Number of required approvals
    #[arg(long, value_name = "N")]
    pub approvals: Option<u32>,
    /// Lifetime of an approval
    #[arg(long, value_name = "DURATION")]
    pub approval_lasts: Option<Seconds>,
    /// Whether the person who registered a version may approve it
    #[arg(long, value_name = "true|false")]
    pub own_approval: Option<bool>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  trackway registry export income production --out model
  trackway registry export income 3 --out model-v3")]
pub struct ExportArgs {
    /// Model name
    pub model: String,
    #[arg(id = "which", value_name = "VERSION", help = VERSION_HELP)]
    pub version: String,
    /// Output folder; must not exist
    #[arg(long, short = 'o', value_name = "DIR")]
    pub out: PathBuf,
}
