//! Random damage to images of a BTT: nothing panics, a refused image is not written, an image
//! without findings can be opened, and a repair ends. The fuzz target `btt_image` does the same
//! with any bytes.

mod images;

use blockyard::prng::Prng;
use images::play::play;

#[test]
fn random_changes_are_reported_or_harmless() {
    let seeds = std::fs::read_dir("tests/images/seeds").expect("folder of seeds");
    for seed in seeds {
        let bytes = std::fs::read(seed.expect("entry of a folder").path()).expect("file of a seed");
        assert!(play(&bytes).is_some());
    }
    let mut worst = [0; 3];
    for seed in 0..5000 {
        let mut prng = Prng::new(seed);
        let changes = 1 + prng.below(6);
        let bytes: Vec<u8> =
            (0..2 + changes * 7).map(|_| prng.below(256).to_le_bytes()[0]).collect();
        match play(&bytes).expect("enough bytes for a change") {
            None => worst[0] += 1,
            Some(severity) => worst[severity as usize] += 1,
        }
    }
    let [clean, repairable, broken] = worst;
    assert!(clean > 20 && repairable > 20 && broken > 20, "too few of one kind: {worst:?}");
}
