//! Plays random sequences of operations on random systems; see [`operations`]. The fuzz target
//! `core_operations` does the same, guided by coverage. Upholds [request-life-cycle] and
//! [on-one-list].

mod durability;
mod operations;

use operations::{Summary, play};
use proptest::prelude::*;

/// Replays a failed input that libFuzzer wrote: `BLOCKYARD_OPERATIONS=FILE`.
#[test]
fn one_input_again() {
    if let Some(file) = std::env::var_os("BLOCKYARD_OPERATIONS") {
        let _ = play(&std::fs::read(file).expect("the input file should be readable"));
    }
}

/// Returns `count` inputs of random bytes, always the same.
fn inputs(count: usize) -> Vec<Vec<u8>> {
    let mut state = 1_u64;
    let bytes = core::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    });
    let bytes: Vec<u8> = bytes.take(count * 1000).collect();
    bytes.chunks(1000).map(<[u8]>::to_vec).collect()
}

/// Random bytes must exercise the core, or the test proves nothing.
#[test]
fn random_bytes_exercise_the_core() {
    let mut total = [0; 3];
    for bytes in inputs(100) {
        let Summary { bios, requests, sleeps } = play(&bytes);
        total.iter_mut().zip([bios, requests, sleeps]).for_each(|(sum, one)| *sum += one);
    }
    println!("bios, requests, sleeps: {total:?}");
    assert!(total[0] > 1000 && total[1] > 1000 && total[2] > 300, "{total:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_operations_keep_every_contract(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
        let _ = play(&bytes);
    }
}
