//! The recovery of Linux and of libpmemblk, written independently and slowly: lane by lane, with
//! loads and stores in turn.

use super::shape::Shape;
use blockyard_btt::flog::SlotLayout;

const BLOCK: u32 = 0x3fff_ffff;
const NORMAL: u32 = 0xc000_0000;

/// The words of a map and a log.
struct Words<'a>(&'a mut [u64]);

impl Words<'_> {
    fn get(&self, n: usize) -> u32 {
        (self.0[n / 2] >> (n % 2 * 32)) as u32
    }

    fn set(&mut self, n: usize, word: u32) {
        let shift = n % 2 * 32;
        self.0[n / 2] = self.0[n / 2] & !(0xffff_ffff << shift) | u64::from(word) << shift;
    }
}

/// The implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Linux,
    /// Compares whole entries: it takes a write for finished if the log has other state bits than
    /// the map.
    Libpmemblk,
}

/// Finishes the cut writes of one arena, with the words `metadata` of map and log, in this order of
/// lanes. Returns the free blocks, by lane.
pub(crate) fn recover(
    whose: Whose,
    shape: Shape,
    metadata: &mut [u64],
    lanes: impl Iterator<Item = u32>,
) -> Result<Vec<u32>, String> {
    // The offset of the second entry, in words of four bytes.
    let second = match shape.slots {
        SlotLayout::Standard => 4,
        SlotLayout::OldLinux => 8,
    };
    let log_words = shape.lanes as usize * 16;
    let log = metadata.len() * 2 - log_words;
    let mut words = Words(metadata);
    let mut free = vec![u32::MAX; shape.lanes as usize];
    for lane in lanes {
        let group = log + lane as usize * 16;
        let entries =
            [0, 1].map(|slot| [0, 1, 2, 3].map(|field| words.get(group + slot * second + field)));
        let newest = match (entries[0][3], entries[1][3]) {
            (1, 0) | (1, 3) | (2, 1) | (3, 2) => 0,
            (1, 2) | (2, 3) | (3, 1) => 1,
            (a, b) => return Err(format!("lane {lane} has the numbers {a} and {b}")),
        };
        let [lba, logged, new, _] = entries[newest];
        let old = logged & BLOCK;
        let new = new & BLOCK;
        free[lane as usize] = old;
        if old == new {
            continue;
        }
        let entry = words.get(lba as usize);
        let entry = if entry & NORMAL == 0 { NORMAL | lba } else { entry };
        let is_cut = match whose {
            Whose::Linux => entry & BLOCK == old,
            Whose::Libpmemblk => entry == logged,
        };
        if is_cut {
            words.set(lba as usize, NORMAL | new);
        }
    }
    Ok(free)
}
