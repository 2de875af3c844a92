"""`trackway.serve_scores` follows docs/scoring.md."""

import io
import json
import os
import subprocess
import sys
import textwrap

import pytest
from conftest import need

import trackway

COLUMNS = [{"name": "age", "type": "int"}, {"name": "sector", "type": "text"}, {"name": "old", "type": "bool"}]


def served(model, text, monkeypatch, columns=COLUMNS):
    monkeypatch.setenv("TRACKWAY_SCORING_COLUMNS", json.dumps(columns))
    answers = io.StringIO()
    trackway.serve_scores(model, rows=io.StringIO(text, newline=""), answers=answers)
    return answers.getvalue().splitlines()


def listed(batch, name):
    return list(batch[name])


def test_batches_are_answered_in_order_with_types(monkeypatch):
    """Proves that batches end at empty lines, that values have their types, and that quoted fields may hold line ends."""
    seen = []

    def score(batch):
        seen.append({name: listed(batch, name) for name in ("age", "sector", "old")})
        return [0.5] * len(seen[-1]["age"])

    lines = served(score, 'age,sector,old\n31,"a, ""b""",true\n40,"two\n\nlines",false\n\n50,,\n\n', monkeypatch)
    assert lines == ["0.5"] * 3
    assert seen[0] == {"age": [31, 40], "sector": ['a, "b"', "two\n\nlines"], "old": [True, False]}
    assert seen[1]["age"] == [50] and seen[1]["sector"] == [None] and seen[1]["old"] == [None]


def test_a_refusal_ends_its_batch_alone(monkeypatch):
    """Proves that what a model raises is a line that begins with `!`, and that the next batch is answered."""

    def score(batch):
        if any(age != age for age in listed(batch, "age")):
            raise ValueError("age is\nmissing")
        return listed(batch, "sector")

    lines = served(score, "age,sector,old\n,x,\n,y,\n\n3,z,\n\n", monkeypatch)
    assert lines == ["! ValueError: age is missing", "z"]
    too_few = served(lambda batch: [], "age,sector,old\n3,z,\n\n", monkeypatch)
    assert too_few == ["! InputError: 0 predictions for 1 rows"]
    marked = served(lambda batch: ["!"], "age,sector,old\n3,z,\n\n", monkeypatch)
    assert marked[0].startswith("! InputError: a prediction must be")


def test_models_are_served_as_they_are(monkeypatch):
    """Proves that a classifier of two classes returns the probability of the second, a regressor its prediction, and that an
    object that is not a model is an error."""
    linear_model = need("sklearn.linear_model")
    pandas = need("pandas")
    table = pandas.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
    numbers = [{"name": "x", "type": "float"}]
    classifier = linear_model.LogisticRegression().fit(table, ["a", "a", "b", "b"])
    lines = served(classifier, "x\n0\n3\n\n", monkeypatch, numbers)
    assert [float(line) for line in lines] == classifier.predict_proba(pandas.DataFrame({"x": [0.0, 3.0]}))[:, 1].tolist()
    regressor = linear_model.LinearRegression().fit(table, table["x"] * 2)
    assert float(served(regressor, "x\n5\n\n", monkeypatch, numbers)[0]) == pytest.approx(10.0)
    with pytest.raises(trackway.InputError, match="is not a model"):
        served(3, "x\n", monkeypatch, numbers)


def test_a_torch_module_is_given_numbers(monkeypatch):
    """Proves that a module gets a float32 tensor with a column for each feature, and that its one output is the answer."""
    torch = need("torch")
    module = torch.nn.Linear(2, 1)
    with torch.no_grad():
        module.weight[:] = torch.tensor([[1.0, 10.0]])
        module.bias[:] = 0.5
    columns = [{"name": "x", "type": "float"}, {"name": "y", "type": "int"}]
    assert served(module, "x,y\n2,3\n\n", monkeypatch, columns) == ["32.5"]


def test_prints_do_not_disturb(tmp_path):
    """Proves as a process that what a model prints goes to standard error, and answers alone to standard output."""
    script = tmp_path / "score.py"
    script.write_text(
        textwrap.dedent(
            """
            import trackway

            def score(batch):
                print("looking at", len(batch["x"]))
                return [value * 2 for value in batch["x"]]

            trackway.serve_scores(score)
            """
        )
    )
    environment = {**os.environ, "TRACKWAY_SCORING_COLUMNS": '[{"name": "x", "type": "float"}]'}
    done = subprocess.run(
        [sys.executable, str(script)], input="x\n1.5\n\n2\n\n", capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["3.0", "4.0"]
    assert "looking at 1" in done.stderr


def sloped(model, text, monkeypatch, gradients=None, columns=COLUMNS):
    monkeypatch.setenv("TRACKWAY_SCORING_COLUMNS", json.dumps(columns))
    monkeypatch.setenv("TRACKWAY_SCORING_GRADIENTS", "1")
    answers = io.StringIO()
    trackway.serve_scores(model, gradients=gradients, rows=io.StringIO(text, newline=""), answers=answers)
    return answers.getvalue().splitlines()


def test_gradients_follow_predictions(monkeypatch):
    """Proves that gradients follow each prediction in the order of the columns, given as a dict or a table, that columns
    without one have an empty field, and that a model without any works as before."""
    text = "age,sector,old\n2,x,true\n3,y,\n\n"

    def score(batch):
        return [age * 1.5 for age in listed(batch, "age")]

    by_column = sloped(score, text, monkeypatch, lambda batch: {"age": [1.5] * len(listed(batch, "age"))})
    assert by_column == ["3.0,1.5,,", "4.5,1.5,,"]
    table = sloped(score, text, monkeypatch, lambda batch: [[1.5, float("nan"), 0]] * 2)
    assert table == ["3.0,1.5,,0.0", "4.5,1.5,,0.0"]
    assert sloped(score, text, monkeypatch) == ["3.0", "4.5"]
    unknown = sloped(score, text, monkeypatch, lambda batch: {"weight": [1.0]})
    assert unknown == ["! InputError: there are gradients of `weight`, but no such column"]
    narrow = sloped(score, text, monkeypatch, lambda batch: [[1.5]] * 2)
    assert narrow[0].startswith("! InputError: gradients must have 2 rows and 3 columns")


def test_a_torch_module_gives_its_own_gradients(monkeypatch):
    """Proves that autograd's gradients of each row are answered, for a nonlinear model."""
    torch = need("torch")

    class Square(torch.nn.Module):
        def forward(self, inputs):
            return inputs[:, 0] ** 2 + 10 * inputs[:, 1]

    columns = [{"name": "x", "type": "float"}, {"name": "y", "type": "int"}]
    assert sloped(Square(), "x,y\n2,3\n-1,0\n\n", monkeypatch, columns=columns) == ["34.0,4.0,10.0", "1.0,-2.0,10.0"]


def test_parts_of_whole_numbers_stay(monkeypatch):
    """Proves that a tenth of a whole number reaches the model as it is."""
    seen = []

    def score(batch):
        seen.append(listed(batch, "age"))
        return [0.5] * len(seen[-1])

    served(score, "age,sector,old\n3.1,x,true\n4,y,true\n\n4,y,true\n\n", monkeypatch)
    assert seen == [[3.1, 4.0], [4]]


def test_rows_as_arrow(monkeypatch):
    """Proves that a stream of record batches is answered batch by batch, with the types that rows in CSV have."""
    pyarrow = need("pyarrow")
    columns = [*COLUMNS, {"name": "at", "type": "timestamp"}]
    monkeypatch.setenv("TRACKWAY_SCORING_COLUMNS", json.dumps(columns))
    monkeypatch.setenv("TRACKWAY_SCORING_FORMAT", "arrow")
    schema = pyarrow.schema(
        [("age", pyarrow.float64()), ("sector", pyarrow.string()), ("old", pyarrow.bool_()), ("at", pyarrow.timestamp("us", "UTC"))]
    )
    stream = io.BytesIO()
    with pyarrow.ipc.new_stream(stream, schema) as writer:
        writer.write_batch(pyarrow.record_batch([[31.0, 40.0], ["a", None], [True, None], [0, None]], schema=schema))
        writer.write_batch(pyarrow.record_batch([[None], ["b"], [False], [1_000_000]], schema=schema))
    stream.seek(0)
    seen = []

    def score(batch):
        seen.append({name: listed(batch, name) for name in ("age", "sector", "old", "at")})
        return [0.25] * len(seen[-1]["age"])

    answers = io.StringIO()
    trackway.serve_scores(score, rows=stream, answers=answers)
    assert answers.getvalue().splitlines() == ["0.25"] * 3
    assert seen[0]["age"] == [31, 40] and seen[0]["sector"] == ["a", None] and seen[0]["old"] == [True, None]
    assert seen[0]["at"][0].isoformat().startswith("1970-01-01T00:00:00")
    assert seen[1]["age"][0] != seen[1]["age"][0] and seen[1]["old"] == [False] and seen[1]["at"][0].second == 1
