"""States on a GPU: copied without a wait in between, and as they were at the call."""

import pytest
from conftest import need

from trackway import checkpoint
from trackway._state import arrays as _arrays
from trackway._trackway import Root

torch = need("torch")


def bytes_of(tensor):
    return bytes(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())


def tensors(device):
    generator = torch.Generator().manual_seed(0)
    floats = [torch.randn(shape, generator=generator) for shape in ((), (3,), (50, 41), (1000, 7))]
    others = [floats[2].to(dtype) for dtype in (torch.bfloat16, torch.complex64, torch.bool, torch.float8_e4m3fn)]
    made = [tensor.to(device) for tensor in (*floats, *others)]
    return [*made, made[2].t(), made[3][::2]]


def test_tensors_without_an_address_arrive_whole():
    """Proves that what is copied by the framework has the same bytes, whatever its dtype and strides."""
    given = tensors("cpu")
    buffers = [bytearray(tensor.numel() * tensor.element_size()) for tensor in given]
    leaves = [_arrays.leaf(tensor) for tensor in given]
    for leaf, tensor in zip(leaves, given, strict=True):
        leaf.fill = leaf.fill or (lambda buffer, tensor=tensor: memoryview(buffer).__setitem__(slice(None), bytes_of(tensor)))
    _arrays.write(leaves, buffers)
    assert [bytes(buffer) for buffer in buffers] == [bytes_of(tensor) for tensor in given]


def test_memory_is_not_pinned_without_a_gpu(tmp_path):
    """Proves that a draft of a process without CUDA is filled and saved, and that too much memory is an
    error before anything is copied."""
    if torch.cuda.is_available():
        pytest.skip("this process has a GPU")
    root = Root(str(tmp_path / "root"))
    draft = root.begin(1)
    assert draft.pin(1 << 20) is False
    draft.bytes("notes.json", "other", b"{}")
    with pytest.raises(Exception, match="memory"):
        draft.pin(1 << 60)
    draft.submit([])
    root.wait()
    assert [one.step for one in checkpoint.list(tmp_path / "root")] == [1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_state_on_a_gpu_is_saved_as_it_was_at_the_call(tmp_path):
    """Proves that memory of a draft is pinned once, also when the state grows, that a save waits for what the
    stream has still to do, and that later work does not change it."""
    weight = torch.randn(2048, 2048, device="cuda")
    draft = Root(str(tmp_path / "pinned")).begin(1)
    assert draft.pin(64 << 20) and draft.pin(1 << 20) and draft.pin(200 << 20)
    draft.drop()
    for step in (1, 2, 3):
        busy = weight
        for _ in range(50):
            busy = torch.nn.functional.normalize(busy @ weight)
        state = {"model": {f"layer{number}": tensor for number, tensor in enumerate(tensors("cuda"))}}
        state["model"] |= {"on_cpu": torch.arange(5), "grown": torch.full((step << 20,), step, device="cuda")}
        expected = {name: bytes_of(tensor) for name, tensor in state["model"].items()}
        state["model"]["late"] = busy
        checkpoint.save(tmp_path / "root", state, step=step, wait=False)
        expected["late"] = bytes_of(busy)
        for tensor in state["model"].values():
            tensor.zero_()
        checkpoint.wait_for(tmp_path / "root")
        found = checkpoint.load(tmp_path / "root")["model"]
        assert {name: bytes_of(tensor) for name, tensor in found.items()} == expected
