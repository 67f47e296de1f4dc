//! The list of equivalent faults agrees with today's source.

use xtask::mutants::area::{AREAS, Area};
use xtask::mutants::equivalent::Equivalents;

#[test]
fn each_listed_fault_is_well_formed_unique_and_in_the_source() {
    let list = Equivalents::parse(include_str!("../equivalent.txt")).expect("well-formed blocks");
    let faults: Vec<_> = AREAS.iter().flat_map(Area::faults).collect();
    assert_eq!(list.stale(faults.iter()), [""; 0], "the code of these changed");
    assert!(faults.iter().any(|fault| list.contains(fault)), "the list is not empty");
}
