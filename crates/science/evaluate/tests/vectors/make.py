#!/usr/bin/env python3
"""Writes agreement.json: small tables of predictions, and what scikit-learn, Fairlearn, jiwer, scikit-uplift and pycocotools
make of them.

Usage: make.py > agreement.json, with scikit-learn 1.9, fairlearn 0.15, jiwer 4, scikit-uplift 0.5 and pycocotools 2.0. What none of them has (expected
calibration error, pass@k, reciprocal rank) is computed here, straight from its definition.
"""

import contextlib
import json
import math
import sys
from itertools import combinations

import fairlearn.metrics as fair
import jiwer
import numpy as np
import sklearn.metrics as sk
import sklift.metrics as lift
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

rng = np.random.default_rng(6)


def classes_of(truth, predicted, positive=None):
    """What only needs classes."""
    average = {"average": "binary", "pos_label": positive} if positive is not None else {"average": "macro"}
    precision, recall, f1, _ = sk.precision_recall_fscore_support(truth, predicted, zero_division=0, **average)
    return {
        "accuracy": sk.accuracy_score(truth, predicted),
        "balanced_accuracy": sk.balanced_accuracy_score(truth, predicted),
        "precision": precision,
        "recall": recall,
        "f1": f1,
    }


def calibration_error(probability, came_true, bins=15):
    place = np.clip(np.ceil(probability * bins).astype(int), 1, bins) - 1
    gaps = [abs((probability - came_true)[place == one].sum()) for one in range(bins)]
    return sum(gaps) / len(probability)


def binary(rows, ties):
    truth = (rng.random(rows) < 0.35).astype(int)
    score = 1 / (1 + np.exp(-(1.6 * truth - 1 + rng.normal(0, 1.2, rows))))
    score = np.round(score, 1) if ties else score
    predicted = (score >= 0.5).astype(int)
    precision, recall, _ = sk.precision_recall_curve(truth, score)
    expected = classes_of(truth, predicted, positive=1) | {
        "sensitivity": sk.recall_score(truth, predicted),
        "specificity": sk.recall_score(truth, predicted, pos_label=0),
        "roc_auc": sk.roc_auc_score(truth, score),
        "average_precision": sk.average_precision_score(truth, score),
        "log_loss": sk.log_loss(truth, score),
        "brier": sk.brier_score_loss(truth, score),
        "ece": calibration_error(score, truth),
        "precision_at_recall": precision[recall >= 0.9].max(),
    }
    return {"columns": {"label": truth, "prediction": predicted, "score": score}, "metrics": expected}


def multiclass(rows):
    names = np.array(["cat", "dog", "fox", "owl"])
    truth = rng.integers(0, 4, rows)
    logits = rng.normal(0, 1, (rows, 4)) + 1.5 * np.eye(4)[truth]
    probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    probability = np.round(probability, 4)
    probability[:, 3] = 1 - probability[:, :3].sum(axis=1)
    predicted = probability.argmax(axis=1)
    expected = classes_of(truth, predicted) | {
        "roc_auc": sk.roc_auc_score(truth, probability, multi_class="ovr"),
        "average_precision": sk.average_precision_score(np.eye(4)[truth], probability, average="macro"),
        "log_loss": sk.log_loss(truth, probability),
        "brier": sk.brier_score_loss(truth, probability),
        "ece": calibration_error(probability.max(axis=1), (predicted == truth).astype(int)),
    }
    columns = {"label": names[truth], "prediction": names[predicted]}
    columns |= {f"score_{name}": probability[:, place] for place, name in enumerate(names)}
    per_class = sk.precision_recall_fscore_support(truth, predicted, zero_division=0)
    per_class = {name: [per_class[k][place] for k in range(3)] for place, name in enumerate(names)}
    return {"columns": columns, "metrics": expected, "classes": per_class}


def absent_class():
    """A class that is predicted and never true, and one that is true and never predicted."""
    truth = np.array(["a", "a", "b", "b", "c", "a", "b"])
    predicted = np.array(["a", "b", "b", "d", "b", "a", "b"])
    expected = classes_of(truth, predicted)
    return {"columns": {"label": truth, "prediction": predicted}, "metrics": expected}


def regression(rows):
    truth = rng.normal(10, 4, rows)
    predicted = truth + rng.normal(0.3, 1.5, rows)
    quantiles = {0.1: predicted - 2, 0.9: predicted + 1.5}
    pinball = {share: sk.mean_pinball_loss(truth, values, alpha=share) for share, values in quantiles.items()}
    expected = {
        "mae": sk.mean_absolute_error(truth, predicted),
        "rmse": sk.root_mean_squared_error(truth, predicted),
        "mape": sk.mean_absolute_percentage_error(truth, predicted),
        "r2": sk.r2_score(truth, predicted),
        "bias": np.mean(predicted - truth),
        "relative_bias": predicted.sum() / truth.sum() - 1,
        "wape": np.abs(predicted - truth).sum() / np.abs(truth).sum(),
        "pinball": np.mean(list(pinball.values())),
    } | {f"pinball_{share}": loss for share, loss in pinball.items()}
    columns = {"label": truth, "prediction": predicted}
    columns |= {f"quantile_{share}": values for share, values in quantiles.items()}
    return {"columns": columns, "metrics": expected}


def median(rows):
    truth = rng.normal(0, 3, rows)
    predicted = truth * 0.9
    expected = {"pinball": sk.mean_pinball_loss(truth, predicted), "r2": sk.r2_score(truth, predicted)}
    return {"columns": {"label": truth, "prediction": predicted}, "metrics": expected}


def language(rows):
    tokens = rng.integers(3, 40, rows)
    size = tokens * 4 + rng.integers(0, 5, rows)
    loss = tokens * rng.gamma(4, 0.5, rows)
    mean = loss.sum() / tokens.sum()
    expected = {
        "loss": mean,
        "perplexity": math.exp(mean),
        "bits_per_byte": loss.sum() / math.log(2) / size.sum(),
    }
    return {"columns": {"loss": loss, "tokens": tokens, "bytes": size}, "metrics": expected}


def completions(tasks):
    ids, correct, right_of = [], [], []
    for task in range(tasks):
        right = rng.integers(0, 2, 6)
        right_of.append(right)
        ids += [f"task {task}"] * 6
        correct += right.tolist()

    def pass_at(k):
        """Every choice of k completions, counted one by one."""
        return np.mean([np.mean([max(choice) for choice in combinations(right, k)]) for right in right_of])

    expected = {f"pass_at_{k}": pass_at(k) for k in (1, 2, 5)}
    return {"columns": {"task_id": ids, "correct": correct}, "metrics": expected}


def answers():
    label = [f"answer {row}" for row in range(300)]
    prediction = [text if row % 3 else text.upper() for row, text in enumerate(label)]
    return {"columns": {"label": label, "prediction": prediction}, "metrics": {"exact_match": 200 / 300}}


def transcription():
    words = "the a cat dog sat ran on under mat log and then slept".split()
    said, heard = [], []
    for _ in range(40):
        line = list(rng.choice(words, rng.integers(3, 12)))
        said.append(" ".join(line))
        for _ in range(rng.integers(0, 4)):
            place = rng.integers(0, len(line))
            what = rng.integers(0, 3)
            if what == 0:
                line[place] = str(rng.choice(words))
            elif what == 1:
                line.insert(place, str(rng.choice(words)))
            elif len(line) > 1:
                del line[place]
        heard.append(" ".join(line))
    return {"columns": {"reference": said, "hypothesis": heard}, "metrics": {"wer": jiwer.wer(said, heard)}}


def ranking(queries, ties):
    rows = {"query": [], "relevance": [], "score": []}
    ndcg, reciprocal = [], []
    for query in range(queries):
        documents = 14
        relevance = rng.choice([0, 0, 0, 1, 2, 3], documents) if query else np.zeros(documents, int)
        score = rng.normal(0, 1, documents) + relevance * 0.4
        score = np.round(score) if ties else score
        rows["query"] += [f"q{query}"] * documents
        rows["relevance"] += relevance.tolist()
        rows["score"] += score.tolist()
        ndcg.append(sk.ndcg_score([relevance], [score], k=10))
        # The last of its tie counts.
        places = [((score > score[one]).sum() + ((score == score[one]) & (relevance == 0)).sum() + 1)
                  for one in range(documents) if relevance[one] > 0]
        reciprocal.append(1 / min(places) if places else 0)
    return {"columns": rows, "metrics": {"ndcg": np.mean(ndcg), "mrr": np.mean(reciprocal)}}


def fairness(rows):
    group = rng.choice(["red", "green", "blue"], rows, p=[0.5, 0.3, 0.2])
    truth = (rng.random(rows) < np.where(group == "red", 0.5, 0.3)).astype(int)
    predicted = np.where(rng.random(rows) < np.where(group == "blue", 0.7, 0.85), truth, 1 - truth)
    by = {"sensitive_features": group}
    frame = fair.MetricFrame(
        metrics={
            "accuracy": sk.accuracy_score,
            "selection_rate": fair.selection_rate,
            "true_positive_rate": fair.true_positive_rate,
            "false_positive_rate": fair.false_positive_rate,
        },
        y_true=truth, y_pred=predicted, sensitive_features=group,
    )
    measures = {
        "demographic_parity": fair.demographic_parity_difference(truth, predicted, **by),
        "demographic_parity_ratio": fair.demographic_parity_ratio(truth, predicted, **by),
        "equal_opportunity": fair.equal_opportunity_difference(truth, predicted, **by),
        "equal_opportunity_ratio": fair.equal_opportunity_ratio(truth, predicted, **by),
        "equalized_odds": fair.equalized_odds_difference(truth, predicted, **by),
        "equalized_odds_ratio": fair.equalized_odds_ratio(truth, predicted, **by),
    }
    groups = {name: row.to_dict() for name, row in frame.by_group.iterrows()}
    columns = {"label": truth, "prediction": predicted, "colour": group}
    return {"columns": columns, "metrics": {}, "fairness": {"measures": measures, "groups": groups}}


def fairness_of_classes(rows):
    """MetricFrame of each class against the others: the largest difference between groups, over the classes."""
    rng = np.random.default_rng(41)
    names = np.array(["cat", "dog", "fox"])
    group = rng.choice(["red", "green", "blue"], rows, p=[0.5, 0.3, 0.2])
    truth = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    right = rng.random(rows) < np.where((group == "blue") & (truth == 1), 0.5, 0.85)
    predicted = np.where(right, truth, (truth + rng.integers(1, 3, rows)) % 3)
    rates = ["selection_rate", "true_positive_rate", "false_positive_rate"]
    by_class = {
        name: fair.MetricFrame(
            metrics={rate: getattr(fair, rate) for rate in rates},
            y_true=(truth == place).astype(int), y_pred=(predicted == place).astype(int), sensitive_features=group,
        )
        for place, name in enumerate(names)
    }
    compared = {"demographic_parity": rates[:1], "equal_opportunity": rates[1:2], "equalized_odds": rates[1:]}
    gaps = {
        measure: {name: max(frame.difference()[of]) for name, frame in by_class.items()}
        for measure, of in compared.items()
    }
    ratios = {
        f"{measure}_ratio": {name: min(frame.ratio()[of]) for name, frame in by_class.items()}
        for measure, of in compared.items()
    }
    worst = {measure: max(gap, key=gap.get) for measure, gap in gaps.items()}
    worst |= {measure: min(ratio, key=ratio.get) for measure, ratio in ratios.items()}
    groups = {
        one: {"accuracy": sk.accuracy_score(truth[group == one], predicted[group == one])}
        | {f"{rate}_{name}": by_class[name].by_group[rate][one] for rate in rates for name in worst.values()}
        for one in ["red", "green", "blue"]
    }
    measures = {measure: max(gap.values()) for measure, gap in gaps.items()}
    measures |= {measure: min(ratio.values()) for measure, ratio in ratios.items()}
    columns = {"label": names[truth], "prediction": names[predicted], "colour": group}
    return {
        "columns": columns,
        "metrics": {},
        "fairness": {"measures": measures, "groups": groups, "worst_classes": worst},
    }


def fairness_of_values(rows):
    rng = np.random.default_rng(42)
    group = rng.choice(["red", "green", "blue"], rows, p=[0.5, 0.3, 0.2])
    truth = rng.normal(10, 3, rows)
    predicted = truth + rng.normal(np.where(group == "green", 0.8, 0), np.where(group == "blue", 2, 1))
    frame = fair.MetricFrame(
        metrics={
            "mae": sk.mean_absolute_error,
            "mean_prediction": fair.mean_prediction,
            "bias": lambda truth, predicted: np.mean(predicted - truth),
        },
        y_true=truth, y_pred=predicted, sensitive_features=group,
    )
    gaps = frame.difference()
    measures = {"mean_error_parity": gaps["mae"], "mean_prediction_parity": gaps["mean_prediction"]}
    groups = {name: row.to_dict() for name, row in frame.by_group.iterrows()}
    columns = {"label": truth, "prediction": predicted, "colour": group}
    return {"columns": columns, "metrics": {}, "fairness": {"measures": measures, "groups": groups}}


def uplift(rows, ties):
    rng = np.random.default_rng(51)
    treatment = (rng.random(rows) < 0.45).astype(int)
    gain = rng.normal(0, 0.3, rows)
    outcome = (rng.random(rows) < np.clip(0.3 + gain * treatment, 0, 1)).astype(int)
    score = gain + rng.normal(0, 0.3, rows)
    score = np.round(score, 1) if ties else score
    expected = {
        "qini": lift.qini_auc_score(outcome, score, treatment),
        "auuc": lift.uplift_auc_score(outcome, score, treatment),
        "ate": outcome[treatment == 1].mean() - outcome[treatment == 0].mean(),
    }
    if not ties:
        expected["uplift_at_30"] = lift.uplift_at_k(outcome, score, treatment, strategy="overall", k=0.3)
    return {"columns": {"treatment": treatment, "label": outcome, "score": score}, "metrics": expected}


def uplift_of_values(rows):
    """Outcomes that are not 0 or 1: scikit-uplift's definition, which checks outcomes, is written out."""
    rng = np.random.default_rng(52)
    treatment = (rng.random(rows) < 0.5).astype(int)
    outcome = np.round(rng.gamma(2, 10, rows) + 5 * treatment, 3)
    score = rng.normal(0, 1, rows)
    top = np.argsort(-score)[: int(rows * 0.3)]

    def effect(rows):
        return outcome[rows][treatment[rows] == 1].mean() - outcome[rows][treatment[rows] == 0].mean()

    expected = {"ate": effect(np.arange(rows)), "uplift_at_30": effect(top)}
    return {"columns": {"treatment": treatment, "label": outcome, "score": score}, "metrics": expected}


def segmentation(images):
    """Label and prediction images; scikit-learn over all pixels."""
    rng = np.random.default_rng(53)
    names = ["road", "sky", "tree"]
    truth = rng.choice(3, (images, 8, 8), p=[0.6, 0.3, 0.1])
    wrong = rng.random((images, 8, 8)) < rng.uniform(0, 0.4, (images, 1, 1))
    predicted = np.where(wrong, rng.integers(0, 3, (images, 8, 8)), truth)
    rows = {"image": [], "class": [], "true_positive": [], "false_positive": [], "false_negative": []}
    for image in range(images):
        for place, name in enumerate(names):
            is_true, is_predicted = truth[image] == place, predicted[image] == place
            values = [f"image {image}", name, (is_true & is_predicted).sum(), (~is_true & is_predicted).sum(),
                      (is_true & ~is_predicted).sum()]
            for column, value in zip(rows, values):
                rows[column].append(value)
    truth, predicted = truth.ravel(), predicted.ravel()
    expected = {
        "iou": sk.jaccard_score(truth, predicted, average="micro"),
        "dice": sk.f1_score(truth, predicted, average="micro"),
        "mean_iou": sk.jaccard_score(truth, predicted, average="macro"),
    }
    scores = sk.precision_recall_fscore_support(truth, predicted)
    classes = {name: [scores[k][place] for k in range(3)] for place, name in enumerate(names)}
    return {"columns": rows, "metrics": expected, "classes": classes}


def detection(images, ties):
    """Boxes near those of the labels, and some elsewhere; pycocotools with its defaults."""
    rng = np.random.default_rng(54)
    names = ["car", "dog", "rare"]
    columns = ["image", "class", "kind", "score", "x_min", "y_min", "x_max", "y_max"]
    rows = {name: [] for name in columns}

    def add(image, class_, kind, score, box):
        values = [f"image {image}", names[class_], kind, score, *[round(float(value), 2) for value in box]]
        for column, value in zip(columns, values):
            rows[column].append(value)

    for image in range(images):
        for _ in range(rng.integers(0, 6)):
            class_ = int(rng.choice(3, p=[0.5, 0.45, 0.05]))
            corner, size = rng.uniform(0, 60, 2), rng.uniform(8, 30, 2)
            add(image, class_, "label", 0.0, [*corner, *(corner + size)])
            for _ in range(rng.integers(0, 3)):
                off = rng.normal(0, 2.5, 4)
                score = rng.beta(4, 2)
                of_class = class_ if rng.random() < 0.9 else int(rng.integers(0, 3))
                box = np.array([*corner, *(corner + size)]) + off
                add(image, of_class, "prediction", round(score, 1 if ties else 6), box)
        if rng.random() < 0.5:
            corner = rng.uniform(0, 60, 2)
            score = round(rng.beta(2, 4), 1 if ties else 6)
            add(image, int(rng.integers(0, 3)), "prediction", score, [*corner, *(corner + rng.uniform(8, 30, 2))])
    labels, predictions = [], []
    for place, kind in enumerate(rows["kind"]):
        left, top, right, bottom = (rows[name][place] for name in columns[4:])
        box = {
            "image_id": int(rows["image"][place].split()[1]),
            "category_id": names.index(rows["class"][place]) + 1,
            "bbox": [left, top, right - left, bottom - top],
            "area": (right - left) * (bottom - top),
        }
        if kind == "label":
            labels.append(box | {"id": place + 1, "iscrowd": 0})
        else:
            predictions.append(box | {"score": rows["score"][place]})
    with contextlib.redirect_stdout(sys.stderr):
        coco = COCO()
        coco.dataset = {
            "info": {},
            "images": [{"id": image} for image in range(images)],
            "categories": [{"id": place + 1, "name": name} for place, name in enumerate(names)],
            "annotations": labels,
        }
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(predictions), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    expected = dict(zip(["map", "map_50", "map_75"], evaluation.stats[:3]))
    return {"columns": rows, "metrics": expected}


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(inner) for inner in value]
    return value.item() if hasattr(value, "item") else value


CASES = {
    "binary": binary(90, ties=False),
    "binary with ties": binary(120, ties=True),
    "classes": multiclass(120),
    "absent classes": absent_class(),
    "regression": regression(80),
    "median": median(50),
    "language model": language(40),
    "completions": completions(20),
    "answers": answers(),
    "transcription": transcription(),
    "ranking": ranking(12, ties=False),
    "ranking with ties": ranking(12, ties=True),
    "fairness": fairness(200),
    "fairness of classes": fairness_of_classes(150),
    "fairness of values": fairness_of_values(60),
    "uplift": uplift(150, ties=False),
    "uplift with ties": uplift(120, ties=True),
    "uplift of values": uplift_of_values(60),
    "segmentation": segmentation(12),
    "object detection": detection(30, ties=False),
    "object detection with ties": detection(24, ties=True),
}
json.dump(plain(CASES), sys.stdout, separators=(",", ":"))
print()
