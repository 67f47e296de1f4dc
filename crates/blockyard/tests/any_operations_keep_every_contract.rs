//! Plays random sequences of operations on random systems; see [`operations`]. The fuzz target `core_operations` does
//! the same, guided by coverage. Upholds [request-life-cycle] and [on-one-list].

mod durability;
mod operations;

use blockyard::policy::{ElevatorKind, KyberAdjust, KyberTunables};
use core::cell::RefCell;
use operations::{Journal, Summary, play, play_to};
use proptest::prelude::*;
use std::rc::Rc;

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
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    (0..count).map(|_| (0..1000).map(|_| byte()).collect()).collect()
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

/// The number of characters of a text, and a hash of them (FNV-1a).
#[derive(Debug)]
struct Digest {
    length: usize,
    hash: u64,
    /// The whole text, if it is wanted.
    text: Option<String>,
}

impl core::fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.length += text.len();
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.text.iter_mut().for_each(|all| all.push_str(text));
        Ok(())
    }
}

/// The number of plays that are recorded with each elevator.
const RECORDED: usize = 150;
/// The names of the records, and for each the length and hash of all its plays.
const RECORDS: &str = include_str!("operations/records");

/// Plays with one elevator, and compares what happens with its record.
fn compare_with_record(name: &str, elevator: Option<ElevatorKind>) {
    let folder = std::env::var_os("BLOCKYARD_RECORD").map(std::path::PathBuf::from);
    let (length, hash) = (0, 0xcbf2_9ce4_8422_2325);
    let digest = Digest { length, hash, text: folder.is_some().then(String::new) };
    let digest = Rc::new(RefCell::new(digest));
    for bytes in inputs(RECORDED) {
        let _ = play_to(&bytes, elevator, Journal::new(Some(digest.clone())));
    }
    let Digest { length, hash, text } = &mut *digest.borrow_mut();
    if let (Some(folder), Some(text)) = (folder, text) {
        std::fs::write(folder.join(name), text).expect("BLOCKYARD_RECORD should be a folder");
    }
    let now = format!("{name} {length} {hash:016x}");
    assert!(
        RECORDS.lines().any(|line| line == now),
        "other decisions than before: {now}. With BLOCKYARD_RECORD=FOLDER each test writes all that \
         happens to a file; compare it with that of an older commit. If the difference is meant, put \
         the line above into tests/operations/records."
    );
}

/// Where several decisions keep every contract, the one that is taken stays the same: which request goes
/// first, why a run stops, when the queue looks again, and what the statistics count.
#[test]
fn decisions_with_the_elevators_drawn_stay_as_recorded() {
    compare_with_record("drawn", None);
}

#[test]
fn decisions_with_kyber_stay_as_recorded() {
    compare_with_record("kyber", Some(ElevatorKind::Kyber(KyberTunables::default())));
}

#[test]
fn decisions_with_kyber_by_steps_stay_as_recorded() {
    let tunables = KyberTunables { adjust: KyberAdjust::Steps, ..KyberTunables::default() };
    compare_with_record("kyber-by-steps", Some(ElevatorKind::Kyber(tunables)));
}
