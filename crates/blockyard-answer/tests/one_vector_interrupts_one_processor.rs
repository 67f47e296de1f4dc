//! The completions of a vector run on one processor, which bounds the rate of all disks behind it.
//! The expected figures follow from the profiles by hand.

use blockyard_answer::whatif;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{JobFile, NoSource, parse_args};
use blockyard_sim::simulate::Conditions;

/// A host with four disks, each of which could do millions of I/Os per second, on four processors.
/// A completion takes 5 us of a processor, and an interrupt 1 us. Threads switch for nothing.
fn host(queues: u16) -> Device {
    let text = format!(
        "base = \"srp\"\n[hba]\nhw-queues = {queues}\nluns = 4\ncommand-read = \"20us\"\n\
         spread = [[0, 100], [100, 100]]\nport-read = \"10ns\"\nlink-read = \"1000GB/s\"\n\
         burst = \"4KiB\"\n[cpu]\ncpus = 4\ncomplete = \"5us\"\ninterrupt = \"1us\"\nwakeup = \"0us\"\n\
         context-switch = \"0us\"\n"
    );
    Device::parse("host", &text).unwrap()
}

/// A job on each of the first `disks` disks.
fn jobs(disks: usize) -> JobFile {
    let of = |disk: &str| format!("--name={disk} --filename=/dev/{disk}");
    let of_disks = ["a", "b", "c", "d"].map(of)[..disks].join(" ");
    let all = format!(
        "--direct=1 --ioengine=libaio --rw=randread --bs=4k --iodepth=32 --time_based \
         --runtime=20ms {of_disks}"
    );
    parse_args(all.split_whitespace(), &NoSource).unwrap()
}

#[expect(clippy::float_arithmetic, reason = "for comparison with round figures")]
fn thousand_per_second(jobs: &JobFile, device: &Device, design: &str) -> f64 {
    let design = Design::lookup(design).unwrap();
    let answer = whatif(jobs, device, &[design], &Conditions::new(1)).unwrap();
    answer.designs[0].figures.iops / 1000.0
}

/// One vector: 5 us of one processor for each I/O, and 1 us for each interrupt, which ends one I/O
/// at least, so 167 to 200 thousand a second, however many disks there are. With a vector for each
/// processor, an I/O takes 5 us and some 2 us for its submission on a processor of its own: up to
/// 570 thousand. The completions once ran where the I/Os were submitted, so that one queue was as
/// fast as four.
#[test]
fn one_vector_bounds_the_rate_of_four_disks() {
    let one = host(1);
    let of_two = thousand_per_second(&jobs(2), &one, "mq-none");
    let of_four = thousand_per_second(&jobs(4), &one, "mq-none");
    assert!((150.0..=200.0).contains(&of_two), "{of_two}");
    assert!((166.0..=200.0).contains(&of_four), "{of_four}");
    let spread = thousand_per_second(&jobs(4), &host(4), "mq-none");
    assert!((400.0..=571.0).contains(&spread), "{spread}");
}

/// Four fast drives on the ports of an AHCI host with one vector, on four processors. A completion
/// takes `complete`, an interrupt 1 us. A read is five frames of 600 ns with 4188 bytes at 600
/// MB/s: 10.0 us of the wire of its drive.
fn ahci_host(complete: &str) -> Device {
    let text = format!(
        "base = \"sata-ssd\"\n[ahci]\nissue = \"0us\"\ninterval = \"0us\"\ncommand = \"0us\"\n\
         [flash]\nread = \"10us\"\n[cpu]\ncpus = 4\ncomplete = \"{complete}\"\ninterrupt = \"1us\"\n\
         wakeup = \"0us\"\ncontext-switch = \"0us\"\n"
    );
    Device::parse("host", &text).unwrap().with_disks(4).unwrap()
}

/// The wires of four drives carry 400 thousand reads a second. A completion of 5 us with a part of
/// an interrupt of 1 us lets the one processor of the vector end 167 to 200 thousand; one of 1 us,
/// 500 thousand and more, so that the wires decide.
#[test]
fn one_vector_bounds_the_rate_of_four_drives_on_ahci() {
    let bound = thousand_per_second(&jobs(4), &ahci_host("5us"), "mq-none");
    assert!((150.0..=200.0).contains(&bound), "{bound}");
    let wires = thousand_per_second(&jobs(4), &ahci_host("1us"), "mq-none");
    assert!((320.0..=401.0).contains(&wires), "{wires}");
}

/// On `server-2012` a lock moves 6 lines of 90 ns between processors. Under the single lock an I/O
/// holds it for 100 + 500 ns (submit), 400 ns (dispatch) and 600 ns (end): 1.6 us. With an insert
/// it is taken four times, and each time moves lines if another processor had it, for 540 ns: 3.76
/// us, or 266 thousand I/Os a second if all of them do. Without moves 625 thousand would be
/// possible; half of the moves leave 373 thousand.
#[test]
fn a_contended_single_lock_is_slower_than_its_holds() {
    let text = "base = \"null\"\nprocessors = \"server-2012\"\n[cpu]\ncpus = 16\n";
    let disk = Device::parse("disk", text).unwrap();
    let all = "--name=x --filename=/dev/x --direct=1 --ioengine=io_uring --rw=randread --bs=4k \
               --iodepth=4 --numjobs=16 --time_based --runtime=5ms";
    let jobs = parse_args(all.split_whitespace(), &NoSource).unwrap();
    let found = thousand_per_second(&jobs, &disk, "legacy-deadline");
    assert!((260.0..=420.0).contains(&found), "{found}");
}
