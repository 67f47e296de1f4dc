//! A host parses any bytes that a card sends, or returns an error. `registers/` interprets the
//! bytes; the fuzz target `mmc_registers` uses it too.

mod registers;

use blockyard_mmc::mode::{Timing, Width};
use proptest::prelude::*;

/// The fuzzer's seeds are published registers of real cards, or registers written from the
/// standards. Each seed is a whole card, so the fuzzer starts after identification.
#[test]
fn the_seeds_are_whole_cards() {
    for (bytes, sectors, timing, width) in [
        (
            &include_bytes!("registers/seeds/emmc_4_41")[..],
            0x72_8000,
            Timing::MmcDdr52,
            Width::Eight,
        ),
        (include_bytes!("registers/seeds/emmc_5_1"), 61_071_360, Timing::Hs400Es, Width::Eight),
        (include_bytes!("registers/seeds/sdsc"), 3877 * 1024, Timing::SdDefault, Width::Four),
        (include_bytes!("registers/seeds/sdhc"), 59_878 * 1024, Timing::SdHighSpeed, Width::Four),
        (include_bytes!("registers/seeds/sdxc"), 239_072 * 1024, Timing::Sdr104, Width::Four),
    ] {
        let card = registers::play(bytes).unwrap().unwrap();
        assert_eq!((card.sectors, card.mode.timing, card.mode.width), (sectors, timing, width));
    }
}

/// Returns a seed with a few bytes changed, which gets further through identification than random
/// bytes.
fn nearly_a_card() -> impl Strategy<Value = Vec<u8>> {
    let seeds = [
        &include_bytes!("registers/seeds/emmc_4_41")[..],
        include_bytes!("registers/seeds/emmc_5_1"),
        include_bytes!("registers/seeds/sdsc"),
        include_bytes!("registers/seeds/sdhc"),
        include_bytes!("registers/seeds/sdxc"),
    ];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40);
    (prop::sample::select(seeds.to_vec()), changes).prop_map(|(seed, changes)| {
        let mut bytes = seed.to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn noise_is_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..1200)) {
        let _ = registers::play(&bytes);
    }

    #[test]
    fn a_card_with_errors_is_no_panic(bytes in nearly_a_card()) {
        let _ = registers::play(&bytes);
    }
}
