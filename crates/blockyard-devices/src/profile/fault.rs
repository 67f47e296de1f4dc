//! Fault files: rules for the faults of a device, as TOML.
//!
//! ```toml
//! [[rule]]
//! name = "bad-block"       # the name in answers; without it, `rule N` for the Nth rule
//! op = ["read", "write"]   # or one op; without it, every op
//! disk = 0                 # without it, every disk
//! sectors = "1000..1008"   # of 512 bytes, 1008 not included; without it, every sector
//! from = "30s"             # since the run or the server began; without it, from the beginning
//! for = "5s"               # from then on; without it, to the end
//! error = "medium"         # what happens to the requests that match
//! ```
//!
//! The ops are `read`, `write`, `flush` (or `fsync`), `discard` (or `trim`), `write-zeroes` and
//! `secure-erase`.
//!
//! Each rule has one action:
//!
//! | key | effect on the request |
//! |---|---|
//! | `error = STATUS` | it ends with an error from the device; with `at-once = true` from the
//! driver, and the device never sees it |
//! | `delay = TIME` | it completes this much later |
//! | `busy = KIND` | it is refused for now: `device`, `host` or `resource` |
//! | `requeue = true` | the device gives it back for another try |
//! | `lost = true` | the device executes it, and its completion never comes |
//! | `timed-out = true` | as `lost`, and the driver gives it up after the timeout |
//! | `torn-write = SECTORS` | only this many sectors of a write reach the medium |
//! | `lost-write = true` | a write never reaches the medium |
//! | `misdirected-write = SECTOR` | a write reaches the medium at this sector |
//!
//! A rule fires on each request that it matches, unless it has one of these: `nth = N`, the Nth
//! match only; `every = N`, each Nth match; `first = N` and `last = M`, the Nth to the Mth match;
//! `one-in = N`, one match in N by chance. Rules are tried in the order of the file, and the first
//! one that fires decides.
//!
//! An eMMC device or SD card also has faults below requests, each once in this many chances on
//! average:
//!
//! ```toml
//! [card]
//! response-crc-one-in = 1000    # also command-lost, no-data, read-crc, write-crc and program
//! [host]
//! drift-one-in = 500            # also interrupt-lost, not-now and tuning-fails
//! removed-at = "20ms"           # somebody pulls the card out
//! ```

use core::ops::Range;
use std::borrow::Cow;

use blockyard::bio::Op;
use blockyard::driver::Busy;
use blockyard::layer::fault::{Action, FaultRule, Turns, When};
use blockyard::status::Status;
use blockyard::time::Duration;
use blockyard::unit::QueueId;
use toml::de::DeValue;

use super::device::Device;
use crate::families::DeviceModel;
use crate::mmc::profile::{MmcFaults, mmc_faults};
use crate::reader::error::{Problem, ProfileError};
use crate::reader::reading::Notes;
use crate::reader::source::{Source, read};
use crate::reader::table::{Choices, Table};
use crate::reader::value::{Count, Flag, Kind, OneOf, Text, Time, unsuitable};

/// The faults in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRules {
    /// The name of the file.
    pub name: String,
    /// The rules in the order of the file.
    pub rules: Vec<FaultRule>,
    /// Faults below requests, in the card and its host.
    pub mmc: MmcFaults,
}

/// The fault file has faults of a card, and the device has no card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCard;

const KEYS: &[&str] = &["rule", "card", "host"];
const RULE: &[&str] = &[
    "name",
    "op",
    "disk",
    "sectors",
    "from",
    "for",
    "nth",
    "every",
    "first",
    "last",
    "one-in",
    "error",
    "at-once",
    "delay",
    "busy",
    "requeue",
    "lost",
    "timed-out",
    "torn-write",
    "lost-write",
    "misdirected-write",
];

const OPS: &[(&str, Op)] = &[
    ("read", Op::Read),
    ("write", Op::Write),
    ("flush", Op::Flush),
    ("fsync", Op::Flush),
    ("discard", Op::Discard),
    ("trim", Op::Discard),
    ("write-zeroes", Op::WriteZeroes),
    ("secure-erase", Op::SecureErase),
];
const STATUS: &[(&str, Status)] = &[
    ("io", Status::IoError),
    ("medium", Status::Medium),
    ("timeout", Status::Timeout),
    ("no-space", Status::NoSpace),
    ("not-supported", Status::NotSupported),
    ("gone", Status::Gone),
];
const BUSY: &[(&str, Busy)] =
    &[("device", Busy::Device), ("host", Busy::Host), ("resource", Busy::Resource)];

/// A number from 1 on.
const NUMBER: core::ops::RangeInclusive<u64> = 1..=u64::MAX;

/// A name that fits on one line of a terminal.
struct Name;

impl Kind for Name {
    type Out = String;
    const FIGURE: bool = false;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<String, Problem> {
        let name = Text.read(key, value)?;
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(unsuitable(key, value, "a name to be printed"));
        }
        Ok(name)
    }
}

/// An op, or an array of them.
struct Ops;

impl Kind for Ops {
    type Out = Vec<Op>;
    const FIGURE: bool = false;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<Vec<Op>, Problem> {
        match value {
            DeValue::Array(ops) if ops.is_empty() => {
                Err(Problem::Contradiction("`op` names no op: leave it out for every op"))
            }
            DeValue::Array(ops) => {
                ops.iter().map(|op| OneOf(OPS).read(key, op.get_ref())).collect()
            }
            one => OneOf(OPS).read(key, one).map(|op| vec![op]),
        }
    }
}

/// Sectors as `FIRST..END`, the end not included.
struct Sectors;

impl Kind for Sectors {
    type Out = Range<u64>;
    const FIGURE: bool = false;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<Range<u64>, Problem> {
        let range = value.as_str().and_then(|text| {
            let (first, end) = text.split_once("..")?;
            Some(number(first)?..number(end)?)
        });
        range.filter(|range| !range.is_empty()).ok_or_else(|| {
            unsuitable(key, value, "a range of sectors, such as \"1000..1008\" (1008 not included)")
        })
    }
}

/// Digits, and nothing else.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl FaultRules {
    /// Reads the faults from the file at `path`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line of it is wrong.
    pub fn read(path: &str) -> Result<Self, ProfileError> {
        Self::parse(path, &read(path)?)
    }

    /// Reads the faults from `text`. `name` is the name of the file in errors.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Wrong`] for the first error in the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        let notes = Notes::default();
        let top = Table::open(Source::new(name, text, &notes), KEYS, Choices::NONE)?;
        let mut rules: Vec<FaultRule> = Vec::new();
        for table in top.tables("rule", RULE)? {
            let rule = rule(&table, rules.len() + 1)?;
            if rules.iter().any(|other| other.name == rule.name) {
                let words = "another rule has this name: answers could not distinguish them";
                return Err(table.wrong("name", Problem::Contradiction(words)));
            }
            rules.push(rule);
        }
        debug_assert!(rules.iter().all(|rule| !rule.name.is_empty()), "every rule has a name");
        Ok(Self { name: name.to_owned(), rules, mmc: mmc_faults(&top)? })
    }

    /// Returns `device` with the faults of this file in its card and host.
    ///
    /// # Errors
    ///
    /// [`NoCard`] if the file has such faults and `device` is not an eMMC device or SD card.
    pub fn strike<'a>(&self, device: &'a Device) -> Result<Cow<'a, Device>, NoCard> {
        if self.mmc == MmcFaults::default() {
            return Ok(Cow::Borrowed(device));
        }
        let mut struck = device.clone();
        let DeviceModel::Mmc(mmc) = &mut struck.model else { return Err(NoCard) };
        (mmc.card.timing.faults, mmc.host.faults) = (self.mmc.card, self.mmc.host);
        Ok(Cow::Owned(struck))
    }
}

/// Reads the rule with this number, from 1.
fn rule(table: &Table<'_>, number: usize) -> Result<FaultRule, ProfileError> {
    let name = table.take("name", Name)?.unwrap_or_else(|| format!("rule {number}"));
    let (key, then) = action(table)?;
    let ops = table.take("op", Ops)?;
    let other = |op: &Op| *op != Op::Write;
    if then.is_of_writes() && ops.as_ref().is_some_and(|ops| ops.iter().any(other)) {
        let words = "this action is for writes only: leave out `op`, or use `op = \"write\"`";
        return Err(table.wrong(key, Problem::Contradiction(words)));
    }
    let when = When {
        ops: ops.unwrap_or_default(),
        queue: table.take("disk", Count(0..=u16::MAX))?.map(QueueId),
        sectors: table.take("sectors", Sectors)?,
        during: during(table)?,
        turns: turns(table)?,
        one_in: table.take("one-in", Count(NUMBER))?,
    };
    Ok(FaultRule { name, when, then })
}

/// Reads the times at which the rule fires.
fn during(table: &Table<'_>) -> Result<Option<Range<Duration>>, ProfileError> {
    let from = table.take("from", Time)?;
    let time = table.take("for", Time)?;
    if time == Some(Duration::ZERO) {
        let words = "the rule would never fire";
        return Err(table.wrong("for", Problem::Contradiction(words)));
    }
    let start = from.unwrap_or(Duration::ZERO);
    Ok(from.or(time).map(|_| start..time.map_or(Duration::MAX, |time| start + time)))
}

/// Reads the matches on which the rule fires.
fn turns(table: &Table<'_>) -> Result<Turns, ProfileError> {
    let nth = table.take("nth", Count(NUMBER))?;
    let every = table.take("every", Count(NUMBER))?;
    let first = table.take("first", Count(NUMBER))?;
    let last = table.take("last", Count(NUMBER))?;
    let mut said = ["nth", "every", "first", "last"].into_iter().filter(|key| table.has(key));
    let kinds = [nth.is_some(), every.is_some(), first.is_some() || last.is_some()];
    if let Some(key) = said.next_back()
        && kinds.into_iter().filter(|kind| *kind).count() > 1
    {
        let words = "a rule has `nth`, or `every`, or `first` and `last`";
        return Err(table.wrong(key, Problem::Contradiction(words)));
    }
    if let Some(nth) = nth {
        return Ok(Turns::Between(nth, nth));
    }
    if let Some(every) = every {
        return Ok(Turns::Every(every));
    }
    let first = first.unwrap_or(1);
    let last = last.unwrap_or(u64::MAX);
    if last < first {
        let words = "`last` is before `first`: the rule would never fire";
        return Err(table.wrong("last", Problem::Contradiction(words)));
    }
    Ok(if (first, last) == (1, u64::MAX) { Turns::All } else { Turns::Between(first, last) })
}

/// Reads the flag at `key`. Returns `action` if it is true.
fn switch(
    table: &Table<'_>,
    key: &'static str,
    action: Action,
) -> Result<Option<Action>, ProfileError> {
    Ok(table.take(key, Flag)?.and_then(|on| on.then_some(action)))
}

/// Reads the action of the rule. Returns its key as well.
fn action(table: &Table<'_>) -> Result<(&'static str, Action), ProfileError> {
    let at_once = table.take_or("at-once", Flag, false)?;
    let error = if at_once { Action::Fail } else { Action::Error };
    let all = [
        ("error", table.take("error", OneOf(STATUS))?.map(error)),
        ("delay", table.take("delay", Time)?.map(Action::Delay)),
        ("busy", table.take("busy", OneOf(BUSY))?.map(Action::Busy)),
        ("requeue", switch(table, "requeue", Action::Again)?),
        ("lost", switch(table, "lost", Action::Lose)?),
        ("timed-out", switch(table, "timed-out", Action::TimeOut)?),
        ("torn-write", table.take("torn-write", Count(1..=u32::MAX))?.map(Action::TearWrite)),
        ("lost-write", switch(table, "lost-write", Action::LoseWrite)?),
        (
            "misdirected-write",
            table.take("misdirected-write", Count(0..=u64::MAX))?.map(Action::MisdirectWrite),
        ),
    ];
    if at_once && !table.has("error") {
        let words = "`at-once` goes only with `error`";
        return Err(table.wrong("at-once", Problem::Contradiction(words)));
    }
    let mut said = all.into_iter().filter_map(|(key, action)| Some((key, action?)));
    let Some(first) = said.next() else {
        let words = "a rule says what happens to a request: `error`, `delay`, `busy`, `requeue`, \
                     `lost`, `timed-out`, `torn-write`, `lost-write` or `misdirected-write`";
        return Err(table.wrong("", Problem::Contradiction(words)));
    };
    if let Some((key, _)) = said.next() {
        let words = "a rule has one action: write another rule for the other one";
        return Err(table.wrong(key, Problem::Contradiction(words)));
    }
    debug_assert!(RULE.contains(&first.0), "`{}` is not a key of a rule", first.0);
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{CardFaults, HostFaults};

    /// Returns the error about a file.
    fn error(text: &str) -> String {
        FaultRules::parse("f.toml", text).unwrap_err().to_string()
    }

    /// Returns the error about a rule with these lines, beginning with its line.
    fn rule_error(lines: &str) -> String {
        let told = error(&format!("[[rule]]\nname = \"x\"\n{lines}\n"));
        told.strip_prefix("f.toml:").expect("the file's name").to_owned()
    }

    #[test]
    fn every_key_is_read_as_its_action() {
        let text = include_str!("../../tests/faults/every_key.toml");
        let rules = FaultRules::parse("every_key.toml", text).unwrap().rules;
        let actions: Vec<_> = rules.iter().map(|rule| rule.then).collect();
        let expected = [
            Action::Error(Status::Medium),
            Action::Fail(Status::NotSupported),
            Action::Delay(Duration::from_us(1500)),
            Action::Busy(Busy::Host),
            Action::Again,
            Action::Lose,
            Action::TimeOut,
            Action::TearWrite(3),
            Action::LoseWrite,
            Action::MisdirectWrite(4096),
            Action::LoseWrite,
            Action::Again,
            Action::Again,
        ];
        assert_eq!(actions, expected);
        let first = &rules[0];
        assert_eq!(first.name, "bad block");
        assert_eq!(first.when.ops, [Op::Read, Op::Write]);
        assert_eq!(
            (first.when.queue, first.when.sectors.clone()),
            (Some(QueueId(0)), Some(1000..1008))
        );
        assert_eq!(rules[1].when.ops, [Op::Discard]);
        assert_eq!((rules[2].when.one_in, rules[2].when.turns), (Some(16), Turns::All));
        let s = Duration::from_secs;
        let times = [9, 10, 11].map(|at| rules[at].when.during.clone());
        let expected = [None, Some(s(30)..s(35)), Some(Duration::ZERO..Duration::from_ms(20))];
        assert_eq!((times, &rules[12].when.during), (expected, &Some(s(30)..Duration::MAX)));
        let turns: Vec<_> = [3, 4, 5, 6, 9].iter().map(|at| rules[*at].when.turns).collect();
        let between = Turns::Between;
        let expected = [
            Turns::Every(100),
            between(7, 7),
            between(10, 12),
            between(1000, u64::MAX),
            between(1, 2),
        ];
        assert_eq!(turns, expected);
    }

    #[test]
    fn faults_of_a_card_and_its_host_strike_cards_only() {
        let text = "[card]\nprogram-one-in = 50\n[host]\ndrift-one-in = 7\nremoved-at = \"20ms\"\n";
        let faults = FaultRules::parse("f.toml", text).unwrap();
        let host = HostFaults {
            drift_one_in: Some(7),
            removed_at: Some(Duration::from_ms(20)),
            ..HostFaults::default()
        };
        let card = CardFaults { program_one_in: Some(50), ..CardFaults::default() };
        assert_eq!(faults.mmc, MmcFaults { card, host });
        let card = Device::lookup("sd-hs").unwrap();
        let disk = Device::lookup("srp").unwrap();
        let DeviceModel::Mmc(struck) = faults.strike(&card).unwrap().model else { panic!() };
        assert_eq!((struck.card.timing.faults, struck.host.faults), (faults.mmc.card, host));
        assert_eq!(faults.strike(&disk), Err(NoCard));
        let none = FaultRules::parse("f.toml", "[card]\n").unwrap();
        assert_eq!(none.strike(&disk), Ok(Cow::Borrowed(&disk)));
        assert!(error("[card]\nprogam-one-in = 2").starts_with(
            "f.toml:2: unknown key `progam-one-in` in `[card]`: did you mean `program-one-in`?"
        ));
        assert!(error("[host]\ndrift-one-in = 0").starts_with("f.toml:2: `drift-one-in` is `0`"));
    }

    #[test]
    fn a_file_without_rules_has_none() {
        assert_eq!(FaultRules::parse("f.toml", "").unwrap().rules, []);
    }

    #[test]
    fn a_rule_without_a_name_has_its_number() {
        let text = "[[rule]]\nop = \"fsync\"\nlost = true\n[[rule]]\nname = \"x\"\nlost = true\n[[rule]]\n\
                    op = \"trim\"\nlost = true\n";
        let rules = FaultRules::parse("f.toml", text).unwrap().rules;
        let names: Vec<_> = rules.iter().map(|rule| &*rule.name).collect();
        assert_eq!(names, ["rule 1", "x", "rule 3"]);
        assert_eq!(
            (&rules[0].when.ops[..], &rules[2].when.ops[..]),
            (&[Op::Flush][..], &[Op::Discard][..])
        );
        let taken = "[[rule]]\nname = \"rule 2\"\nlost = true\n[[rule]]\nlost = true\n";
        assert!(
            error(taken).starts_with("f.toml:4: another rule has this name"),
            "{}",
            error(taken)
        );
    }

    #[test]
    fn a_misspelt_word_is_reported_with_its_line_and_the_nearest_spelling() {
        assert!(
            error("\n[[rules]]\n")
                .starts_with("f.toml:2: unknown key `rules`: did you mean `rule`?")
        );
        assert!(
            rule_error("dealy = \"1ms\"")
                .starts_with("3: unknown key `dealy` in `[rule]`: did you mean `delay`?")
        );
        assert!(
            rule_error("error = \"medum\"")
                .starts_with("3: unknown value `medum` for `error`: did you mean `medium`?")
        );
        assert!(
            rule_error("lost = true\nop = [\"read\", \"wriet\"]")
                .starts_with("4: unknown value `wriet` for `op`: did you mean `write`?")
        );
        assert!(rule_error("busy = \"hosts\"").contains("did you mean `host`?"));
    }

    #[test]
    fn a_table_that_is_no_rule_is_reported_at_its_line() {
        assert!(
            error("rule = 3").starts_with("f.toml:1: `rule` is `integer`, not an array of tables")
        );
        assert!(
            error("[[rule]]\nname = \"a\\u001bb\"\nlost = true").starts_with("f.toml:2: `name` is")
        );
        assert!(
            rule_error("op = \"read\"").starts_with("1: a rule says what happens to a request")
        );
        assert!(rule_error("lost = false").starts_with("1: a rule says what happens to a request"));
        assert!(rule_error("lost = true\nrequeue = true").starts_with("3: a rule has one action"));
        assert!(
            rule_error("lost = true\nat-once = true").starts_with("4: `at-once` goes only with")
        );
        assert!(
            rule_error("torn-write = 1\nop = \"read\"").starts_with("3: this action is for writes")
        );
        assert!(
            rule_error("lost = true\nnth = 1\nevery = 2").starts_with("5: a rule has `nth`, or")
        );
        assert!(
            rule_error("lost = true\nfrom = \"9s\"\nfor = \"0s\"").starts_with("5: the rule would")
        );
        assert!(rule_error("lost = true\nfrom = 9").starts_with("4: `from` is `"));
        assert!(rule_error("lost = true\nfirst = 3\nlast = 2").starts_with("5: `last` is before"));
        assert!(
            rule_error("lost = true\nevery = 0").starts_with("4: `every` is `0`, out of range")
        );
        assert!(
            rule_error("lost = true\none-in = 0").starts_with("4: `one-in` is `0`, out of range")
        );
        for sectors in
            ["8..8", "9..8", "8", "..8", "8..", "0x8..9", "-1..2", "8...9", "a..b", "+1..9"]
        {
            let told = rule_error(&format!("lost = true\nsectors = \"{sectors}\""));
            assert!(told.starts_with("4: `sectors` is `"), "{told}");
        }
        let twice = "[[rule]]\nname = \"x\"\nlost = true\n".repeat(2);
        assert!(error(&twice).starts_with("f.toml:5: another rule has this name"));
    }
}
