"""`trackway.serve_scores` with models of XGBoost and LightGBM, fitted and called for real (docs/scoring.md)."""

import io
import json
import math
import os
import pickle
import random
import subprocess
import sys

import pytest
from conftest import need

import trackway

COLUMNS = [{"name": "age", "type": "int"}, {"name": "hours", "type": "float"}]
ROWS = "age,hours\n31,40.5\n70,\n\n18,12\n\n"
SCRIPT = """
import pickle, trackway
model = pickle.load(open("model.pickle", "rb"))
model.set_params(verbosity=3)
trackway.serve_scores(model)
"""


def people(rows=200):
    """Features with missing values, and what depends on them: a class of two, a class of three, a number."""
    pandas, draw = need("pandas"), random.Random(7)
    table = pandas.DataFrame(
        {
            "age": [draw.randint(17, 90) for _ in range(rows)],
            "hours": [draw.uniform(1, 99) if draw.random() > 0.1 else math.nan for _ in range(rows)],
        }
    )
    amount = table["age"] * 0.5 + table["hours"].fillna(40)
    return table, (amount > 60).astype(int), (amount // 40).clip(0, 2).astype(int), amount


def asked():
    """The rows of `ROWS` as a table."""
    return need("pandas").DataFrame({"age": [31, 70, 18], "hours": [40.5, math.nan, 12.0]})


def served(model, monkeypatch, columns=COLUMNS, text=ROWS):
    monkeypatch.setenv("TRACKWAY_SCORING_COLUMNS", json.dumps(columns))
    answers = io.StringIO()
    trackway.serve_scores(model, rows=io.StringIO(text, newline=""), answers=answers)
    return answers.getvalue().splitlines()


def numbers(lines):
    assert not any(line.startswith("!") for line in lines), lines
    return [float(line) for line in lines]


def models(library):
    """A classifier and a regressor that are fitted silently."""
    if library == "xgboost":
        xgboost = need("xgboost")
        return xgboost.XGBClassifier(n_estimators=20), xgboost.XGBRegressor(n_estimators=20)
    lightgbm = need("lightgbm")
    quiet = {"n_estimators": 20, "verbosity": -1}
    return lightgbm.LGBMClassifier(**quiet), lightgbm.LGBMRegressor(**quiet)


both = pytest.mark.parametrize("library", ["xgboost", "lightgbm"])


@both
def test_fitted_models_are_served(library, monkeypatch):
    """Proves that a classifier of two classes returns the probability of the second, one of three its classes, and a regressor its
    numbers: the very numbers that the model gives for these rows, a missing value among them."""
    classifier, regressor = models(library)
    table, two, three, amount = people()
    classifier.fit(table, two)
    chances = classifier.predict_proba(asked())[:, 1].tolist()
    assert numbers(served(classifier, monkeypatch)) == chances
    assert min(chances) < 0.5 < max(chances)
    classifier.fit(table, three)
    assert served(classifier, monkeypatch) == [str(it) for it in classifier.predict(asked()).tolist()]
    regressor.fit(table, amount)
    assert numbers(served(regressor, monkeypatch)) == regressor.predict(asked()).tolist()


def test_classes_that_are_texts(monkeypatch):
    """Proves that a model of two named classes returns the probability of the one that comes last, and of three their names."""
    model, _ = models("lightgbm")
    table, two, three, _ = people()
    model.fit(table, two.map({0: "poor", 1: "rich"}))
    assert numbers(served(model, monkeypatch)) == model.predict_proba(asked())[:, 1].tolist()
    model.fit(table, three.map({0: "low", 1: "middle", 2: "high"}))
    assert served(model, monkeypatch) == model.predict(asked()).tolist()


def test_boosters_themselves(monkeypatch):
    """Proves that the boosters of both libraries are served without the classes around them; XGBoost's takes no table by itself."""
    xgboost, lightgbm = need("xgboost"), need("lightgbm")
    table, two, _, _ = people()
    booster = lightgbm.train({"objective": "binary", "verbosity": -1}, lightgbm.Dataset(table, two), 20)
    assert numbers(served(booster, monkeypatch)) == booster.predict(asked()).tolist()
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(table, two), 20)
    assert numbers(served(booster, monkeypatch)) == booster.predict(xgboost.DMatrix(asked())).tolist()


@both
def test_columns_that_a_model_does_not_take_are_reported(library, monkeypatch):
    """Proves that a string for a model of numbers refuses its batch with the reason."""
    classifier, _ = models(library)
    table, two, _, _ = people()
    classifier.fit(table[["age"]].assign(sector=0), two)
    columns = [COLUMNS[0], {"name": "sector", "type": "text"}]
    lines = served(classifier, monkeypatch, columns, "age,sector\n31,private\n\n40,private\n\n")
    assert len(lines) == 2 and all(line.startswith("! ValueError: ") and "sector" in line for line in lines), lines


@both
def test_a_stored_model_as_a_process(library, tmp_path):
    """Proves as a process, with a model that was stored, that only answers reach standard output, whatever the library prints."""
    classifier, _ = models(library)
    table, two, _, _ = people()
    classifier.fit(table, two)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(classifier))
    (tmp_path / "score.py").write_text(SCRIPT)
    environment = {**os.environ, "TRACKWAY_SCORING_COLUMNS": json.dumps(COLUMNS)}
    done = subprocess.run(
        [sys.executable, "score.py"], input=ROWS, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert numbers(done.stdout.splitlines()) == classifier.predict_proba(asked())[:, 1].tolist()
