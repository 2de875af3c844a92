"""A small classifier that does everything right, or one thing wrong: `python train_flawed.py FLAW`, `none` for none.

The flaws are what `trackway rehearse` must find; `FLAWS` has the diagnosis of each."""

import os
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import trackway

CLASSES, FEATURES = 10, 20

# What is done wrong, and what it must be called.
FLAWS = {
    "learning_rate_times_1000": "learning_rate_too_high",
    "learning_rate_over_1000000": "learning_rate_too_low",
    "frozen_body": "frozen_layers",
    "everything_frozen": "nothing_trainable",
    "labels_shuffled_in_loop": "labels_shuffled",
    "labels_shuffled_in_collate": "labels_shuffled",
    "labels_rolled_in_collate": "labels_unpaired",
    "same_batch": "same_batch",
    "inputs_times_10000": "input_not_normalised",
    "constant_input": "constant_input",
    "nan_feature": "nan_in_batch",
    "loss_summed": "loss_summed",
    "zero_grad_missing": "gradients_not_zeroed",
    "step_missing": "optimizer_never_steps",
    "backward_missing": "no_backward",
    "softmax_before_cross_entropy": "softmax_twice",
    "scores_to_nll_loss": "no_log_softmax",
    "mse_broadcast": "shapes_differ",
    "other_models_optimizer": "optimizer_of_other_parameters",
    "body_not_in_optimizer": "not_in_optimizer",
    "body_detached": "detached_from_loss",
    "loss_without_graph": "detached_from_loss",
    "labels_off_by_one": "labels_out_of_range",
    "labels_as_floats": "label_dtype",
    "evaluation_mode": "evaluation_mode",
    "clipped_to_nothing": "gradients_clipped_away",
    "dropout_of_everything": "dropout",
    "optimizer_not_saved": "optimizer_not_restored",
    "model_made_anew_after_resume": "model_not_restored",
    "never_saves": "not_saved",
}


class Clouds(Dataset):
    """Points around ten centres, which are their classes; a tenth of the labels is wrong, as in real data."""

    def __init__(self, flaw: str, seed: int):
        generator = torch.Generator().manual_seed(seed)
        centres = torch.randn(CLASSES, FEATURES, generator=generator)
        self.labels = torch.randint(0, CLASSES, (2000,), generator=generator)
        self.points = centres[self.labels] + 0.7 * torch.randn(2000, FEATURES, generator=generator)
        wrong = torch.rand(2000, generator=generator) < 0.1
        self.labels = torch.where(wrong, torch.randint(0, CLASSES, (2000,), generator=generator), self.labels)
        if flaw == "inputs_times_10000":
            self.points *= 10_000
        if flaw == "constant_input":
            self.points.zero_()
        if flaw == "nan_feature":
            self.points[:, 3] = torch.where(torch.rand(2000, generator=generator) < 0.1, torch.nan, self.points[:, 3])
        if flaw == "labels_off_by_one":
            self.labels += 1
        if flaw == "labels_as_floats":
            self.labels = self.labels.float()
        self.flaw = flaw

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        if self.flaw == "same_batch":
            index = 0
        return self.points[index], self.labels[index]


def collate(flaw):
    def join(items):
        points, labels = torch.stack([point for point, _ in items]), torch.stack([label for _, label in items])
        if flaw == "labels_shuffled_in_collate":
            labels = labels[torch.randperm(len(labels))]
        if flaw == "labels_rolled_in_collate":
            labels = labels.roll(1)
        return points, labels

    return join


class Classifier(nn.Module):
    def __init__(self, flaw):
        super().__init__()
        share = 0.99 if flaw == "dropout_of_everything" else 0.1
        norm = nn.Identity() if flaw == "inputs_times_10000" else nn.BatchNorm1d(64)
        entrance = nn.Sequential(nn.Linear(FEATURES, 64), norm, nn.ReLU(), nn.Dropout(share))
        self.body = nn.Sequential(entrance, nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 1 if flaw == "mse_broadcast" else CLASSES)
        self.flaw = flaw

    def forward(self, points):
        hidden = self.body(points)
        if self.flaw == "body_detached":
            hidden = hidden.detach()
        scores = self.head(hidden)
        return scores.softmax(1) if self.flaw == "softmax_before_cross_entropy" else scores


def loss_of(flaw, scores, labels):
    if flaw == "scores_to_nll_loss":
        return functional.nll_loss(scores, labels)
    if flaw == "mse_broadcast":
        return functional.mse_loss(scores, labels.float())
    loss = functional.cross_entropy(scores, labels, reduction="sum" if flaw == "loss_summed" else "mean")
    return loss.detach() if flaw == "loss_without_graph" else loss


def learning_rate(flaw):
    return {"learning_rate_times_1000": 3.0, "learning_rate_over_1000000": 3e-9}.get(flaw, 3e-3)


def make(flaw):
    model = Classifier(flaw)
    if flaw in ("frozen_body", "everything_frozen"):
        (model if flaw == "everything_frozen" else model.body).requires_grad_(False)
    parameters = {
        "other_models_optimizer": Classifier(flaw), "body_not_in_optimizer": model.head
    }.get(flaw, model).parameters()  # fmt: skip
    return model, torch.optim.AdamW(parameters, lr=learning_rate(flaw))


@torch.no_grad()
def validate(model, data):
    model.eval()
    points, labels = data.points[:256], data.labels[:256]
    scores = model(points)
    right = labels.long().clamp(0, CLASSES - 1)
    loss = loss_of("none", scores, right).item() if model.head.out_features > 1 else 0.0
    model.train()
    return loss


def main(flaw):
    torch.set_num_threads(1)
    seed = int(os.environ.get("TRACKWAY_SEED", "17"))
    trackway.seed(seed)
    data = Clouds(flaw, seed)
    loader = DataLoader(data, 32, shuffle=True, collate_fn=collate(flaw))
    model, optimizer = make(flaw)
    with trackway.attach() as run:
        components = {"model": model, "optimizer": optimizer}
        if flaw == "optimizer_not_saved":
            del components["optimizer"]
        start = run.resume(**components)
        if flaw == "model_made_anew_after_resume":
            model, optimizer = make(flaw)
        for step, (points, labels) in run.batches(loader, start=start, steps=1000):
            if flaw == "labels_shuffled_in_loop":
                labels = labels[torch.randperm(len(labels))]
            if flaw == "evaluation_mode":
                model.eval()
            loss = loss_of(flaw, model(points), labels)
            if flaw != "zero_grad_missing":
                optimizer.zero_grad()
            if flaw not in ("backward_missing", "loss_without_graph") or (flaw == "loss_without_graph" and step == 1):
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1e-9 if flaw == "clipped_to_nothing" else 5.0)
            if flaw != "step_missing":
                optimizer.step()
            run.log(step, loss=loss)
            if run.evaluating(step, every=100):
                run.log(step, val_loss=validate(model, data))
            if flaw != "never_saves":
                run.checkpoint(step)


if __name__ == "__main__":
    main(sys.argv[1])
