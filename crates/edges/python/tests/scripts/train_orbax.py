"""Trains with JAX, Flax and optax, saved as with Orbax: `python train_orbax.py STEPS [KILL_AT]`. Prints where it continued,
and at the end a digest of the state and of the random numbers."""

import hashlib
import os
import signal
import sys

import flax.struct
import jax
import numpy
import optax
import orbax.checkpoint as ocp

import trackway.orbax


@flax.struct.dataclass
class State:
    step: int
    params: dict
    moments: optax.OptState
    key: jax.Array


def main(steps, kill_at):
    optimizer = optax.adamw(0.05)
    params = {"dense": {"w": jax.random.normal(jax.random.key(1), (4, 3)), "b": jax.numpy.zeros(3)}}
    state = State(0, params, optimizer.init(params), jax.random.key(2))
    manager = trackway.orbax.checkpoint_manager("unused", options=ocp.CheckpointManagerOptions(save_interval_steps=1))
    first = 1
    numpy.random.seed(5)
    if (latest := manager.latest_step()) is not None:
        shapes = jax.eval_shape(lambda: state)
        state = manager.restore(latest, args=ocp.args.StandardRestore(shapes))
        first = latest + 1
    print(first, flush=True)

    @jax.jit
    def update(state, batch):
        key, own = jax.random.split(state.key)
        noise = jax.random.normal(own, (3,))
        loss = lambda params: ((batch @ params["dense"]["w"] + params["dense"]["b"] + noise) ** 2).mean()  # noqa: E731
        updates, moments = optimizer.update(jax.grad(loss)(state.params), state.moments, state.params)
        return state.replace(
            step=state.step + 1, params=optax.apply_updates(state.params, updates), moments=moments, key=key
        )

    for step in range(first, steps + 1):
        state = update(state, numpy.random.rand(5, 4).astype("float32"))
        manager.save(step, args=ocp.args.StandardSave(state))
        manager.wait_until_finished()  # a save that comes while one is being written would be left out
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
    manager.close()
    leaves = [numpy.asarray(leaf) for leaf in jax.tree.leaves(state.replace(key=jax.random.key_data(state.key)))]
    found = hashlib.sha256(b"".join(leaf.tobytes() for leaf in leaves) + numpy.random.rand(2).tobytes())
    print(int(state.step), found.hexdigest(), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
