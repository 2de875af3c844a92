"""A training state as files: its components, their tensors, and the parts that each rank stores."""
