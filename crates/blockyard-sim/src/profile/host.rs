//! `[host]` of a design: how the request path of an MMC host works.

use blockyard::mmc::host::{BusyDetect, Transfer};
use blockyard::mmc::policy::{
    Bounce, HostPolicy, HsqDefer, HsqLimit, HsqOrder, HsqPolicy, Packed, Pipeline,
};
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

/// The table `[host]` of `top`; `None` where there is none.
pub(super) fn host(top: &Table<'_>) -> Result<Option<HostPolicy>, ProfileError> {
    let table = top.table("host", HOST)?;
    if table.is_empty() {
        return Ok(None);
    }
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
    Ok(Some(HostPolicy {
        transfer: table.take("transfer", OneOf(TRANSFER))?.unwrap_or(usual.transfer),
        busy: table.need("busy-detect", OneOf(BUSY_DETECT))?,
        close_ended: table.take("close-ended", Flag)?.unwrap_or(usual.close_ended),
        bounce: table.take("bounce", OneOf(BOUNCE))?.unwrap_or(usual.bounce),
        packed: table.take("packed", OneOf(PACKED))?.unwrap_or(usual.packed),
        ..usual
    }))
}
