//! A design that requires a feature that the MMC host lacks is refused with file, line, key and a
//! remedy.

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

/// Returns the message about a design with these lines in `[host]`, over `mmc-blkmq`, on the device
/// `text`.
fn told(host: &str, text: &str) -> String {
    told_over("mmc-blkmq", host, text)
}

fn told_over(base: &str, host: &str, text: &str) -> String {
    let jobs = parse_args("--name=x --rw=read --direct=1 --size=1m".split(' '), &NoSource).unwrap();
    let design = format!("base = \"{base}\"\n[host]\n# what is asked\n{host}\n");
    let design = Design::parse("my.toml", &design).unwrap();
    let device = Device::parse("its.toml", text).unwrap();
    match Simulation::new(&jobs, &device, &design, 1) {
        Ok(_) => panic!("the device lacks what the design asks for"),
        Err(error) => error.to_string(),
    }
}

const EMMC: &str = "base = \"emmc-hs400-sprd\"\n";
const SD: &str = "base = \"sd-hs-sprd\"\n";

#[test]
fn each_missing_capability_is_reported_by_line_with_a_remedy() {
    let asks_status = format!("{EMMC}[host]\nbusy-detect = \"cmd13\"\n");
    let no_engine = format!("{EMMC}[host]\nqueue-engine-depth = 0\n");
    let with_buffers = format!("{EMMC}[host]\nbounce-buffers = true\n");
    let cases = [
        (
            "pipeline = \"cqe\"",
            no_engine.as_str(),
            "my.toml:4: `pipeline` is `cqe`, and on device `its.toml` the controller has no command \
             queue engine: use another pipeline, or a device with `queue-engine-depth` in its `[host]`",
        ),
        (
            "pipeline = \"cqe\"",
            SD,
            "my.toml:4: `pipeline` is `cqe`, and on device `its.toml` the card has no command queue: \
             use another pipeline, or a card with `queue-depth` in its `[card]`, and `sd-cache` on \
             if it is SD",
        ),
        (
            "pipeline = \"cqe\"\ntransfer = \"pio\"",
            EMMC,
            "my.toml:5: `transfer` is `pio`, and on device `its.toml` a command queue engine moves \
             data by DMA: `pipeline = \"cqe\"` needs `dma`",
        ),
        (
            "busy-detect = \"hw\"",
            &asks_status,
            "my.toml:4: `busy-detect` is `hw`, and on device `its.toml` the controller does not find \
             the end of busy in this way: use `cmd13`, which works with every device",
        ),
        (
            "busy-detect = \"cmd13\"\npipeline = \"hsq\"",
            EMMC,
            "my.toml:4: `busy-detect` is `cmd13`, and on device `its.toml` a host software queue needs \
             the end of busy found in hardware: `pipeline = \"hsq\"` needs `hw`, on a device with \
             `busy-detect = \"hw\"`",
        ),
        (
            "bounce = \"async\"",
            EMMC,
            "my.toml:4: `bounce` is `async`, and on device `its.toml` the controller has no bounce \
             buffers: use `none`, or a device with `bounce-buffers = true` in its `[host]`",
        ),
        (
            "transfer = \"pio\"\nbounce = \"sync\"",
            &with_buffers,
            "my.toml:5: `bounce` is `sync`, and on device `its.toml` the processor moves the data, so \
             there is nothing to bounce: `transfer = \"pio\"` needs `none`",
        ),
        (
            "pipeline = \"issue-on-completion\"\nbounce = \"sync\"",
            &with_buffers,
            "my.toml:5: `bounce` is `sync`, and on device `its.toml` no thread has the bus in this \
             pipeline, to copy there and then: use `async`, which works with every pipeline",
        ),
        (
            "map = \"beside-access\"",
            EMMC,
            "my.toml:4: `map` is `beside-access`, and on device `its.toml` memory cannot be prepared during \
             the access: use `before-command`, or `dma` without `bounce` and `packed` and with a pipeline \
             whose thread ends requests: `serial`, `two-slot-map-overlap`, `post-before-start`, \
             `two-slot-full`",
        ),
        (
            "pipeline = \"cqe\"\ntransfers = \"left-open\"",
            EMMC,
            "my.toml:5: `transfers` is `left-open`, and on device `its.toml` no transfer can be left open: \
             use `stopped`, or a pipeline other than `cqe` with `packed = \"off\"`",
        ),
        (
            "packed = \"write\"",
            SD,
            "my.toml:4: `packed` is `write`, and on device `its.toml` card or controller cannot pack \
             such requests: use `off`, or a card with `packed-writes` in its `[card]`, without a \
             command queue and without bounce buffers",
        ),
    ];
    for (host, device, expected) in cases {
        assert_eq!(told(host, device), expected);
    }
}

#[test]
fn a_key_of_the_base_is_reported_at_the_line_of_the_table() {
    let asks_status = format!("{EMMC}[host]\nbusy-detect = \"cmd13\"\n");
    let told = told_over("hsq", "transfer = \"dma\"", &asks_status);
    assert!(told.starts_with("my.toml:2: `busy-detect` is `hw`, "), "{told}");
}
