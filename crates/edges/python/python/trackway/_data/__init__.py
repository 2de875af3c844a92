"""The data that a training loop sees: its order, its position and its subset."""
