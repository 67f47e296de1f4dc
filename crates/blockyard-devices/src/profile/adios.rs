//! The tunables of adios: the table `[queue.adios]`.

use blockyard::policy::{AdiosBatchOrder, AdiosDiscards, AdiosModel, AdiosTunables};
use blockyard::time::Duration;
use toml::de::DeValue;

use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::Table;
use crate::reader::value::{Count, Kind, OneOf, Time, written};

pub(super) const ADIOS: &[&str] = &[
    "global-latency-window",
    "bq-refill-below-ratio",
    "lat-model-latency-limit",
    "batch-limit-read",
    "batch-limit-write",
    "batch-limit-discard",
    "lat-target-read",
    "lat-target-write",
    "lat-target-discard",
    "lat-model-read-base",
    "lat-model-read-slope",
    "lat-model-write-base",
    "lat-model-write-slope",
    "lat-model-discard-base",
    "lat-model-discard-slope",
    "shrink-at-kreqs",
    "shrink-at-gbytes",
    "shrink-resist",
    "read-priority",
    "batch-order",
    "compliance-flags",
    "discards",
];

const DISCARDS: &[(&str, AdiosDiscards)] =
    &[("barriers", AdiosDiscards::Barriers), ("sorted", AdiosDiscards::Sorted)];

/// A priority from -20 to 19, as Linux's levels of nice.
struct Priority;

impl Kind for Priority {
    type Out = i32;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<i32, Problem> {
        let number = value.as_integer().and_then(|digits| digits.to_string().parse().ok());
        let given = value.as_integer().map(ToString::to_string);
        number.filter(|number| (-20..=19).contains(number)).ok_or_else(|| match given {
            Some(given) => {
                Problem::OutOfRange { key: key.to_owned(), given, allowed: "-20 to 19".to_owned() }
            }
            None => Problem::Unsuitable {
                key: key.to_owned(),
                given: written(value),
                wanted: "a whole number",
                instead: Some("one from -20 to 19".to_owned()),
            },
        })
    }
}

/// Reads the tunables of adios. Missing keys have the defaults of its version 3.1.9.
pub(super) fn adios(table: &Table<'_>) -> Result<AdiosTunables, ProfileError> {
    let usual = AdiosTunables::default();
    let limit = table.take_or("lat-model-latency-limit", Time, usual.lat_model_latency_limit)?;
    if limit > Duration::from_secs(2) {
        let words = "`lat-model-latency-limit` is at most 2s";
        return Err(table.wrong("lat-model-latency-limit", Problem::Contradiction(words)));
    }
    Ok(AdiosTunables {
        global_latency_window: table.take("global-latency-window", Time)?,
        bq_refill_below_ratio: table.take_or(
            "bq-refill-below-ratio",
            Count(0..=100),
            usual.bq_refill_below_ratio,
        )?,
        lat_model_latency_limit: limit,
        batch_limit_read: table.take_or(
            "batch-limit-read",
            Count(1..=u32::MAX),
            usual.batch_limit_read,
        )?,
        batch_limit_write: table.take_or(
            "batch-limit-write",
            Count(1..=u32::MAX),
            usual.batch_limit_write,
        )?,
        batch_limit_discard: table.take_or(
            "batch-limit-discard",
            Count(1..=u32::MAX),
            usual.batch_limit_discard,
        )?,
        lat_target_read: table.take_or("lat-target-read", Time, usual.lat_target_read)?,
        lat_target_write: table.take_or("lat-target-write", Time, usual.lat_target_write)?,
        lat_target_discard: table.take_or("lat-target-discard", Time, usual.lat_target_discard)?,
        lat_model_read: model(table, ["lat-model-read-base", "lat-model-read-slope"])?,
        lat_model_write: model(table, ["lat-model-write-base", "lat-model-write-slope"])?,
        lat_model_discard: model(table, ["lat-model-discard-base", "lat-model-discard-slope"])?,
        shrink_at_kreqs: table.take_or(
            "shrink-at-kreqs",
            Count(1..=100_000),
            usual.shrink_at_kreqs,
        )?,
        shrink_at_gbytes: table.take_or(
            "shrink-at-gbytes",
            Count(1..=1000),
            usual.shrink_at_gbytes,
        )?,
        shrink_resist: table.take_or("shrink-resist", Count(1..=3), usual.shrink_resist)?,
        read_priority: table.take_or("read-priority", Priority, usual.read_priority)?,
        batch_order: match table.take_or("batch-order", Count(0..=1), 0_u8)? {
            0 => AdiosBatchOrder::Kinds,
            _ => AdiosBatchOrder::Sweep,
        },
        fixed_order: table.take_or("compliance-flags", Count(0..=1), 0_u8)? == 1,
        discards: table.take_or("discards", OneOf(DISCARDS), usual.discards)?,
    })
}

/// Reads what is known of a kind of requests.
fn model(table: &Table<'_>, [base, slope]: [&str; 2]) -> Result<AdiosModel, ProfileError> {
    Ok(AdiosModel {
        base: table.take_or(base, Time, Duration::ZERO)?,
        slope: table.take_or(slope, Time, Duration::ZERO)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Design, WbtLatency};
    use blockyard::policy::ElevatorKind;

    fn tunables(name: &str) -> AdiosTunables {
        tunables_of(&Design::lookup(name).unwrap())
    }

    fn tunables_of(design: &Design) -> AdiosTunables {
        let ElevatorKind::Adios(adios) = design.policies.elevator else { panic!("adios") };
        adios
    }

    fn model(base_us: u64, slope_ns: u64) -> AdiosModel {
        AdiosModel { base: Duration::from_us(base_us), slope: Duration::from_ns(slope_ns) }
    }

    fn error(lines: &str) -> String {
        Design::parse("my.toml", lines).unwrap_err().to_string()
    }

    /// The file of the design writes the defaults out.
    #[test]
    fn the_designs_have_the_defaults_of_its_release() {
        for name in ["mq-adios", "adios", "mq-adios-6.12", "adios-6.12"] {
            assert_eq!(tunables(name), AdiosTunables::default(), "{name}");
            let wbt = Design::lookup(name).unwrap().wbt_latency;
            assert_eq!(wbt, WbtLatency::Linux, "{name} leaves the throttle of writeback on");
        }
    }

    #[test]
    fn each_tunable_is_its_own() {
        let text = "base = \"mq-adios\"\n[queue.adios]\nglobal-latency-window = \"1ms\"\n\
                    bq-refill-below-ratio = 2\nlat-model-latency-limit = \"2s\"\n\
                    batch-limit-read = 4\nbatch-limit-write = 5\nbatch-limit-discard = 6\n\
                    lat-target-read = \"7ms\"\nlat-target-write = \"8ms\"\n\
                    lat-target-discard = \"9ms\"\nlat-model-read-base = \"10us\"\n\
                    lat-model-read-slope = \"11ns\"\nlat-model-write-base = \"12us\"\n\
                    lat-model-write-slope = \"13ns\"\nlat-model-discard-base = \"14us\"\n\
                    lat-model-discard-slope = \"15ns\"\nshrink-at-kreqs = 16\n\
                    shrink-at-gbytes = 17\nshrink-resist = 3\nread-priority = -19\n\
                    batch-order = 1\ncompliance-flags = 1\ndiscards = \"sorted\"\n";
        let expected = AdiosTunables {
            global_latency_window: Some(Duration::from_ms(1)),
            bq_refill_below_ratio: 2,
            lat_model_latency_limit: Duration::from_secs(2),
            batch_limit_read: 4,
            batch_limit_write: 5,
            batch_limit_discard: 6,
            lat_target_read: Duration::from_ms(7),
            lat_target_write: Duration::from_ms(8),
            lat_target_discard: Duration::from_ms(9),
            lat_model_read: model(10, 11),
            lat_model_write: model(12, 13),
            lat_model_discard: model(14, 15),
            shrink_at_kreqs: 16,
            shrink_at_gbytes: 17,
            shrink_resist: 3,
            read_priority: -19,
            batch_order: AdiosBatchOrder::Sweep,
            fixed_order: true,
            discards: AdiosDiscards::Sorted,
        };
        assert_eq!(tunables_of(&Design::parse("mine", text).unwrap()), expected);
    }

    #[test]
    fn tunables_that_cannot_be_are_refused() {
        for (line, words) in [
            ("read-priority = 20", "`read-priority` is `20`, out of range (-20 to 19)"),
            ("read-priority = -21", "`read-priority` is `-21`, out of range (-20 to 19)"),
            ("batch-limit-read = 0", "`batch-limit-read` is `0`, out of range (1 to 4294967295)"),
            ("shrink-resist = 4", "`shrink-resist` is `4`, out of range (1 to 3)"),
            (
                "bq-refill-below-ratio = 101",
                "`bq-refill-below-ratio` is `101`, out of range (0 to 100)",
            ),
            ("lat-model-latency-limit = \"2.1s\"", "`lat-model-latency-limit` is at most 2s"),
        ] {
            let found = error(&format!("base = \"mq-adios\"\n[queue.adios]\n{line}\n"));
            assert_eq!(found, format!("my.toml:3: {words}"));
        }
        let found = error("base = \"mq-adios\"\nqueue.adios.read-priority = \"high\"\n");
        assert!(found.starts_with("my.toml:2: `read-priority`"), "{found}");
        assert_eq!(
            error("base = \"mq-none\"\n[queue.adios]\n"),
            "my.toml:2: `[queue.adios]` goes only with `elevator = \"adios\"`"
        );
        assert_eq!(
            error("base = \"mq-adios\"\n[queue]\nasync-depth = 9\n"),
            "my.toml:3: `async-depth` does not go with `elevator = \"adios\"`, which leaves all tags to every request"
        );
    }
}
