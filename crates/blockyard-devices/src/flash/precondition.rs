//! The state of a drive before the run: what holds data, and what was overwritten.

use super::collect::{Collection, Step};
use super::map::{Map, Source};
use crate::flash::profile::FlashProfile;
use blockyard::prng::Prng;

/// Fills `map` in sequence and overwrites its units at random, as `profile` says and `prng` draws.
/// It does in no time what the drive did before, collection included.
pub(super) fn precondition(
    profile: &FlashProfile,
    map: &mut Map,
    collections: &mut [Collection],
    prng: &mut Prng,
) {
    let filled = map.units();
    debug_assert!(filled > 0, "a drive holds data before the run");
    let overwrites = filled * u64::from(profile.overwritten) / 100;
    let mut row = Vec::new();
    let mut die = 0;
    for nth in 0..filled + overwrites {
        let unit = if nth < filled { nth } else { prng.below(filled) };
        let unit = u32::try_from(unit).expect("a unit should be a u32");
        if map.buffer(unit) {
            continue;
        }
        row.push(Source::buffer(unit));
        if row.len() == map.row_units() {
            die = write(map, collections, die, &row);
            row.clear();
        }
    }
    if !row.is_empty() {
        write(map, collections, die, &row);
    }
    for (die, collection) in collections.iter_mut().enumerate() {
        while map.is_short(die) {
            collect(map, collection, die);
        }
    }
    map.grow_old();
}

/// Writes `row` to the first die from `die` on that has room, and returns the die after it.
fn write(map: &mut Map, collections: &mut [Collection], die: usize, row: &[Source]) -> usize {
    let dies = collections.len();
    debug_assert!(die < dies && !row.is_empty(), "{} units for die {die}", row.len());
    let mut turn = (0..dies).map(|nth| (die + nth) % dies);
    let found = turn.find(|die| {
        while !map.has_room(*die) && !map.is_full(*die) {
            collect(map, &mut collections[*die], *die);
        }
        map.has_room(*die)
    });
    let die = found.expect("the spare should leave room on a die");
    map.program(die, row);
    (die + 1) % dies
}

/// Takes one step of collection.
fn collect(map: &mut Map, collection: &mut Collection, die: usize) {
    match collection.next_step(map, die).expect("a die that is short should collect") {
        Step::Read(_) => collection.moved(),
        Step::Program(units) => {
            map.program_moved(die, &units);
        }
        Step::Erase(block) => map.erase(die, block),
    }
}
