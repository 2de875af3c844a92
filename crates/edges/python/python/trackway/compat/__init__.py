"""Scripts that record with other tools: only the import changes.

    import trackway.compat.wandb as wandb
    import trackway.compat.mlflow as mlflow

What they record goes to the run of the process (`trackway.attach()`). Outside an attempt they record nothing, and say so
in one line on stderr. Neither tool needs to be installed.
"""
