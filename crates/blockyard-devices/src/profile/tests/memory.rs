//! Profiles of persistent memory, and of the block translation tables over it.

use super::*;

fn btt_error(text: &str) -> String {
    design_error(&format!("base = \"btt\"\n[btt]\n{text}\n"))
}

#[test]
fn errors_in_the_table_of_a_btt_are_reported() {
    assert_eq!(
        btt_error("rrt = \"scan\""),
        "my.toml:3: unknown key `rrt` in `[btt]`: did you mean `rtt`?"
    );
    assert_eq!(
        btt_error("rtt = \"scan-paded\""),
        "my.toml:3: unknown value `scan-paded` for `rtt`: did you mean `scan-padded`?"
    );
    assert_eq!(
        btt_error("copy = \"alligned-nt\""),
        "my.toml:3: unknown value `alligned-nt` for `copy`: did you mean `aligned-nt`?"
    );
    assert_eq!(
        btt_error("lane = \"mutex\"\nlane-sets = 4"),
        "my.toml:4: `lane-sets` goes only with `lane = \"own\"`"
    );
    assert_eq!(
        btt_error("lane-sets = 257"),
        "my.toml:3: `lane-sets` is `257`, out of range (1 to 256)"
    );
    let alone = design_error("base = \"pmem-raw\"\n[btt]\nrtt = \"scan\"\n");
    assert_eq!(alone, "my.toml:2: missing key `lane` in `[btt]`");
}

fn policy_of(name: &str) -> Policy {
    Design::lookup(name).unwrap().btt.unwrap().policy(12)
}

#[test]
fn btt_designs_have_the_policies_of_the_library_and_of_linux() {
    assert_eq!(policy_of("btt"), Policy::DEFAULT);
    assert_eq!(policy_of("btt-linux"), Policy::LINUX);
    assert_eq!(Design::lookup("pmem-raw").unwrap().btt, None);
    let of_2015 = Design::lookup("btt-linux-2015").unwrap().btt.unwrap();
    assert_eq!(of_2015.copy, Copying::Bytewise);
    assert_eq!(of_2015.lanes, Some(LaneChoice::Own { sets: 256 }), "a lane for each processor");
    let counted = Design::lookup("btt-linux-2015-counter").unwrap().btt.unwrap();
    assert_eq!(counted, BttDesign { lanes: Some(LaneChoice::Counter), ..of_2015 });
}

fn limits_error(text: &str) -> String {
    device_error(&format!("base = \"pmem-dram\"\n[limits]\n{text}\n"))
}

#[test]
fn persistent_memory_fits_an_arena_and_has_no_cache() {
    let size =
        "my.toml:2: a disk in `[pmem]` has 16MiB to 504GiB, so that it fits one arena of a BTT";
    assert_eq!(
        [limits_error("capacity = \"15MiB\""), limits_error("capacity = \"505GiB\"")],
        [size; 2]
    );
    assert_eq!(
        limits_error("write-cache = true"),
        "my.toml:2: `[pmem]` has no volatile cache: a write is durable when it ends"
    );
    assert_eq!(
        device_error("base = \"pmem-dram\"\n[pmem.read]\nbyte-wise = \"1us\"\n"),
        "my.toml:3: unknown key `byte-wise` in `[pmem.read]`: did you mean `bytewise`?"
    );
}
