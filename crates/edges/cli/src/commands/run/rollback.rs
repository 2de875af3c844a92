//! `trackway rollback`: brings a run back to an earlier checkpoint.

use trackway_api::runs::RollbackState;
use trackway_engine::{Context, RollBackRequest, roll_back};

use crate::args::RunRollbackArgs;
use crate::exit::Exit;
use crate::printer::Printer;

pub fn roll_back(context: &Context, args: &RunRollbackArgs, printer: Printer) -> Exit {
    let request = RollBackRequest { to_step: args.to_step, skip: args.skip_batches, why: args.why.clone() };
    let answer = roll_back::roll_back(context, context.resolve_run(&args.run)?, &request)?;
    printer.answer(&answer, || {
        printer.note(&answer.summary);
        printer.note(&match answer.state {
            RollbackState::Asked => {
                format!("ended attempt {}; its supervisor continues from there", answer.attempt_id)
            }
            RollbackState::Done => format!("continue with: trackway resume {}", answer.run_id),
        });
    });
    Ok(0)
}
