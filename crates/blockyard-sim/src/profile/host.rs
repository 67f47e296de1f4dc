//! `[host]` of a design: how the request path of an MMC host works.

use blockyard_mmc::block::Unsupported;
use blockyard_mmc::host::{BusyDetect, Transfer};
use blockyard_mmc::policy::{
    Bounce, HostPolicy, HsqDefer, HsqLimit, HsqOrder, HsqPolicy, Packed, Pipeline,
};
use core::mem::discriminant;
use toml::de::DeValue;

use super::error::{Problem, ProfileError};
use super::mmc::BUSY_DETECT;
use super::table::Table;
use super::value::{Count, Flag, Kind, OneOf};

const HOST: &[&str] =
    &["transfer", "pipeline", "busy-detect", "bounce", "packed", "close-ended", "hsq"];
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
const BOUNCE: &[(&str, Bounce)] =
    &[("none", Bounce::None), ("sync", Bounce::Sync), ("async", Bounce::Async)];
const PACKED: &[(&str, Packed)] =
    &[("off", Packed::Off), ("write", Packed::Write), ("read-write", Packed::ReadWrite)];
const ORDER: &[(&str, HsqOrder)] = &[("tagwalk", HsqOrder::TagWalk), ("fifo", HsqOrder::Fifo)];
const DEFER: &[(&str, HsqDefer)] =
    &[("always", HsqDefer::Always), ("removable", HsqDefer::Removable), ("never", HsqDefer::Never)];
/// Whether the limit admits one more than it says.
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

/// Where a design's file says what of its `[host]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostLines([usize; HOST.len()]);

impl HostLines {
    /// The line of `key`, from 1, or of the table where the file itself lacks it; 0 where the design has
    /// no `[host]`, or no such key.
    #[must_use]
    pub fn of(&self, key: &str) -> usize {
        HOST.iter().position(|known| *known == key).map_or(0, |at| self.0[at])
    }
}

/// What in `[host]` of a design asks for what is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub value: &'static str,
    /// What would do, or where what is asked for is.
    pub remedy: &'static str,
}

/// What in `policy` there is no driver with, for the reason `why`.
pub(crate) fn asked(policy: &HostPolicy, why: Unsupported) -> Ask {
    let (key, remedy) = match why {
        Unsupported::NoEngine => (
            "pipeline",
            "the other pipelines need none; a device has one by `queue-engine-depth` in its `[host]`",
        ),
        Unsupported::NoCardQueue => (
            "pipeline",
            "the other pipelines need none; a card has one by `queue-depth` in its `[card]`",
        ),
        Unsupported::EngineCopiesNothing => ("transfer", "with `pipeline = \"cqe\"` it is `dma`"),
        Unsupported::NoBounceBuffers => (
            "bounce",
            "it is `none` here; a device has them by `bounce-buffers = true` in its `[host]`",
        ),
        Unsupported::PioNeedsNoBounce => ("bounce", "with `transfer = \"pio\"` it is `none`"),
        Unsupported::NobodyCopies => ("bounce", "`async` goes with every pipeline"),
        Unsupported::Packed => (
            "packed",
            "it is `off` here; `write` goes with a card that has `packed-writes` in its `[card]`, where \
             there is no command queue and no bounce buffer",
        ),
        Unsupported::Transfer => ("transfer", "it is the other one"),
        Unsupported::BusyDetect => ("busy-detect", "`cmd13` goes with every device"),
        Unsupported::HsqWithoutBusy => (
            "busy-detect",
            "with `pipeline = \"hsq\"` it is `hw`, on a device that has `busy-detect = \"hw\"`",
        ),
        Unsupported::NoRequests => ("hsq", "its `limit` is 1 at least"),
    };
    Ask { key, value: value_of(key, policy), remedy }
}

/// The value that `key` has in `policy`.
fn value_of(key: &str, policy: &HostPolicy) -> &'static str {
    fn word<T>(words: &[(&'static str, T)], is: impl Fn(&T) -> bool) -> &'static str {
        words.iter().find(|(_, value)| is(value)).map_or("", |(word, _)| word)
    }
    match key {
        "transfer" => word(TRANSFER, |value| *value == policy.transfer),
        "bounce" => word(BOUNCE, |value| *value == policy.bounce),
        "packed" => word(PACKED, |value| *value == policy.packed),
        "busy-detect" => word(BUSY_DETECT, |value| *value == policy.busy),
        _ => word(PIPELINE, |value| discriminant(value) == discriminant(&policy.pipeline)),
    }
}

/// The table `[host]` of `top`, and where it says what; `None` where there is none.
pub(super) fn host(top: &Table<'_>) -> Result<Option<(HostPolicy, HostLines)>, ProfileError> {
    let table = top.table("host", HOST)?;
    if table.is_empty() {
        return Ok(None);
    }
    let lines = HostLines(core::array::from_fn(|at| table.line_of(HOST[at])));
    let hsq = table.table("host.hsq", HSQ)?;
    let pipeline = match table.need("pipeline", OneOf(PIPELINE))? {
        Pipeline::Hsq(usual) => Pipeline::Hsq(HsqPolicy {
            order: hsq.take("order", OneOf(ORDER))?.unwrap_or(usual.order),
            limit: hsq.take("limit", Limit)?.unwrap_or(usual.limit),
            limit_off_by_one: hsq
                .take("limit-off-by-one", OneOf(OFF_BY_ONE))?
                .unwrap_or(usual.limit_off_by_one),
            defer: hsq.take("defer", OneOf(DEFER))?.unwrap_or(usual.defer),
        }),
        _ if table.has("hsq") => {
            let words = "`[host.hsq]` goes only with `pipeline = \"hsq\"`";
            return Err(table.wrong("hsq", Problem::Contradiction(words)));
        }
        other => other,
    };
    let usual = HostPolicy::new(pipeline, BusyDetect::Status);
    let policy = HostPolicy {
        transfer: table.take("transfer", OneOf(TRANSFER))?.unwrap_or(usual.transfer),
        busy: table.need("busy-detect", OneOf(BUSY_DETECT))?,
        close_ended: table.take("close-ended", Flag)?.unwrap_or(usual.close_ended),
        bounce: table.take("bounce", OneOf(BOUNCE))?.unwrap_or(usual.bounce),
        packed: table.take("packed", OneOf(PACKED))?.unwrap_or(usual.packed),
        ..usual
    };
    Ok(Some((policy, lines)))
}
