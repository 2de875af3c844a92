"""Seven clean data sets, each as a training and a test file in the folder that is named."""

import random
import sys

from sklearn import datasets


def write(name, header, rows, cut):
    for side, part in (("train", rows[:cut]), ("test", rows[cut:])):
        with open(f"{sys.argv[1]}/{name}-{side}.csv", "w") as file:
            print(",".join(header), file=file)
            for row in part:
                print(",".join(str(value) for value in row), file=file)


def main():
    for name in ("breast_cancer", "wine", "iris", "diabetes", "digits"):
        bunch = getattr(datasets, f"load_{name}")()
        header = [str(it).replace(" ", "_").replace("(", "").replace(")", "") for it in bunch.feature_names]
        rows = [[*map(float, row), label] for row, label in zip(bunch.data, bunch.target)]
        # The famous duplicate of iris is once on each side.
        random.Random(3).shuffle(rows)
        cut = len(rows) * 3 // 4
        if name == "iris":
            twins = [at for at, row in enumerate(rows) if row[:4] == [5.8, 2.7, 5.1, 1.9]]
            rows[0], rows[twins[0]] = rows[twins[0]], rows[0]
            last = max(at for at, row in enumerate(rows) if row[:4] == [5.8, 2.7, 5.1, 1.9])
            rows[-1], rows[last] = rows[last], rows[-1]
        write(name, [*header, "target"], rows, cut)
    rng = random.Random(5)
    census = []
    for _ in range(4000):
        age, years = rng.randrange(18, 80), rng.randrange(1, 17)
        hours = rng.choice((20, 40, 40, 40, 50))
        income = "high" if age + 4 * years + hours + rng.gauss(0, 25) > 130 else "low"
        census.append((age, rng.choice("fm"), years, hours, income))
    write("census", ("age", "sex", "education_years", "hours", "income"), census, 3000)
    orders = []
    for at in range(4000):
        amount = round(rng.lognormvariate(3, 1), 2)
        returned = int(rng.random() < 0.1 + 0.2 * (amount > 40))
        orders.append((f"O-{at * 7919 % 1000003:06d}", f"2024-{1 + at // 336:02d}-{1 + at // 12 % 28:02d}", amount,
                       rng.randrange(1, 9), rng.choice(("web", "shop", "phone")), returned))
    write("orders", ("order_id", "day", "amount", "items", "channel", "returned"), orders, 3024)


main()
