"""Diagnoses: launches that observe the cause of a symptom of an earlier attempt."""
