//! fio as a yardstick: random reads by one of its engines.
#![allow(clippy::float_arithmetic, reason = "this is a report")]

use crate::DEPTH;
use core::time::Duration;
use std::io;
use std::process::Command;

/// Thousand I/Os per second of random 4 KiB reads at [`DEPTH`] by the engine with this name, on the
/// first GiB of a file or, with the null engine, on nothing. fio changes no file.
///
/// # Errors
///
/// Returns an error if fio is not installed, or with its message if it fails.
pub fn random_reads(engine: &str, file: &str, time: Duration) -> io::Result<f64> {
    let output = Command::new("fio")
        .args([
            "--name=reads",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--direct=1",
            "--time_based",
            "--readonly",
            "--allow_file_create=0",
            "--minimal",
        ])
        .arg(format!("--ioengine={engine}"))
        .arg(format!("--filename={file}"))
        .arg(format!("--iodepth={DEPTH}"))
        .arg(format!("--runtime={}ms", time.as_millis()))
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("fio: {error}")))?;
    // The rate of reads per second is the eighth field of fio's terse output.
    let line = String::from_utf8_lossy(&output.stdout);
    let rate = line.split(';').nth(7).and_then(|field| field.parse::<f64>().ok());
    rate.filter(|_| output.status.success()).map(|rate| rate / 1e3).ok_or_else(|| {
        io::Error::other(format!("fio: {}", String::from_utf8_lossy(&output.stderr).trim()))
    })
}
