//! Random damage to images of a BTT: nothing panics, what is refused is not written, what is called clean
//! can be opened, and a repair ends. The fuzz target `btt_image` plays any bytes.

mod btt_images;

use blockyard::prng::Prng;
use btt_images::play::play;

#[test]
fn any_changes_are_told_or_harmless() {
    let seeds = std::fs::read_dir("tests/btt_images/seeds").expect("there are seeds");
    for seed in seeds {
        let bytes = std::fs::read(seed.expect("it is listed").path()).expect("it can be read");
        assert!(play(&bytes).is_some());
    }
    let mut worst = [0; 3];
    for seed in 0..5000 {
        let mut prng = Prng::new(seed);
        let changes = 1 + prng.below(6);
        let bytes: Vec<u8> =
            (0..2 + changes * 7).map(|_| prng.below(256).to_le_bytes()[0]).collect();
        match play(&bytes).expect("there are enough") {
            None => worst[0] += 1,
            Some(severity) => worst[severity as usize] += 1,
        }
    }
    let [clean, repairable, broken] = worst;
    assert!(clean > 20 && repairable > 20 && broken > 20, "of each kind there are some: {worst:?}");
}
