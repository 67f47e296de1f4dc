//! Control groups share a device by their weights under bfq. The other schedulers do not know them,
//! and an answer says so.

use blockyard_answer::{Answer, whatif};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_bytes};
use blockyard_sim::simulate::Conditions;

/// A disk that takes 1 ms for a request, one at a time.
const DISK: &str = "base = \"null\"\n[null]\ncompletion = \"timer\"\ncompletion-time = \"1ms\"\n\
                    submit-queues = 1\ndepth = 1\n[limits]\nrotational = true\n";

/// Readers of 20 s. Of best effort level 3, so that their weights are not raised at first.
const GLOBAL: &str = "[global]\ndirect=1\nfilename=/dev/a\nrw=read\nbs=64k\nsize=1g\n\
                      time_based\nruntime=20\nprioclass=2\nprio=3\n";

fn answer(sections: &str, designs: &[&str]) -> Answer {
    let file = format!("{GLOBAL}{sections}");
    let jobs = parse_bytes("groups.fio", file.as_bytes(), &NoSource).unwrap();
    let device = Device::parse("test", DISK).unwrap();
    let designs: Vec<_> = designs.iter().map(|name| Design::lookup(name).unwrap()).collect();
    whatif(&jobs, &device, &designs, &Conditions::new(1)).unwrap()
}

/// Weights of 100 and 200 are one third and two thirds. Slots of 124 ms let each group be ahead by
/// one of its own and one of the other's: 248 ms of 20 s, 1.24 %.
#[test]
fn groups_have_their_shares_under_bfq() {
    let two = "[a]\ncgroup=light\n[b]\noffset=1g\ncgroup=heavy\ncgroup_weight=200\n";
    let answer = answer(two, &["mq-bfq", "mq-bfq-6.12", "mq-deadline", "mq-none"]);
    for of in &answer.designs[..2] {
        let bytes: Vec<_> = of.jobs.iter().map(|job| job.read.as_ref().unwrap().bytes).collect();
        let all = bytes[0] + bytes[1];
        assert!((3 * bytes[0]).abs_diff(all) * 80 <= 3 * all, "{}: {bytes:?}", of.name);
        let bfq = of.bfq.as_ref().expect("bfq counts what it does");
        let weights: Vec<_> = bfq.groups.iter().map(|of| (of.name.as_deref(), of.weight)).collect();
        assert_eq!(weights, [(None, None), (Some("light"), Some(100)), (Some("heavy"), Some(200))]);
        // What a job had when its time was over may be in the device or held: one read of each.
        for (group, bytes) in bfq.groups.iter().zip([0, bytes[0], bytes[1]]) {
            assert!(group.bytes.abs_diff(bytes) <= 2 << 16, "{group:?}, {bytes} bytes");
        }
        // Slots of 124 ms, or of 16384 sectors, which are 128 reads of 1 ms: 156 to 161 in 20 s,
        // but for the first ones, which have smaller budgets.
        assert!((156..=170).contains(&bfq.slots), "{bfq:?}");
        // The others end when the second job begins, and when the jobs end.
        assert!(bfq.timeout + bfq.exhausted + 3 >= bfq.slots, "{bfq:?}");
        assert_eq!((bfq.raised_interactive, bfq.injected), (0, 0));
        // Each read but the first follows the one before at once, and the device waits for it.
        assert!(bfq.met + 4 >= bfq.waits && bfq.near + 4 >= bfq.met, "{bfq:?}");
        assert!(bfq.withheld_percent < 1.0 && bfq.held_percent < 1.0, "{bfq:?}");
    }
    assert!(answer.designs[2..].iter().all(|of| of.bfq.is_none()));
    let unshared: Vec<_> = answer.designs.iter().map(|of| of.without_groups()).collect();
    let ignores: Vec<_> = unshared.iter().map(Option::is_some).collect();
    assert_eq!(ignores, [false, false, true, true]);
    let words = "mq-none: control groups and their weights have no effect, as its scheduler does \
                 not share the device among groups";
    assert_eq!(unshared[3].as_deref(), Some(words));
}

#[test]
fn jobs_without_groups_are_told_nothing_of_them() {
    let answer = answer("[a]\n[b]\noffset=1g\n", &["mq-none"]);
    assert_eq!(answer.designs[0].without_groups(), None);
}
