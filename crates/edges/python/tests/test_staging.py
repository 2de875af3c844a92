import pytest

torch = pytest.importorskip("torch")

from trackway import _staging, checkpoint  # noqa: E402


@pytest.mark.parametrize("sizes", [[], [0, 1], [7, 7, 7], [64], [65], [3, 200, 0, 61, 64, 1]])
def test_every_byte_is_in_one_fill_and_every_fill_but_the_last_is_full(sizes):
    """Proves that the fills of the buffer hold the bytes of all tensors, each once, in order."""
    fills = list(_staging.fills(sizes, 64))
    assert [sum(piece.len_bytes for piece in fill) for fill in fills[:-1]] == [64] * (len(fills) - 1)
    for fill in fills:
        ends = [piece.at + piece.len_bytes for piece in fill]
        assert [piece.at for piece in fill] == [0, *ends[:-1]]
    for tensor, size in enumerate(sizes):
        pieces = [piece for fill in fills for piece in fill if piece.tensor == tensor]
        assert [piece.begin for piece in pieces] == [sum(p.len_bytes for p in pieces[:i]) for i in range(len(pieces))]
        assert sum(piece.len_bytes for piece in pieces) == size


def tensors(device):
    generator = torch.Generator().manual_seed(0)
    floats = [torch.randn(shape, generator=generator) for shape in ((), (3,), (50, 41), (1000, 7))]
    others = [floats[2].to(dtype) for dtype in (torch.bfloat16, torch.complex64, torch.bool, torch.float8_e4m3fn)]
    return [tensor.to(device) for tensor in (*floats, *others)]


def test_tensors_arrive_whole_through_small_buffers():
    """Proves that what passes through the buffers has the same bytes, whatever its dtype and however it is cut."""
    given = tensors("cpu")
    regions = [bytearray(tensor.numel() * tensor.element_size()) for tensor in given]
    _staging.to_host(list(zip(given, regions, strict=True)), buffer_bytes=1000)
    for tensor, region in zip(given, regions, strict=True):
        assert bytes(region) == bytes(tensor.reshape(-1).view(torch.uint8).numpy())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("buffer_bytes", [1000, _staging.BUFFER_BYTES])
def test_a_state_on_a_gpu_is_saved_as_it_was_at_the_call(tmp_path, monkeypatch, buffer_bytes):
    """Proves that a save waits for what the stream has still to do, and that later work does not change it."""
    monkeypatch.setattr(_staging.to_host, "__defaults__", (buffer_bytes,))
    weight = torch.randn(2048, 2048, device="cuda")
    state = {"model": {f"layer{number}": tensor for number, tensor in enumerate(tensors("cuda"))}}
    busy = weight
    for _ in range(50):
        busy = torch.nn.functional.normalize(busy @ weight)
    state["model"] |= {"late": busy, "strided": weight.t(), "on_cpu": torch.arange(5)}
    expected = {name: tensor.cpu().clone() for name, tensor in state["model"].items() if name != "late"}
    checkpoint.save(tmp_path, state, step=1, wait=False)
    late = busy.cpu().clone()
    for tensor in state["model"].values():
        tensor.zero_()
    checkpoint.wait_for(tmp_path)
    found = checkpoint.load(tmp_path)["model"]
    for name, tensor in (expected | {"late": late}).items():
        assert bytes(found[name].reshape(-1).view(torch.uint8).numpy()) == bytes(tensor.reshape(-1).view(torch.uint8).numpy()), name
