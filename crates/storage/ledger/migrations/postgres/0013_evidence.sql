-- Whether a metric was NaN or infinite to its end; and a reason for what a detector ended because it was not in order.
ALTER TABLE metric_summaries ADD COLUMN non_finite_from_step bigint;

ALTER TABLE metric_summaries ADD COLUMN non_finite_end_count bigint;

-- By which a failure of the data is recognised: the script, and what the data is checked against.
ALTER TABLE training_attempts ADD COLUMN script_blake3 text;

ALTER TABLE launches ADD COLUMN script_blake3 text;

ALTER TABLE runs ADD COLUMN data_contract_sha256 text;

ALTER TABLE runs DROP CONSTRAINT runs_termination_reason_check;
ALTER TABLE runs ADD CONSTRAINT runs_termination_reason_check CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'unhealthy', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown'));

ALTER TABLE training_attempts DROP CONSTRAINT training_attempts_termination_reason_check;
ALTER TABLE training_attempts ADD CONSTRAINT training_attempts_termination_reason_check CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'unhealthy', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown'));

ALTER TABLE launches DROP CONSTRAINT launches_termination_reason_check;
ALTER TABLE launches ADD CONSTRAINT launches_termination_reason_check CHECK (termination_reason IN ('completed', 'early_stopped', 'cancelled', 'preempted', 'node_failure', 'host_oom', 'device_oom', 'data_error', 'schema_drift', 'code_error', 'hang', 'timeout', 'numeric_divergence', 'unhealthy', 'checkpoint_error', 'storage_error', 'network_error', 'evaluator_error', 'budget_exhausted', 'rung_rejected', 'fenced', 'superseded', 'unknown'));

