"""What rehearsals and diagnoses have in common: they observe a training without changes to its script."""
