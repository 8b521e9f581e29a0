"""Datasets of `suiro export parquet`, as DuckDB, polars and pyarrow read them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import suiro

SCENARIO = """
name = 'tables'
title = 'a test'
duration = '300 ms'
repetitions = 2
[matrix]
kind = ['one', '1/2 = 50 %', 'ünï "c" [d] {{e}} ^']
trial = ['5', '6']
[topology]
shape = 'dumbbell'
link = 'access'
[links.access]
rate = '10 Mbit/s'
[media]
[endpoints.it]
kind = 'command'
host = 'client'
command = ['sh', '-c', 'echo ${trial} "${kind}"; ping -q -i 0.02 -c 5 server; exec sleep 100']
"""

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def results(binary: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve trials, and their dataset."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "tables.toml").write_text(SCENARIO.replace("{{", "{").replace("}}", "}"))
    command = [binary, "run", str(folder / "tables.toml"), "--out", str(folder / "out"), "--retries", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    command = [binary, "export", "parquet", str(folder / "out"), "--out", str(folder / "dataset")]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def expected(folder: Path) -> Rows:
    """The rows of table `link` by the trials' own files."""
    run = suiro.load(folder / "out")
    frame = run.table("link", invalid=True)
    assert frame.columns[:4] == ["kind", "axis.trial", "repetition", "trial"], "an axis can have the name of a column"
    return sorted_rows(frame.to_arrow())


def sorted_rows(table: pa.Table) -> Rows:
    """Rows that are compared: in one order, whatever reader gave them."""
    rows = table.to_pylist()
    for row in rows:
        row.pop("valid", None), row.pop("file", None)
    return sorted(rows, key=lambda row: (row["trial"], row["direction"], row["packet"], row["t_ns"]))


@pytest.mark.slow
def test_a_dataset_has_the_rows_of_all_trials(results: Path) -> None:
    link = results / "dataset" / "link"
    whole = expected(results)
    assert whole and len({row["trial"] for row in whole}) == 12
    found = ds.dataset(link, partitioning=ds.partitioning(flavor="hive", schema=pa.schema({"kind": pa.string(), "axis.trial": pa.string()})))
    names = list(whole[0])
    assert sorted_rows(found.to_table().select([*names, "valid", "file"])) == whole
    files = sorted(link.rglob("*.parquet"))
    assert len(files) == 6, "one per cell"
    known = pq.read_metadata(files[0]).metadata
    assert json.loads(known[b"suiro.units"])["queue_bytes"] == "B" and known[b"suiro.table"] == b"link"


@pytest.mark.slow
def test_polars_reads_it(results: Path) -> None:
    polars = pytest.importorskip("polars")
    whole = expected(results)
    schema = {"kind": polars.String, "axis.trial": polars.String}
    frame = polars.scan_parquet(results / "dataset" / "link", hive_partitioning=True, hive_schema=schema).collect()
    assert sorted_rows(frame.select([*whole[0], "valid", "file"]).to_arrow()) == whole


@pytest.mark.slow
def test_duckdb_reads_it(results: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    whole = expected(results)
    source = f"read_parquet('{results}/dataset/link/**/*.parquet', hive_partitioning = true, hive_types_autocast = false)"
    columns = ", ".join(f'"{name}"' for name in whole[0])
    table = duckdb.sql(f"select {columns}, valid, file from {source}").to_arrow_table()
    assert sorted_rows(table) == whole
    kinds = duckdb.sql(f"select distinct kind from {source} where valid order by kind").fetchall()
    assert {kind for (kind,) in kinds} <= {row["kind"] for row in whole}
