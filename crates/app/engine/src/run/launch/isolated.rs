//! Rehearsals, proofs and diagnoses leave the working directory of the run as it is.

use trackway_core::LaunchKind;
use trackway_launch::{Adopt, ContainerStart, Isolation, Offer};

use super::container::is_started;
use crate::Context;
use crate::error::{AppError, ErrorKind};
use crate::reporter::Reporter;
use crate::run::prepare::adopt_patterns::adopt_of;
use crate::run::prepare::begin::Prepared;
use crate::run::prepare::isolated_changes::canonical;

/// Where the changes of a launch that is not a training go; all launches of a run share them, so that one finds what
/// the one before wrote. `None` where the system cannot do it: that is said, and refused where the run file names
/// checkpoints that the real run would continue from.
pub(in crate::run) fn isolation(
    context: &Context,
    prepared: &Prepared,
    offer: &Offer,
    reporter: &dyn Reporter,
) -> Result<Option<Isolation>, AppError> {
    // An evaluator is to read what is there, and the training is over.
    if prepared.run.kind == LaunchKind::Evaluate {
        return Ok(None);
    }
    let plan = &prepared.job.plan;
    let by_command = offer.container == ContainerStart::ByCommand;
    if by_command && is_started(plan.container.as_ref(), &prepared.capture) {
        let message = format!(
            "not launched: `[container]` applies to training runs only, and this is a {}",
            prepared.run.kind
        );
        return Err(AppError::new(ErrorKind::Usage, message)
            .hint("run `trackway` inside the image for it; there the container is not started again"));
    }
    let folder = canonical(prepared.job.working_directory());
    let home = canonical(context.home.folder().to_owned());
    let isolation = Isolation {
        changes: prepared.isolated.folder().to_owned(),
        except: home.starts_with(&folder).then_some(home),
        folder,
    };
    let problem = match offer.isolates {
        true => isolation.problem(),
        false => Some(format!("the {} launcher cannot keep it apart", offer.launcher)),
    };
    let Some(problem) = problem else { return Ok(Some(isolation)) };
    // A proof trains further than a rehearsal, whether the script takes part in it or not.
    let writes_itself = match adopt_of(&plan.checkpoint) {
        Adopt::Paths(_) => true,
        Adopt::Detected => prepared.run.kind == LaunchKind::Prove,
        Adopt::Nothing => false,
    };
    if writes_itself {
        let message = format!(
            "not launched: the script would write its checkpoints where the real run looks for them: {problem}"
        );
        return Err(AppError::new(ErrorKind::Usage, message)
            .hint("let users make namespaces (sysctl kernel.unprivileged_userns_clone), or skip the rehearsal: --skip rehearsal --why REASON")
            .hint("set `checkpoint.adopt = []` if the script saves through Trackway alone"));
    }
    reporter.note(format!("what the script writes to its working directory will stay there: {problem}"));
    Ok(None)
}
