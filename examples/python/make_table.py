#!/usr/bin/env python3
"""Writes a made-up census table in the exact format of the published Adult files, for machines without them.

`adult-train.csv` and `adult-test.csv`: no header, a blank after each comma, `?` where a value is missing, and in the
test file a full stop after every label. The same seed gives the same bytes. Standard library only.
"""

import argparse
import math
import random
from pathlib import Path

EDUCATION = ["HS-grad", "Some-college", "Assoc-voc", "Bachelors", "Masters", "Doctorate"]
EDUCATION_YEARS = {"HS-grad": 9, "Some-college": 10, "Assoc-voc": 11, "Bachelors": 13, "Masters": 14, "Doctorate": 16}
WORKCLASS = ["Private", "Self-emp-not-inc", "Local-gov", "State-gov", "Federal-gov"]
MARITAL = ["Never-married", "Married-civ-spouse", "Divorced", "Widowed"]
OCCUPATION = ["Sales", "Craft-repair", "Exec-managerial", "Prof-specialty", "Adm-clerical", "Other-service"]
RACE = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]
COUNTRY = ["United-States", "Mexico", "Philippines", "Germany", "Canada"]
MISSING_SHARE = 0.04


def person(rng: random.Random) -> list[object]:
    """One row, without the label's full stop; the label follows from the other columns, with noise."""
    age = min(90, max(17, round(rng.gauss(38, 13))))
    education = rng.choices(EDUCATION, [36, 25, 8, 20, 8, 3])[0]
    years = EDUCATION_YEARS[education]
    marital = rng.choices(MARITAL, [max(1, 60 - age), 45, 12, max(1, age - 45)])[0]
    sex = rng.choices(["Male", "Female"], [67, 33])[0]
    hours = min(99, max(1, round(rng.gauss(40, 11))))
    gain = rng.choice([2174, 5178, 7688, 15024]) if rng.random() < 0.08 else 0
    loss = rng.choice([1485, 1887, 1902]) if gain == 0 and rng.random() < 0.05 else 0
    married = marital == "Married-civ-spouse"
    odds = -5.6 + 0.03 * (age - 38) + 0.35 * (years - 9) + 2.4 * married + 0.03 * (hours - 40) + gain / 3000 + loss / 2500
    income = ">50K" if rng.random() < 1 / (1 + math.exp(-1.4 * (odds + 1.6))) else "<=50K"
    workclass, occupation = rng.choices(WORKCLASS, [75, 9, 7, 5, 4])[0], rng.choice(OCCUPATION)
    if rng.random() < MISSING_SHARE:
        workclass = occupation = "?"
    relationship = ("Husband" if sex == "Male" else "Wife") if married else rng.choice(["Not-in-family", "Own-child", "Unmarried"])
    race, country = rng.choices(RACE, [85, 9, 3, 1, 2])[0], rng.choices(COUNTRY, [92, 4, 2, 1, 1])[0]
    weight = rng.randrange(12_285, 700_000)
    return [age, workclass, weight, education, years, marital, occupation, relationship, race, sex, gain, loss, hours, country, income]


def write(path: Path, rng: random.Random, rows: int, ending: str) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for _ in range(rows):
            file.write(", ".join(map(str, person(rng))) + ending + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the two files go")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the training file; the test file has half")
    parser.add_argument("--seed", type=int, default=17)
    options = parser.parse_args()
    if options.rows < 2:
        parser.error("--rows must be at least 2")
    options.folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(options.seed)
    write(options.folder / "adult-train.csv", rng, options.rows, "")
    write(options.folder / "adult-test.csv", rng, options.rows // 2, ".")


if __name__ == "__main__":
    main()
