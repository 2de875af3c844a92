//! The functions and rules that queries and conditions are planned with.
//!
//! The engine's own default also registers readers and writers of files, which a query over a ledger never uses and which are a
//! good part of the engine's code.

use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SessionStateBuilder, SessionStateDefaults};
use datafusion::prelude::{SessionConfig, SessionContext};

/// A session over no tables.
pub(super) fn session(config: SessionConfig, runtime: Arc<RuntimeEnv>) -> SessionContext {
    SessionContext::new_with_state(state(config, runtime))
}

fn state(config: SessionConfig, runtime: Arc<RuntimeEnv>) -> SessionState {
    SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_expr_planners(SessionStateDefaults::default_expr_planners())
        .with_scalar_functions(SessionStateDefaults::default_scalar_functions())
        .with_aggregate_functions(SessionStateDefaults::default_aggregate_functions())
        .with_window_functions(SessionStateDefaults::default_window_functions())
        .build()
}
