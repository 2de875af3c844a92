"""JAX: arrays, keys, and the pytrees of optax and flax."""

import pytest
from conftest import bits, need, newest

from trackway import InputError, checkpoint

jax = need("jax")
numpy = need("numpy")
import jax.numpy as jnp  # noqa: E402
import safetensors.numpy  # noqa: E402

DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32", "complex64",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int4", "uint4",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3)], ids=str)
def test_arrays_come_back_bit_for_bit(tmp_path, dtype, shape):
    """Proves that shape, dtype, every bit and the framework survive."""
    array = jnp.asarray(numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape) % 7, dtype=dtype)
    checkpoint.save(tmp_path, {"params": {"a": array}}, step=1)
    found = checkpoint.load(tmp_path)["params"]["a"]
    assert isinstance(found, jax.Array)
    assert (found.dtype, found.shape, found.weak_type, bits(found)) == (
        array.dtype,
        shape,
        array.weak_type,
        bits(array),
    )


def test_wide_dtypes_are_not_narrowed(tmp_path):
    """Proves that 64 bits stay 64 bits: loading them while JAX has 32 only is refused with what to do."""
    with jax.enable_x64(True):
        checkpoint.save(tmp_path, {"params": {"a": jnp.ones(3, "float64")}}, step=1)
        assert checkpoint.load(tmp_path)["params"]["a"].dtype == "float64"
    with pytest.raises(InputError, match=r"params\.a: .*jax_enable_x64"):
        checkpoint.load(tmp_path)
    assert checkpoint.load(tmp_path, framework="numpy")["params"]["a"].dtype == "float64"


def test_keys_and_weak_scalars(tmp_path):
    """Proves that typed keys of every kind continue with the same numbers, and that weak types stay weak."""
    state = {"key": jax.random.key(7), "other": jax.random.key(3, impl="rbg"), "weak": jnp.asarray(0.5)}
    checkpoint.save(tmp_path, {"values": state}, step=1)
    found = checkpoint.load(tmp_path)["values"]
    assert found["weak"].weak_type
    for name in ("key", "other"):
        assert bits(jax.random.normal(found[name], 3)) == bits(jax.random.normal(state[name], 3))
        assert jax.random.key_impl(found[name]) == jax.random.key_impl(state[name])


def test_the_state_of_optax(tmp_path):
    """Proves that an optimizer's pytree of named tuples comes back with its types, and makes the same updates."""
    optax = need("optax")
    params = {"dense": {"kernel": jnp.ones((3, 2)), "bias": jnp.zeros(2)}}
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(0.1, 10)))
    state = optimizer.init(params)

    def update(params, state):
        gradients = jax.tree.map(lambda leaf: leaf + 0.5, params)
        changes, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, changes), state

    params, state = update(params, state)
    checkpoint.save(tmp_path, {"params": params, "opt_state": state}, step=1)
    names = safetensors.numpy.load_file(newest(tmp_path) / "params.safetensors")
    assert set(names) == {"dense.kernel", "dense.bias"}
    into = {"params": jax.tree.map(jnp.zeros_like, params), "opt_state": optimizer.init(params)}
    loaded = checkpoint.load(tmp_path, into=into)
    assert jax.tree.structure(loaded["opt_state"]) == jax.tree.structure(state)
    expected, found = update(params, state), update(loaded["params"], loaded["opt_state"])
    assert [bits(leaf) for leaf in jax.tree.leaves(found)] == [bits(leaf) for leaf in jax.tree.leaves(expected)]


def test_the_state_of_flax(tmp_path):
    """Proves that a TrainState comes back as one, with its functions left where they are."""
    flax, optax = need("flax"), need("optax")
    from flax.training.train_state import TrainState

    model = flax.linen.Dense(3)

    def make(seed):
        variables = model.init(jax.random.key(seed), jnp.ones((1, 4)))
        return TrainState.create(apply_fn=model.apply, params=variables["params"], tx=optax.adam(0.1))

    state = make(1)
    state = state.apply_gradients(grads=jax.tree.map(jnp.ones_like, state.params))
    checkpoint.save(tmp_path, {"train_state": state}, step=1)
    template = make(2)
    loaded = checkpoint.load(tmp_path, into={"train_state": template})["train_state"]
    assert type(loaded) is TrainState and loaded.apply_fn == template.apply_fn and loaded.step == 1
    assert [bits(leaf) for leaf in jax.tree.leaves(loaded)] == [bits(leaf) for leaf in jax.tree.leaves(state)]
    plain = checkpoint.load(tmp_path)["train_state"]
    assert bits(plain["params"]["kernel"]) == bits(state.params["kernel"])


def test_a_training_that_makes_new_values(attempt):
    """Proves that a functional loop resumes exactly: values go in by `checkpoint(state=…)` and come back in `start`."""

    def train(run, steps):
        params, key = jnp.zeros(4), jax.random.key(1)
        start = run.resume(params=params, key=key)
        params, key = start.state.get("params", params), start.state.get("key", key)
        for step, item in run.batches([1.0, 2.0, 3.0], start=start, steps=steps):
            key, drawn = jax.random.split(key)
            params = params * 0.9 + item * jax.random.normal(drawn, 4)
            run.checkpoint(step, state={"params": params, "key": key})
        return bits(params)

    import trackway

    whole = train(trackway.attach(), 8)
    train(attempt(), 5)
    assert train(attempt(epoch=2), 8) == whole
