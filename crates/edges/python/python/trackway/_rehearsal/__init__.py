"""Rehearsals: launches with one batch or a few, before a run that costs money."""
