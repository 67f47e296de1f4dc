//! Any sequence of operations on any system: see [`operations`]. The fuzz target `core_operations`
//! plays the same, led by what it has covered.

mod durability;
mod operations;

use operations::play;
use proptest::prelude::*;

/// Plays one input that failed: `BLOCKYARD_OPERATIONS=FILE`, as libFuzzer wrote it.
#[test]
fn one_input_again() {
    if let Some(file) = std::env::var_os("BLOCKYARD_OPERATIONS") {
        let _ = play(&std::fs::read(file).expect("the file can be read"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_operations_keep_every_contract(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
        let _ = play(&bytes);
    }
}
