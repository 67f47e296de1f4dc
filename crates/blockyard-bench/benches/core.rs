//! A whole I/O: submit, run, complete, next_ended.

use blockyard::policy::Policies;
use blockyard_bench::IoLoop;
use divan::Bencher;

fn main() {
    divan::main();
}

#[divan::bench]
fn none_random_read(bencher: Bencher<'_, '_>) {
    let mut io = IoLoop::new(Policies::NONE, 0);
    bencher.bench_local(|| io.random_read());
}

/// Random reads with `held` more requests in the elevator.
#[divan::bench(args = [0, 32, 4096])]
fn mq_deadline_random_read(bencher: Bencher<'_, '_>, held: u32) {
    let mut io = IoLoop::new(Policies::mq_deadline(), held);
    bencher.bench_local(|| io.random_read());
}

/// One iteration is eight I/Os, which become one request.
#[divan::bench]
fn none_eight_sequential_writes(bencher: Bencher<'_, '_>) {
    let mut io = IoLoop::new(Policies::NONE, 0);
    bencher.bench_local(|| io.sequential_writes(8));
}

/// One iteration is eight I/Os, which become one request.
#[divan::bench]
fn mq_deadline_eight_sequential_writes(bencher: Bencher<'_, '_>) {
    let mut io = IoLoop::new(Policies::mq_deadline(), 0);
    bencher.bench_local(|| io.sequential_writes(8));
}

#[divan::bench(args = [0, 32])]
fn mq_kyber_random_read(bencher: Bencher<'_, '_>, held: u32) {
    let mut io = IoLoop::new(Policies::mq_kyber(), held);
    bencher.bench_local(|| io.random_read());
}

/// One iteration is eight I/Os, which become one request.
#[divan::bench]
fn mq_kyber_eight_sequential_writes(bencher: Bencher<'_, '_>) {
    let mut io = IoLoop::new(Policies::mq_kyber(), 0);
    bencher.bench_local(|| io.sequential_writes(8));
}
