"""Rungs of the ladder: which rows a loop gets, and the weights that a rung begins with."""

import pytest
from conftest import attempt_environment, bits, need

import trackway
from trackway import InputError


@pytest.fixture
def at(monkeypatch):
    """Puts this process at a rung."""

    def go(rung, seed=17):
        monkeypatch.setenv("TRACKWAY_RUNG", str(rung))
        monkeypatch.setenv("TRACKWAY_SEED", str(seed))

    return go


def rows_of(loader, **options):
    """What a loop gets in one pass."""
    return [batch for _, batch in trackway.attach().batches(loader, **options)]


def test_subsets_hold_one_another_and_are_those_of_data_split(at):
    """Proves that 1 % is in 10 % is in 100 %, whatever names the rows, and that the rows are those of the format's own
    vectors, by which `trackway data split` draws too."""
    found = {}
    for rung in (0.01, 0.1, 1):
        at(rung)
        assert trackway.rung() == rung
        found[rung] = set(trackway.rung_indexes(20_000))
        assert found[rung] == {row for row in range(20_000) if trackway.in_rung(row)}
        assert len(found[rung]) == pytest.approx(20_000 * rung, rel=0.2)
    assert found[0.01] < found[0.1] < found[1]
    at(0.05)
    assert trackway.rung_indexes(200) == [19, 33, 54, 108, 110, 155, 156, 168]
    at(0.1)
    named = [name for name in map("patient-{}".format, range(2_000)) if trackway.in_rung(name)]
    assert 150 < len(named) < 250
    at(0.1, seed=18)
    assert set(trackway.rung_indexes(20_000)) != found[0.1]


def test_keys_that_name_no_row_are_refused(at):
    """Proves that a key which could be one row today and another tomorrow is refused, and that no rung is empty."""
    at(0.000001)
    assert len(trackway.rung_indexes(7)) == 1
    for key in (1.5, None, True, b"x", 1 << 70):
        with pytest.raises(InputError, match="named by a text or a whole number"):
            trackway.in_rung(key)


def test_all_rows_come_outside_of_a_rung(monkeypatch):
    """Proves that a script without a ladder is unchanged, generators included."""
    monkeypatch.delenv("TRACKWAY_RUNG", raising=False)
    assert trackway.rung() == 1 and trackway.in_rung("x") and trackway.rung_indexes(3) == [0, 1, 2]
    assert rows_of(iter("abc")) == ["a", "b", "c"]


def test_a_sequence_of_batches_is_cut(at):
    """Proves that the items of a sequence are cut by their place, and each rung of them holds the smaller one."""
    batches = [f"batch {number}" for number in range(400)]
    at(0.1)
    tenth = rows_of(batches)
    assert tenth == [batches[place] for place in trackway.rung_indexes(400)]
    at(0.5)
    assert set(tenth) < set(rows_of(batches))
    assert rows_of(batches, cut=False) == batches
    for loader in (iter(batches), (batch for batch in batches), {"a": 1}):
        with pytest.raises(InputError, match="has no row indexes.*cut=False"):
            rows_of(loader)


def test_a_torch_loader_is_cut_by_its_rows(at):
    """Proves that only rows of the rung come, each once, in full batches, shuffled or not; and that the loader is left
    as it was, for validation."""
    torch = need("torch")
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.arange(500))
    at(0.1)
    wanted = trackway.rung_indexes(500)
    for workers, shuffle in ((0, False), (0, True), (2, True)):
        loader = DataLoader(data, batch_size=8, shuffle=shuffle, num_workers=workers)
        batches = [batch.tolist() for (batch,) in rows_of(loader)]
        assert all(len(batch) == 8 for batch in batches[:-1])
        rows = [row for batch in batches for row in batch]
        assert sorted(rows) == wanted and (rows != wanted) == shuffle
        assert sum(len(batch) for (batch,) in loader) == 500
    single = [row.item() for (row,) in rows_of(DataLoader(data, batch_size=None))]
    assert single == wanted
    at(0.001)
    with pytest.raises(InputError, match="too few for a whole batch"):
        rows_of(DataLoader(data, batch_size=8, drop_last=True))


def test_what_cannot_be_cut_is_refused(at):
    """Proves that no loader trains on everything silently: one without rows by number, with self-made batches,
    or that keeps its position."""
    torch = need("torch")
    from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, TensorDataset

    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(9))

    class Own(BatchSampler):
        pass

    class Stateful(list):
        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    data = TensorDataset(torch.arange(50))
    at(0.5)
    cases = {
        "IterableDataset": DataLoader(Stream()),
        "Own": DataLoader(data, batch_sampler=Own(SequentialSampler(data), 4, False)),
        "tracks its own position": Stateful([1, 2, 3]),
    }
    for words, loader in cases.items():
        with pytest.raises(InputError, match=words):
            rows_of(loader)
        assert rows_of(loader, cut=False)


def test_each_rank_gets_as_many_rows(at):
    """Proves that a DistributedSampler deals the rung to the ranks: all of it, to each as much, shuffled by epoch; and
    that a sampler which could leave the ranks unequal is refused."""
    torch = need("torch")
    from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

    from trackway._data.share import share_of

    data = TensorDataset(torch.arange(501))
    at(0.1)
    wanted = trackway.rung_indexes(501)
    for drop_last in (False, True):
        dealt = {}
        for rank in range(3):
            sampler = DistributedSampler(data, num_replicas=3, rank=rank, shuffle=True, seed=3, drop_last=drop_last)
            loader = DataLoader(data, batch_size=4, sampler=sampler)
            orders = []
            for epoch in (0, 1):
                sampler.set_epoch(epoch)
                name, cut = share_of(loader, 3).of_torch(loader)
                assert name == "batch_sampler"
                orders.append([row for batch in cut for row in batch])
            assert orders[0] != orders[1]
            dealt[rank] = orders[0]
        assert len({len(rows) for rows in dealt.values()}) == 1
        together = {row for rows in dealt.values() for row in rows}
        assert together == set(wanted) or drop_last and together < set(wanted)
    with pytest.raises(InputError, match="different numbers of rows"):
        share_of(DataLoader(data, sampler=SubsetRandomSampler(range(9))), 2)


def test_a_rung_resumes_in_the_middle_of_its_pass(tmp_path, at, monkeypatch):
    """Proves that after a resume the rest of the pass is what it would have been, with replay and without."""
    torch = need("torch")
    from torch.utils.data import DataLoader, TensorDataset

    def train(folder, epoch, steps, replay):
        for name, value in attempt_environment(folder, epoch).items():
            monkeypatch.setenv(name, value)
        at(0.2)
        run = trackway.attach()
        run._sigterm_watched = True
        loader = DataLoader(TensorDataset(torch.arange(400)), batch_size=4, shuffle=True)
        seen = []
        run.resume(model=torch.nn.Linear(1, 1))
        for step, (batch,) in run.batches(loader, steps=steps, replay=replay):
            seen.append(batch.tolist())
            run.checkpoint(step, force=step == steps, wait=True)
        run.finish()
        return seen

    for replay in (True, False):
        trackway.seed(5)
        whole = train(tmp_path / f"whole-{replay}", 1, 30, replay)
        trackway.seed(5)
        folder = tmp_path / f"parts-{replay}"
        parts = train(folder, 1, 13, replay)
        trackway.seed(6)
        parts += train(folder, 2, 30, replay)
        assert parts == whole and len(whole) == 30


def test_a_warm_rung_takes_the_weights_and_nothing_else(tmp_path, at, monkeypatch):
    """Proves that a rung begins at step 1 with the weights of the rung before, and with a new optimizer, schedule,
    place in the data and generators; that a resume takes precedence; and that a script without a model gets an error."""
    torch = need("torch")

    def start(root, epoch, **more):
        for name, value in attempt_environment(tmp_path, epoch).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("TRACKWAY_CHECKPOINTS", str(tmp_path / root))
        for name, value in more.items():
            monkeypatch.setenv(name, value)
        run = trackway.attach()
        run._sigterm_watched = True
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.Adam(model.parameters())
        return run, model, optimizer

    at(0.01)
    run, before, optimizer = start("train-1%", 1)
    run.resume(model=before, optimizer=optimizer)
    before(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    run.checkpoint(7, force=True, wait=True)
    run.finish()

    at(0.1)
    warm = {"TRACKWAY_WARM_START": str(tmp_path / "train-1%")}
    run, model, optimizer = start("train-10%", 2, **warm)
    found = run.resume(model=model, optimizer=optimizer)
    assert (int(found), found.resumed, found.warm_start) == (1, False, 7)
    assert bits(model.weight) == bits(before.weight) and not optimizer.state
    run.checkpoint(3, force=True, wait=True)
    run.finish()

    run, model, optimizer = start("train-10%", 3, **warm)
    found = run.resume(model=model, optimizer=optimizer)
    assert (int(found), found.resumed, found.warm_start) == (4, True, None)
    run.finish()
    run, model, optimizer = start("train-100%", 4, **warm)
    with pytest.raises(InputError, match="none of the components is a model"):
        run.resume(optimizer=optimizer)
    run.finish()
