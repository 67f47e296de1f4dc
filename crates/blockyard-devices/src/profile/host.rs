//! The table `[host]` of a design: the request path of an MMC host.

use blockyard_mmc::block::Unsupported;
use blockyard_mmc::host::{BusyDetect, Transfer};
use blockyard_mmc::policy::{
    Bounce, HostPolicy, HsqDefer, HsqLimit, HsqOrder, HsqPolicy, LoneRead, Packed, Pipeline,
};
use core::mem::discriminant;
use toml::de::DeValue;

use crate::mmc::profile::BUSY_DETECT;
use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::Table;
use crate::reader::value::{Count, Flag, Kind, OneOf, Time};
use blockyard::time::Duration;

const HOST: &[&str] = &[
    "transfer",
    "pipeline",
    "map",
    "busy-detect",
    "bounce",
    "packed",
    "close-ended",
    "transfers",
    "open-limit",
    "unmap",
    "hsq",
];
const HSQ: &[&str] = &["order", "limit", "limit-off-by-one", "defer"];

const TRANSFER: &[(&str, Transfer)] = &[("pio", Transfer::Pio), ("dma", Transfer::Dma)];
const PIPELINE: &[(&str, Pipeline)] = &[
    ("serial", Pipeline::Serial),
    ("two-slot-map-overlap", Pipeline::TwoSlotMapOverlap),
    ("two-slot-full", Pipeline::TwoSlotFull),
    ("post-before-start", Pipeline::PostBeforeStart),
    ("issue-on-completion", Pipeline::IssueOnCompletion),
    ("blkmq-wait", Pipeline::BlkMqWait),
    ("hsq", Pipeline::Hsq(HsqPolicy::TODAY)),
    ("cqe", Pipeline::Cqe),
];
/// When the memory of a read is mapped that finds the bus free.
const MAP: &[(&str, LoneRead)] =
    &[("before-command", LoneRead::BeforeCommand), ("beside-access", LoneRead::BesideAccess)];
const BOUNCE: &[(&str, Bounce)] =
    &[("none", Bounce::None), ("sync", Bounce::Sync), ("async", Bounce::Async)];
const PACKED: &[(&str, Packed)] =
    &[("off", Packed::Off), ("write", Packed::Write), ("read-write", Packed::ReadWrite)];
/// Whether transfers are left open between requests.
const TRANSFERS: &[(&str, bool)] = &[("stopped", false), ("left-open", true)];
/// How long a transfer stays open if the design does not say: assumed, as no source was found.
const OPEN_LIMIT: Duration = Duration::from_ms(5);
const ORDER: &[(&str, HsqOrder)] = &[("tagwalk", HsqOrder::TagWalk), ("fifo", HsqOrder::Fifo)];
const DEFER: &[(&str, HsqDefer)] =
    &[("always", HsqDefer::Always), ("removable", HsqDefer::Removable), ("never", HsqDefer::Never)];
/// Whether the limit admits one request more than its number.
const OFF_BY_ONE: &[(&str, bool)] = &[("keep", true), ("fix", false)];

/// A number of requests, or `dynamic`.
struct Limit;

impl Kind for Limit {
    type Out = HsqLimit;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<HsqLimit, Problem> {
        if value.is_str() {
            OneOf(&[("dynamic", HsqLimit::Dynamic)]).read(key, value)
        } else {
            Count(1..=63).read(key, value).map(HsqLimit::Fixed)
        }
    }
}

/// Whether `key` of `[host]` is one of designs alone: devices have a `[host]`, too.
pub(super) fn is_key_of_designs(key: &str) -> bool {
    let first = key.split('.').next().unwrap_or(key);
    HOST.contains(&first) && !["busy-detect", "unmap"].contains(&first)
}

/// The lines at which a design's file sets the keys of its `[host]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostLines([usize; HOST.len()]);

impl HostLines {
    /// Returns the line of `key`, from 1, or the line of the table if the file itself lacks the
    /// key. Returns 0 if the design has no `[host]`, or no such key.
    #[must_use]
    pub fn of(&self, key: &str) -> usize {
        HOST.iter().position(|known| *known == key).map_or(0, |at| self.0[at])
    }
}

/// A key in `[host]` of a design that asks for something that the device lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub value: &'static str,
    /// The remedy.
    pub(crate) remedy: &'static str,
}

/// Returns the key of `policy` for which there is no driver, given the reason `why`.
pub(crate) fn asked(policy: &HostPolicy, why: Unsupported) -> Ask {
    let (key, remedy) = match why {
        Unsupported::NoEngine => (
            "pipeline",
            "use another pipeline, or a device with `queue-engine-depth` in its `[host]`",
        ),
        Unsupported::NoCardQueue => {
            let words = "use another pipeline, or a card with `queue-depth` in its `[card]`, and \
                         `sd-cache` on if it is SD";
            ("pipeline", words)
        }
        Unsupported::EngineCopiesNothing => ("transfer", "`pipeline = \"cqe\"` needs `dma`"),
        Unsupported::NoBounceBuffers => {
            ("bounce", "use `none`, or a device with `bounce-buffers = true` in its `[host]`")
        }
        Unsupported::PioNeedsNoBounce => ("bounce", "`transfer = \"pio\"` needs `none`"),
        Unsupported::NobodyCopies => ("bounce", "use `async`, which works with every pipeline"),
        Unsupported::Packed => (
            "packed",
            "use `off`, or a card with `packed-writes` in its `[card]`, without a command queue and \
             without bounce buffers",
        ),
        Unsupported::Transfer => ("transfer", "use the other value"),
        Unsupported::BesideAccess => (
            "map",
            "use `before-command`, or `dma` without `bounce` and `packed` and with a pipeline whose \
             thread ends requests: `serial`, `two-slot-map-overlap`, `post-before-start`, `two-slot-full`",
        ),
        Unsupported::LeftOpen => {
            ("transfers", "use `stopped`, or a pipeline other than `cqe` with `packed = \"off\"`")
        }
        Unsupported::BusyDetect => ("busy-detect", "use `cmd13`, which works with every device"),
        Unsupported::HsqWithoutBusy => (
            "busy-detect",
            "`pipeline = \"hsq\"` needs `hw`, on a device with `busy-detect = \"hw\"`",
        ),
        Unsupported::NoRequests => ("hsq", "`limit` of `[host.hsq]` is at least 1"),
    };
    let value = value_of(key, policy);
    debug_assert!(HOST.contains(&key), "`{key}` is not a key of `[host]`");
    Ask { key, value, remedy }
}

/// Returns the value of `key` in `policy`.
fn value_of(key: &str, policy: &HostPolicy) -> &'static str {
    fn word<T>(words: &[(&'static str, T)], is: impl Fn(&T) -> bool) -> &'static str {
        words.iter().find(|(_, value)| is(value)).map_or("", |(word, _)| word)
    }
    match key {
        "transfer" => word(TRANSFER, |value| *value == policy.transfer),
        "map" => word(MAP, |value| *value == policy.lone_read),
        "bounce" => word(BOUNCE, |value| *value == policy.bounce),
        "transfers" => word(TRANSFERS, |value| *value == policy.open_limit.is_some()),
        "packed" => word(PACKED, |value| *value == policy.packed),
        "busy-detect" => word(BUSY_DETECT, |value| *value == policy.busy),
        _ => word(PIPELINE, |value| discriminant(value) == discriminant(&policy.pipeline)),
    }
}

/// The table `[host]` of a design.
#[derive(Default)]
pub(crate) struct Host {
    /// `None`: there is no such table.
    pub(crate) policy: Option<HostPolicy>,
    pub(crate) keeps_mappings: bool,
    pub(crate) lines: HostLines,
}

/// Reads the table `[host]` of `top`.
pub(crate) fn host(top: &Table<'_>) -> Result<Host, ProfileError> {
    let table = top.table("host", HOST)?;
    if table.is_empty() {
        return Ok(Host::default());
    }
    let lines = HostLines(core::array::from_fn(|at| table.line_of(HOST[at])));
    let hsq = table.table("host.hsq", HSQ)?;
    let pipeline = match table.need("pipeline", OneOf(PIPELINE))? {
        Pipeline::Hsq(usual) => Pipeline::Hsq(HsqPolicy {
            order: hsq.take_or("order", OneOf(ORDER), usual.order)?,
            limit: hsq.take_or("limit", Limit, usual.limit)?,
            limit_off_by_one: hsq.take_or(
                "limit-off-by-one",
                OneOf(OFF_BY_ONE),
                usual.limit_off_by_one,
            )?,
            defer: hsq.take_or("defer", OneOf(DEFER), usual.defer)?,
        }),
        _ if table.has("hsq") => {
            let words = "`[host.hsq]` goes only with `pipeline = \"hsq\"`";
            return Err(table.wrong("hsq", Problem::Contradiction(words)));
        }
        other => other,
    };
    let usual = HostPolicy::new(pipeline, BusyDetect::Status);
    let leaves_open = table.take_or("transfers", OneOf(TRANSFERS), false)?;
    if !leaves_open && table.has("open-limit") {
        let words = "`open-limit` goes only with `transfers = \"left-open\"`";
        return Err(table.wrong("open-limit", Problem::Contradiction(words)));
    }
    let open_limit = table.take_or("open-limit", Time, OPEN_LIMIT)?;
    let policy = HostPolicy {
        transfer: table.take_or("transfer", OneOf(TRANSFER), usual.transfer)?,
        lone_read: table.take_or("map", OneOf(MAP), usual.lone_read)?,
        busy: table.need("busy-detect", OneOf(BUSY_DETECT))?,
        close_ended: table.take_or("close-ended", Flag, usual.close_ended)?,
        bounce: table.take_or("bounce", OneOf(BOUNCE), usual.bounce)?,
        packed: table.take_or("packed", OneOf(PACKED), usual.packed)?,
        open_limit: leaves_open.then_some(open_limit),
        ..usual
    };
    debug_assert!(HOST.iter().all(|key| lines.of(key) > 0), "every key has a line or its table's");
    let keeps_mappings = !table.take_or("unmap", Flag, true)?;
    Ok(Host { policy: Some(policy), keeps_mappings, lines })
}
