//! The cost of a sample.

use blockyard::stats::Histogram;
use blockyard_bench::Sectors;
use divan::Bencher;

fn main() {
    divan::main();
}

#[divan::bench]
fn record(bencher: Bencher<'_, '_>) {
    let mut histogram = Histogram::new();
    let mut values = Sectors::default();
    bencher.bench_local(|| histogram.record(values.draw()));
}
