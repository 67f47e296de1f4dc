# %% [markdown]
# # Which scheduler for this card?
#
# A logger writes 64 KiB at a time, beside a program that waits for small reads. How long does the
# reader wait under each design, and does the answer depend on how fast the card's memory is?
#
# Run this file as a script, or cell by cell in an editor that knows `# %%`. It needs matplotlib,
# pandas and pyarrow:
#
#     python which_scheduler.py [FOLDER]
#
# writes the plots and the table to FOLDER (here, if absent).

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt

import blockyard

HERE = Path(sys.argv[1] if len(sys.argv) > 1 else ".")

JOB = """
[global]
direct=1
time_based
runtime=500ms
size=256m

[log]
ioengine=libaio
rw=write
bs=64k
iodepth=8

[reader]
ioengine=psync
rw=randread
bs=4k
"""
DEVICE = "emmc-hs400"
DESIGNS = ["mq-none", "mq-deadline", "mq-kyber", "cqe"]

# %% [markdown]
# ## One answer
#
# `whatif` gives what the command line gives, and a table of each job and direction.

# %%
answer = blockyard.whatif(JOB, DEVICE, DESIGNS, readings=0)
print(answer["why"])
frame = answer.to_pandas()
print(frame[["design", "job", "direction", "iops", "lat_p50_ns", "lat_p99_ns"]].to_string(index=False))

# %% [markdown]
# ## How long the reader waits
#
# The answer has the latency histogram of each job: here as the share of reads that take longer than
# a time.

# %%
figure, axes = plt.subplots(figsize=(7, 4))
for design, style in zip(answer["designs"], ["-", "--", "-.", ":"], strict=True):
    latency = design["jobs"][1]["read"]["lat_ns"]
    histogram = latency["histogram"]
    longer, share = latency["count"], []
    for count in histogram["count"]:
        longer -= count
        share.append(longer / latency["count"])
    milliseconds = [ns / 1e6 for ns in histogram["up_to_ns"]]
    axes.step(milliseconds, share, style, where="post", label=design["name"])
axes.set(xscale="log", yscale="log", xlabel="read latency, ms", ylabel="share of reads that take longer")
axes.legend()
figure.tight_layout()
figure.savefig(HERE / "reader.png", dpi=120)

# %% [markdown]
# ## Another card
#
# The time to program a page is assumed in this profile. A sweep over it, with eight seeds each,
# shows what hangs on it.

# %%
PROGRAM = ["70us", "135us", "270us", "540us"]
table = blockyard.sweep(
    {
        "job": JOB,
        "device": DEVICE,
        "design": DESIGNS,
        "seed": range(1, 9),
        "set": {"card.write.program": PROGRAM},
    }
)
table.to_arrow()  # also for Parquet files, DuckDB, polars
points = table.to_pandas()
points.to_csv(HERE / "sweep.csv", index=False)

# %%
figure, both = plt.subplots(1, 2, figsize=(9, 4), sharex=True)
for axes, job, column, scale, label in [
    (both[0], "reader", "lat_p99_ns", 1e-6, "reader: p99, ms"),
    (both[1], "log", "bytes_per_s", 2**-20, "log: MiB/s"),
]:
    grouped = points[points["job"] == job].groupby(["design", "card.write.program"])[column]
    for design, style in zip(DESIGNS, ["o-", "s--", "^-.", "D:"], strict=True):
        values = [grouped.get_group((design, program)) * scale for program in PROGRAM]
        middle = [of.mean() for of in values]
        reach = [
            [at - of.min() for at, of in zip(middle, values, strict=True)],
            [of.max() - at for at, of in zip(middle, values, strict=True)],
        ]
        axes.errorbar(PROGRAM, middle, yerr=reach, fmt=style, capsize=3, label=design)
    axes.set(xlabel="time to program a page", ylabel=label)
    axes.set_ylim(bottom=0)
both[0].legend()
figure.tight_layout()
figure.savefig(HERE / "sweep.png", dpi=120)
print(f"{len(points)} rows; plots and table in {HERE.resolve()}")
