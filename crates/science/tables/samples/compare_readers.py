"""Generated tables of hard values, as Trackway, DuckDB and pandas read them: what differs has to be named by a note.

    python compare_readers.py TRACKWAY [SEED] [TABLES]

Each table is written as CSV and as Parquet. Of each, the number of rows, and per column the missing values, the different values, the
smallest and the largest one, are compared as `data profile --json` sees them; the repeated rows as `data check --json` and
`data clean --json` see them, and the rows that `data clean` writes, value by value; and the schema that `data infer` writes has to hold
for the same table with `data validate --json`. CSV files are read by DuckDB and pandas as strings, so that a value is its digits; two
values are equal where these are the same number, time or string. Prints each difference that no note of Trackway's `reading` names;
exits with 1 if there is any.
"""

import collections
import datetime
import decimal
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import duckdb
import pandas
import pyarrow
import pyarrow.parquet

D = decimal.Decimal
decimal.getcontext().prec = 80

# Notes that a generated table may cause; any other one is wrong.
EXPECTED = {
    "backslashes",
    "comments",
    "date_order",
    "decimal_mark",
    "kept_as_text",
    "misfits",
    "missing_texts",
    "renamed_column",
    "rounded",
    "skipped_lines",
}

# What Trackway takes for missing besides nothing, and says so.
USUAL_MISSING = {"?", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "nil"}

# Texts that are near each other, by kind of column: read carelessly, some of them are equal.
POOLS = {
    "whole": ["0", "1", "2", "-1", "10", "100", "-7"],
    "edges": ["9223372036854775807", "9223372036854775806", "-9223372036854775808", "-9223372036854775807", "1"],
    "unsigned": ["18446744073709551615", "18446744073709551614", "9223372036854775808", "9223372036854775807", "5"],
    "both signs": ["18446744073709551615", "18446744073709551614", "-1", "-2"],
    "beyond": [
        "18446744073709551616",
        "18446744073709551617",
        "1000000000000000000000000000001",
        "1000000000000000000000000000000",
        "3",
    ],
    "long beside fractions": ["9007199254740993", "9007199254740992", "9007199254740994", "0.5"],
    "codes": ["007", "7", "0007", "00501", "501", "1"],
    "signed codes": ["-01", "-1", "+01", "1", "01.50", "1.5"],
    "telephones": ["+4915112345678", "+4915112345679", "4915112345678", "+12025550123"],
    "fractions": ["0.1", "0.10", "1.5", "1e3", "1000.0", "-2.5", ".5", "0.5", "3."],
    "fractions of 17 digits": ["123456789012345.67", "123456789012345.68", "9.007199254740992", "9.007199254740993", "0.5"],
    "long fractions": ["0.1234567890123456789", "0.1234567890123456788", "0.5", "2.25"],
    "far": ["1e400", "1e308", "-1e308", "1e-300", "2.5", "1e401"],
    "tiny": ["1e-400", "1e-300", "2e-300", "0.5"],
    "money": ["12345678901234567.89", "12345678901234567.88", "12345678901234567.90", "0.01"],
    "dates": ["2024-01-02", "2024-01-03", "2023-12-31", "1969-07-20"],
    "times": ["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.000001Z", "2024-01-02 03:04:05", "2024-01-02T05:04:05+02:00"],
    "times of BigQuery": [
        "2024-01-02 21:34:02 UTC",
        "2024-01-02 21:34:02.123456 UTC",
        "2024-01-02 21:34:02.123457 UTC",
        "2024-01-03 00:00:00 UTC",
    ],
    "zones behind a blank": [
        "2024-01-02 21:34:02 +0000",
        "2024-01-02 23:34:02 +0200",
        "2024-01-02 21:34:03 +0000",
        "2024-01-02 21:34:02 -0530",
    ],
    "nanoseconds": [
        "2024-01-02 03:04:05.123456789",
        "2024-01-02 03:04:05.123456788",
        "2024-01-02 03:04:05.123456",
        "2024-01-02 03:04:06",
    ],
    "slashes": ["2024/01/02 03:04:05", "2024/01/02 03:04:06", "2024/01/03", "2023/12/31 23:59:59"],
    "day first": ["13/01/2024", "02/01/2024", "01/02/2024", "31/12/2023"],
    "month first": ["01/13/2024", "02/01/2024", "01/02/2024", "12/31/2023"],
    "either first": ["01/02/2024", "02/01/2024", "03/04/2024", "04/03/2024"],
    "both first": ["13/01/2024", "01/13/2024", "01/02/2024", "02/01/2024"],
    "truths": ["true", "false"],
    "spelled truths": ["true", "TRUE", "False", "false"],
    "texts": ["a", "A", "b", "ab", "a b", "ä", "a\u0308", "ß", "ss", "日本"],
    "quotes": ['say "hi"', "say hi", 'a "b", c', "a b, c", "line\nbreak", "line break", "semi;colon", "tab\there"],
    "blanks": [" a", "a", "a ", "  a"],
    "underscores": ["1_000", "1000", "10_00", "2"],
    "exponents": ["1e3", "1E3", "1000", "1e2", "1d3"],
    "separators of thousands": ["1,000", "1000", "1.000", "10,00"],
    "missing": ["NA", "?", "n/a", "x", "y", "na", "NaN"],
    "versions": ["1.2", "1.20", "1.2.3", "1.10"],
    "hexadecimal": ["0x10", "16", "0x11", "17"],
}

# Pools whose texts a file must have in quotes: the blanks belong to them.
QUOTED = {"blanks"}


def tables(seed, count):
    """Tables of texts, `None` for nothing: the kinds of the columns and the rows, with repeated rows and rows that nearly repeat one."""
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        kinds = [rng.choice(list(POOLS)) for _ in range(rng.randint(2, 6))]
        # Each kind occurs, whatever the seed.
        kinds[0] = list(POOLS)[number % len(POOLS)]
        rows = []
        for _ in range(rng.randint(3, 80)):
            if rows and rng.random() < 0.4:
                row = list(rng.choice(rows))
                if rng.random() < 0.6:
                    at = rng.randrange(len(row))
                    row[at] = text(rng, kinds[at])
            else:
                row = [text(rng, kind) for kind in kinds]
            rows.append(row)
        yield number, rng, kinds, rows


def text(rng, kind):
    if rng.random() < 0.08:
        return None
    # Something else, now and then, in a column of numbers.
    if kind == "whole" and rng.random() < 0.01:
        return "many"
    return rng.choice(POOLS[kind])


# CSV


class Layout:
    """How a CSV file is written, and the options that read it."""

    def __init__(self, rng, columns):
        self.delimiter = rng.choice([",", ",", ";", "\t", "|"])
        self.end = rng.choice(["\n", "\n", "\r\n"])
        self.quotes_all = rng.random() < 0.2
        self.backslashes = rng.random() < 0.1
        self.comments = rng.random() < 0.1
        self.title = not self.comments and rng.random() < 0.1
        self.trailing = rng.random() < 0.1
        self.names = [f"c{index}" for index in range(columns)]
        if rng.random() < 0.15:
            self.names[-1] = self.names[0]

    def options(self):
        found = ["--header", "yes", "--delimiter", self.delimiter]
        found += ["--comment", "#"] if self.comments else []
        found += ["--skip-lines", "2"] if self.title else []
        found += ["--trailing-separator"] if self.trailing else []
        return found

    def cell(self, value, kind):
        if value is None:
            return ""
        needs = any(letter in value for letter in (self.delimiter, '"', "\n", "\r"))
        if not (needs or self.quotes_all or kind in QUOTED):
            return value
        return '"' + value.replace('"', '\\"' if self.backslashes else '""') + '"'

    def row(self, cells):
        return self.delimiter.join(cells) + (self.delimiter if self.trailing else "") + self.end

    def write(self, path, kinds, rows, plain=False):
        """Returns the line on which each row begins, from 1. `plain` is without what the options read."""
        title = ["Report of May" + self.end, self.end] if self.title and not plain else []
        trailing, self.trailing = self.trailing, self.trailing and not plain
        text, begins = "".join([*title, self.row(self.names)]), []
        for number, row in enumerate(rows):
            if self.comments and not plain and number % 7 == 3:
                text += '# a comment, with "one quote' + self.end
            begins.append(text.count("\n") + 1)
            text += self.row([self.cell(*cell) for cell in zip(row, kinds)])
        self.trailing = trailing
        path.write_bytes(text.encode())
        return begins


def read_by_duckdb(path, delimiter, columns, backslashes=False):
    names = {f"c{index}": "VARCHAR" for index in range(columns)}
    escape = "\\" if backslashes else '"'
    query = "select * from read_csv(?, header=true, auto_detect=false, delim=?, quote='\"', escape=?, nullstr='', columns=?)"
    return [list(row) for row in duckdb.execute(query, [str(path), delimiter, escape, names]).fetchall()]


def read_by_pandas(path, delimiter, columns, backslashes=False):
    escapes = {"escapechar": "\\", "doublequote": False} if backslashes else {}
    names = [f"c{index}" for index in range(columns)]
    frame = pandas.read_csv(
        path, sep=delimiter, header=0, names=names, dtype=str, keep_default_na=False, na_values=[""], index_col=False, **escapes
    )
    return [[None if pandas.isna(value) else value for value in row] for row in frame.astype(object).itertuples(index=False)]


# Values


NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
CODE = re.compile(r"[+-]?0\d|\+\d{7,}$")


def value_of(kind, text, day_first):
    """The value that a text is in a column of a type, exactly; `None` where it is none of that type."""
    if kind in ("int", "float"):
        if text.lower() == "nan" and kind == "float":
            return NAN
        if not NUMBER.fullmatch(text) or CODE.match(text):
            return None
        number = D(text)
        if kind == "int":
            return int(number) if number == number.to_integral_value() and "." not in text and "e" not in text.lower() else None
        return None if abs(float(number)) == float("inf") else number
    if kind == "bool":
        return {"true": True, "false": False}.get(text.lower())
    if kind == "timestamp":
        return time_of(text, day_first)
    return text


# Counted apart from other values.
NAN = object()


def time_of(text, day_first):
    """Nanoseconds since 1970."""
    try:
        return pandas.to_datetime(text, utc=True, dayfirst=day_first).value
    except (ValueError, TypeError):
        return None


def held(kind, value):
    """The value as the type holds it."""
    if kind == "float":
        return float(value)
    if kind == "timestamp":
        return value // 1000
    return value


def is_rounded(kind, value):
    """Whether the value is neither what the type holds nor the shortest number that is read as that."""
    if kind == "timestamp":
        return value % 1000 != 0
    return kind == "float" and value not in (D(float(value)), D(repr(float(value))))


def shown(kind, value):
    """A smallest or largest value of Trackway's answer, in the form of `held`."""
    if value is None or kind in ("text", "int"):
        return value
    if kind == "float":
        return float(value)
    if kind == "timestamp":
        return time_of(value, False) // 1000
    return value


# Trackway


class Answer:
    """One answer of Trackway, and the notes on reading in it."""

    def __init__(self, program, folder, command, path, *options):
        words = [program, "data", command, path, *options, "--json", "--show-values", "--home", str(folder / "home")]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        self.code = done.returncode
        self.error = done.stderr.strip()
        try:
            self.document = json.loads(done.stdout)
        except ValueError:
            self.document = None
        notes = (self.document or {}).get("reading") or []
        self.notes = [(note["kind"], note["column"], note["count"]) for note in notes]

    def count(self, kind, column):
        return sum(count for found, name, count in self.notes if (found, name) == (kind, column))

    def has(self, kind):
        return any(found == kind for found, _, _ in self.notes)

    def __getitem__(self, key):
        return self.document[key]


class Comparison:
    """Of one file with what a peer read in it."""

    def __init__(self, name, found):
        self.name = name
        self.found = found

    def differs(self, what, ours, theirs):
        if ours != theirs:
            self.found.differences.append(f"{self.name}: {what}: Trackway {ours!r}, expected {theirs!r}")

    def named(self, kind):
        self.found.named[kind] += 1


class Found:
    def __init__(self):
        self.differences = []
        self.named = collections.Counter()
        self.unread = collections.Counter()
        self.files = 0


def compare_csv_column(comparison, profile, column, texts):
    """Returns the values of a column by row, as the type of the column holds them: for comparing rows."""
    kind, name = column["type"], column["name"]

    def say(what, ours, theirs):
        return comparison.differs(f"`{name}` ({kind}): {what}", ours, theirs)

    def is_missing(text):
        return text is None or text in USUAL_MISSING

    day_first = any("day/month" in message for message in messages(profile, "date_order", name))
    values = [None if is_missing(text) else value_of(kind, text, day_first) for text in texts]
    usual = sum(text in USUAL_MISSING for text in texts)
    misfits = sum(value is None and not is_missing(text) for text, value in zip(texts, values))
    say("missing", column["null_count"], sum(map(is_missing, texts)))
    say("usual strings for missing values, noted", profile.count("missing_texts", name), usual)
    say("misfits", column["faults"]["misfits"], misfits)
    say("misfits, noted", profile.count("misfits", name), misfits)
    for kind_of_note, count in (("missing_texts", usual), ("misfits", misfits)):
        if count:
            comparison.named(kind_of_note)
    known = [value for value in values if value is not None and value is not NAN]
    say("rounded values, noted", profile.count("rounded", name), sum(is_rounded(kind, value) for value in known))
    exact, as_held = set(known), {held(kind, value) for value in known}
    if len(exact) != len(as_held):
        say("distinct is called exact", column["distinct_is_exact"], False)
        comparison.named("rounded")
    say("distinct", column["distinct_estimate"], len(as_held))
    # A profile masks the values of a column with personal data.
    is_masked = kind == "text" and "…" in str(column["min"]) + str(column["max"])
    if known and kind != "bool" and not is_masked:
        say("smallest", shown(kind, column["min"]), min(as_held))
        say("largest", shown(kind, column["max"]), max(as_held))
    return ["nan" if value is NAN else None if value is None else held(kind, value) for value in values]


def messages(answer, kind, column):
    notes = (answer.document or {}).get("reading") or []
    return [note["message"] for note in notes if (note["kind"], note["column"]) == (kind, column)]


def compare_csv(program, folder, number, rng, kinds, rows, found):
    layout = Layout(rng, len(kinds))
    path, plain = folder / "table.csv", folder / "plain" / "table.csv"
    plain.parent.mkdir(exist_ok=True)
    begins = layout.write(path, kinds, rows)
    layout.write(plain, kinds, rows, plain=True)
    name = f"table {number} as CSV ({', '.join(kinds)})"
    has_quotes = any('"' in (cell or "") for row in rows for cell in row)
    backslashes = layout.backslashes and has_quotes
    read = {
        "DuckDB": read_by_duckdb(plain, layout.delimiter, len(kinds), backslashes),
        "pandas": read_by_pandas(plain, layout.delimiter, len(kinds), backslashes),
    }
    profile = Answer(program, folder, "profile", path.name, *layout.options())
    check = Answer(program, folder, "check", path.name, *layout.options())
    output = folder / "clean.csv"
    clean = Answer(program, folder, "clean", path.name, "--out", output.name, *layout.options())
    written = read_by_pandas(output, ",", len(kinds)) if clean.document else None
    set_apart = quarantined(folder, clean) if clean.document else set()
    for peer, rows_read in read.items():
        comparison = Comparison(f"{name}, {peer}", found)
        comparison.differs("exit codes", (profile.code, check.code in (0, 3), clean.code), (0, True, 0))
        if profile.document is None or check.document is None or clean.document is None:
            found.differences.append(f"{name}: no answer: {profile.error or check.error or clean.error}")
            return
        comparison.differs("rows", profile["rows"] + profile["rows_rejected"], len(rows_read))
        comparison.differs("rows rejected", profile["rows_rejected"], 0)
        comparison.differs("notes without a cause", [note for note in profile.notes if note[0] not in EXPECTED], [])
        if len(set(layout.names)) < len(layout.names):
            comparison.differs("a repeated name, noted", profile.has("renamed_column"), True)
            comparison.named("renamed_column")
        names = [column["name"] for column in profile["columns"]]
        comparison.differs("different names of columns", len(set(names)), len(kinds))
        by_column = list(zip(*rows_read))
        pairs = zip(profile["columns"], by_column)
        values = [compare_csv_column(comparison, profile, column, texts) for column, texts in pairs]
        compare_repeats(comparison, check, list(zip(*values)))
        kept = [tuple(row) for row, line in zip(rows_read, begins) if line not in set_apart]
        distinct = [list(row) for row in dict.fromkeys(kept)]
        comparison.differs("rows that clean set apart", clean["rows_quarantined"], len(rows_read) - len(kept))
        comparison.differs("rows that clean wrote", clean["rows_written"], len(distinct))
        comparison.differs("rows that clean left out", clean["duplicates_dropped"], len(kept) - len(distinct))
        comparison.differs("what clean wrote", written, distinct)
        if set_apart:
            comparison.named("quarantined rows")
    compare_schema(Comparison(name, found), program, folder, path.name, layout.options())


def quarantined(folder, clean):
    """The lines of the rows that are set apart because a cell is not of its column's type: each is named there."""
    if clean["rows_quarantined"] == 0:
        return set()
    frame = pandas.read_csv(folder / clean["quarantine"], dtype=str)
    of_a_type = frame["reason"].str.contains("is of another type")
    return set(frame[of_a_type]["row"].astype(int))


def compare_repeats(comparison, check, rows):
    """Rows that repeat an earlier one in every value, as `data check` counts them; not where it left out identifiers."""
    findings = [finding for answer in check["checks"] for finding in answer["findings"] if finding["check"] == "rows.repeated"]
    if any("(without " in finding["message"] for finding in findings):
        return
    comparison.differs("repeated rows", sum(finding["count"] for finding in findings), len(rows) - len(set(rows)))


def compare_schema(comparison, program, folder, path, options):
    """A schema of a table holds for the table."""
    infer = Answer(program, folder, "infer", path, "--out", "schema.toml", *options)
    validate = Answer(program, folder, "validate", path, "--schema", "schema.toml", *options)
    if infer.code != 0 or validate.document is None:
        comparison.differs("schema", (infer.code, infer.error, validate.code, validate.error), "one that is written and holds")
        return
    kinds = [(finding["check"], finding["column"]) for finding in validate["findings"]]
    kinds = [kind for kind in kinds if not validate.count("misfits", kind[1])]
    comparison.differs("findings against the table's own schema", kinds, [])


# Parquet


def typed_columns(rng, rows):
    """Columns of Parquet types, by name, with values that are near each other."""
    utc = datetime.UTC
    day = datetime.date(2024, 1, 2)
    at = datetime.datetime(2024, 1, 2, 3, 4, 5, 123456)
    pools = {
        "int8": (pyarrow.int8(), [-128, 127, 0, 1]),
        "int64": (pyarrow.int64(), [2**63 - 1, 2**63 - 2, -(2**63), 2**53 + 1, 2**53]),
        "uint8": (pyarrow.uint8(), [0, 255, 254]),
        "uint64": (pyarrow.uint64(), [2**64 - 1, 2**64 - 2, 2**63, 0]),
        "float32": (pyarrow.float32(), [0.5, 1.25, -3.0, float("nan"), 16777216.0]),
        "float64": (pyarrow.float64(), [0.1, 0.1 + 2**-56, 1e308, float("inf"), float("nan"), -2.5]),
        "money": (pyarrow.decimal128(12, 2), [D("0.10"), D("0.11"), D("-5.00"), D("9999999999.99")]),
        "decimal128": (pyarrow.decimal128(38, 4), [D("12345678901234567890.1234"), D("12345678901234567890.1235"), D("1.0000")]),
        "whole decimal": (pyarrow.decimal128(38, 0), [D(2**64), D(2**64 + 1), D(10**30), D(10**30 + 1), D(1)]),
        "small whole decimal": (pyarrow.decimal128(10, 0), [D(1), D(2), D(-3)]),
        "decimal256": (pyarrow.decimal256(60, 2), [D("1e40") + D("0.01"), D("1e40") + D("0.02"), D("2.00")]),
        "date": (pyarrow.date32(), [day, datetime.date(1969, 7, 20), datetime.date(2024, 1, 3)]),
        "seconds": (pyarrow.timestamp("s"), [at.replace(microsecond=0), datetime.datetime(1969, 1, 1)]),
        "microseconds": (pyarrow.timestamp("us", tz="UTC"), [at.replace(tzinfo=utc), at.replace(microsecond=123457, tzinfo=utc)]),
        "nanoseconds": (pyarrow.timestamp("ns"), [1704164645123456789, 1704164645123456788, 1704164645000000000]),
        "bool": (pyarrow.bool_(), [True, False]),
        "string": (pyarrow.string(), ["a", "A", " a", "a ", "007", "7", "1.0", "1", "NA", ""]),
        "large string": (pyarrow.large_string(), ["x", "y\nz", 'q"r']),
        "dictionary": (pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), ["low", "high", "Low"]),
    }
    kinds = [rng.choice(list(pools)) for _ in range(rng.randint(2, 6))]
    indexes = []
    for _ in range(rows):
        if indexes and rng.random() < 0.4:
            row = list(rng.choice(indexes))
            if rng.random() < 0.6:
                at_column = rng.randrange(len(row))
                row[at_column] = rng.randrange(-1, len(pools[kinds[at_column]][1]))
        else:
            row = [rng.randrange(-1, len(pools[kind][1])) for kind in kinds]
        indexes.append(row)

    def cells(column, kind):
        return [None if row[column] < 0 else pools[kind][1][row[column]] for row in indexes]

    return kinds, [pyarrow.array(cells(column, kind), pools[kind][0]) for column, kind in enumerate(kinds)]


def parquet_values(array):
    """The values of an array: numbers exact, times in nanoseconds since 1970."""
    kind = array.type
    if pyarrow.types.is_date32(kind):
        return [None if value is None else value * 86_400 * 10**9 for value in array.cast(pyarrow.int32()).to_pylist()]
    if pyarrow.types.is_timestamp(kind):
        scale = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[kind.unit]
        return [None if value is None else value * scale for value in array.cast(pyarrow.int64()).to_pylist()]
    return array.to_pylist()


def by_duckdb(path):
    """Per column its different values (NaN is none) and its missing ones; and the different rows. `None` where DuckDB cannot read the types."""
    try:
        described = duckdb.execute("describe select * from read_parquet(?)", [str(path)]).fetchall()
        listed = ", ".join(f'"{row[0]}" as c{index}' for index, row in enumerate(described))
        duckdb.execute(f"create or replace table t as select {listed} from read_parquet(?)", [str(path)])
    except duckdb.Error:
        return None
    if any("DOUBLE" in row[1] for row in described) and has_wide_decimals(path):
        return None
    per_column = []
    for index, row in enumerate(described):
        name, is_float = f"c{index}", row[1] in ("FLOAT", "DOUBLE")
        where = f"where not isnan({name})" if is_float else ""
        distinct = duckdb.execute(f"select count(distinct {name}) from t {where}").fetchone()[0]
        missing = duckdb.execute(f"select count(*) - count({name}) from t").fetchone()[0]
        per_column.append((distinct, missing))
    return per_column, duckdb.execute("select count(*) from (select distinct * from t)").fetchone()[0]


def has_wide_decimals(path):
    return any(pyarrow.types.is_decimal256(field.type) for field in pyarrow.parquet.read_schema(path))


def compare_parquet_column(comparison, profile, column, array, of_duckdb):
    kind, name = column["type"], column["name"]

    def say(what, ours, theirs):
        return comparison.differs(f"`{name}` ({array.type} as {kind}): {what}", ours, theirs)

    values = parquet_values(array)
    is_text = pyarrow.types.is_string(array.type) or pyarrow.types.is_large_string(array.type)

    def is_nan(value):
        return isinstance(value, float) and value != value

    known = [value for value in values if value is not None and not is_nan(value)]
    series = pandas.Series(known, dtype=object)
    say("missing", column["null_count"], sum(value is None for value in values))
    say("misfits", column["faults"]["misfits"], 0)
    if kind == "timestamp":
        as_held = {value // 1000 for value in known}
    elif kind == "float":
        as_held = {float(value) for value in known}
    else:
        as_held = set(known)
    distinct = series.nunique()
    if len(as_held) != distinct:
        say("rounded values, noted", profile.count("rounded", name) > 0, True)
        say("distinct is called exact", column["distinct_is_exact"], False)
        comparison.named("rounded")
    else:
        say("distinct, pandas", column["distinct_estimate"], distinct)
        if of_duckdb:
            say("distinct, DuckDB", column["distinct_estimate"], of_duckdb[0])
    if of_duckdb:
        say("missing, DuckDB", column["null_count"], of_duckdb[1])
    is_decimal_text = pyarrow.types.is_decimal(array.type) and kind == "text"
    finite = [value for value in as_held if value not in (float("inf"), -float("inf"))] if kind == "float" else as_held
    if finite and kind != "bool" and not is_decimal_text:
        say("smallest", shown(kind, column["min"]), min(finite))
        say("largest", shown(kind, column["max"]), max(finite))
    if is_text:
        say("a column of strings is text", kind, "text")


def comparable(table):
    """The rows of a table, with one NaN that equals itself."""
    columns = [parquet_values(column.combine_chunks()) for column in table.columns]

    def same(value):
        return "nan" if isinstance(value, float) and value != value else value

    return [tuple(map(same, row)) for row in zip(*columns)]


def compare_parquet(program, folder, number, rng, found):
    kinds, arrays = typed_columns(rng, rng.randint(3, 80))
    names = [f"c{index}" for index in range(len(kinds))]
    if rng.random() < 0.15:
        names[-1] = names[0]
    path = folder / "table.parquet"
    table = pyarrow.Table.from_arrays(arrays, names=names)
    pyarrow.parquet.write_table(table, path, row_group_size=rng.choice([5, 20, 1000]))
    name = f"table {number} as Parquet ({', '.join(kinds)})"
    comparison = Comparison(name, found)
    profile = Answer(program, folder, "profile", path.name)
    clean = Answer(program, folder, "clean", path.name, "--out", "clean.parquet")
    if profile.document is None or clean.document is None:
        found.differences.append(f"{name}: no answer: {profile.error or clean.error}")
        return
    of_duckdb = by_duckdb(path)
    if of_duckdb is None:
        found.unread["DuckDB"] += 1
    comparison.differs("rows", (profile["rows"], profile["rows_rejected"]), (table.num_rows, 0))
    if len(set(names)) < len(names):
        comparison.differs("a repeated name, noted", profile.has("renamed_column"), True)
        comparison.named("renamed_column")
    comparison.differs("columns", len(profile["columns"]), len(kinds))
    stored = pyarrow.parquet.ParquetFile(path).read()
    for index, (column, array) in enumerate(zip(profile["columns"], stored.columns)):
        compare_parquet_column(comparison, profile, column, array.combine_chunks(), of_duckdb and of_duckdb[0][index])
    distinct = list(dict.fromkeys(comparable(stored)))
    comparison.differs("rows that clean wrote", clean["rows_written"], len(distinct))
    if of_duckdb:
        comparison.differs("rows that clean wrote, DuckDB", clean["rows_written"], of_duckdb[1])
    written = pyarrow.parquet.ParquetFile(folder / "clean.parquet").read()
    comparison.differs(
        "types that clean wrote", [str(kind) for kind in written.schema.types], [str(kind) for kind in stored.schema.types]
    )
    comparison.differs("what clean wrote", comparable(written), distinct)
    compare_schema(comparison, program, folder, path.name, [])


def main(program, seed="1", count="120"):
    program = str(pathlib.Path(program).resolve())
    found = Found()
    for number, rng, kinds, rows in tables(seed, int(count)):
        with tempfile.TemporaryDirectory() as folder:
            compare_csv(program, pathlib.Path(folder), number, rng, kinds, rows, found)
        with tempfile.TemporaryDirectory() as folder:
            compare_parquet(program, pathlib.Path(folder), number, rng, found)
        found.files += 2
    for difference in found.differences:
        print(difference)
    named = ", ".join(f"{count} {kind}" for kind, count in sorted(found.named.items()))
    print(f"seed {seed}: {found.files} files, {len(found.differences)} differences that are not named; named: {named or 'none'}")
    if found.unread:
        print(f"files with types that DuckDB does not read: {found.unread['DuckDB']}")
    sys.exit(1 if found.differences else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
