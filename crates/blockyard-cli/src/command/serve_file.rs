//! The file of `serve --config`: several disks, each with its own options.
//!
//! The keys are the options of the command line. They become a command line for each disk, so
//! options are parsed in one place. Errors are reported by file and line.

use std::fs;
use std::path::Path;

use blockyard_devices::profile::{Problem, ProfileError};
use clap::error::{ContextKind, ContextValue};
use clap::{Args, Command, FromArgMatches};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::cli::{FaultSource, Serve, one_line};
use crate::message::Failure;

/// The keys of the server, at the top of the file.
const TOP: &[&str] = &[
    "nbd",
    "lanes",
    "metrics",
    "control",
    "trace",
    "blktrace",
    "tls",
    "tls-cert",
    "tls-key",
    "tls-client-ca",
    "io",
    "poll",
    "max-connections",
    "handshake-timeout",
    "drain-timeout",
    "socket-mode",
    "socket-group",
    "pidfile",
    "run",
    "exit-with-parent",
    "log-level",
    "log-format",
    "disk",
];
/// The keys of a disk.
const DISK: &[&str] = &[
    "name",
    "source",
    "design",
    "depth",
    "as",
    "delay",
    "rate",
    "fault",
    "seed",
    "buffered",
    "btt",
    "survives",
    "sync",
    "container",
    "force",
    "huge-pages",
    "readonly",
    "allow-from",
    "allow-certificate",
    "weight",
    "max-clients",
];
/// The keys of a disk that are not options: the name of the export, and its disk.
const NAME: &str = "name";
const SOURCE: &str = "source";
/// The expected form of the key `disk`.
const DISKS: &str = "an array of tables, begun by `[[disk]]`";

/// The maximum size of the file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A disk of the file: its name and a command line that serves only this disk.
pub(super) struct Given {
    pub(super) name: String,
    pub(super) args: Serve,
}

/// An option and the offset of its key in the file.
struct Said {
    option: String,
    offset: usize,
}

struct File<'a> {
    name: &'a str,
    text: &'a str,
}

/// Returns all disks of the file at `path`, at least one.
pub(super) fn read(path: &Path) -> Result<Vec<Given>, Failure> {
    let name = path.display().to_string();
    let unreadable = |error| ProfileError::Unreadable { file: name.clone(), error };
    if fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE_BYTES {
        return Err(Failure::Input(format!("{name}: longer than {} KiB", MAX_FILE_BYTES / 1024)));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    Ok(parse(&name, &text)?)
}

/// Returns all disks of `text`, from the file called `name`, at least one.
pub(super) fn parse(name: &str, text: &str) -> Result<Vec<Given>, ProfileError> {
    File { name, text }.disks()
}

impl File<'_> {
    fn disks(&self) -> Result<Vec<Given>, ProfileError> {
        let top = DeTable::parse(self.text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            self.wrong(offset, Problem::Syntax(error.message().to_owned()))
        })?;
        let common = self.options(top.get_ref(), "", TOP)?;
        let missing = Problem::MissingKey { key: "disk".to_owned(), table: "" };
        let disks = top.get_ref().get("disk").ok_or_else(|| self.wrong(0, missing))?;
        match disks.get_ref() {
            DeValue::Array(all) if !all.is_empty() => {
                all.iter().map(|disk| self.disk(disk, &common)).collect()
            }
            _ => Err(self.unsuitable("disk", disks, DISKS)),
        }
    }

    fn disk(&self, disk: &Spanned<DeValue<'_>>, common: &[Said]) -> Result<Given, ProfileError> {
        let offset = disk.span().start;
        let DeValue::Table(table) = disk.get_ref() else {
            return Err(self.unsuitable("disk", disk, DISKS));
        };
        let own = self.options(table, "disk", DISK)?;
        let name = self.text_of(table, NAME)?.unwrap_or_default();
        let Some(source) = self.text_of(table, SOURCE)? else {
            let missing = Problem::MissingKey { key: SOURCE.to_owned(), table: "disk" };
            return Err(self.wrong(offset, missing));
        };

        let said: Vec<_> = common.iter().chain(&own).collect();
        let options = said.iter().map(|said| said.option.clone());
        let line = options.chain(["--".to_owned(), source]);
        let command = Serve::augment_args(Command::new("serve").no_binary_name(true));
        let args = command
            .try_get_matches_from(line)
            .and_then(|matches| Serve::from_arg_matches(&matches))
            .map_err(|error| {
                // The option that clap names, such as `--depth <N>`. Without one the error is about
                // the source.
                let of = match error.get(ContextKind::InvalidArg) {
                    Some(ContextValue::String(of)) => of.split(' ').next().unwrap_or_default(),
                    _ => "",
                };
                let is_of = |said: &&&Said| said.option.split('=').next() == Some(of);
                let source =
                    || table.get_key_value(SOURCE).map_or(offset, |(key, _)| key.span().start);
                let at = said.iter().find(is_of).map_or_else(source, |said| said.offset);
                self.wrong(at, Problem::Syntax(one_line(&error)))
            })?;
        if args.fault == Some(FaultSource::Stdin) {
            let words = "`fault` cannot be `-`: a disk of a file gets no rules from standard input";
            let said = own.iter().find(|said| said.option.starts_with("--fault="));
            let at = said.map_or(offset, |said| said.offset);
            return Err(self.wrong(at, Problem::Syntax(words.to_owned())));
        }
        Ok(Given { name, args })
    }

    /// Returns the options in `table`. All keys must be `known`.
    fn options(
        &self,
        table: &DeTable<'_>,
        path: &'static str,
        known: &'static [&'static str],
    ) -> Result<Vec<Said>, ProfileError> {
        let mut said = Vec::new();
        for (key, value) in table {
            let offset = key.span().start;
            let key = key.get_ref().as_ref();
            if !known.contains(&key) {
                let key = key.to_owned();
                return Err(self.wrong(offset, Problem::UnknownKey { key, table: path, known }));
            }
            if [NAME, SOURCE, "disk"].contains(&key) {
                continue;
            }
            let values = match value.get_ref() {
                DeValue::Array(values) if key == "nbd" => values.iter().collect(),
                _ => vec![value],
            };
            for value in values {
                let option = match value.get_ref() {
                    DeValue::String(text) => format!("--{key}={text}"),
                    DeValue::Integer(digits) => format!("--{key}={digits}"),
                    DeValue::Boolean(true) => format!("--{key}"),
                    DeValue::Boolean(false) => continue,
                    _ => return Err(self.unsuitable(key, value, "text, a whole number or a flag")),
                };
                said.push(Said { option, offset });
            }
        }
        Ok(said)
    }

    fn text_of(&self, table: &DeTable<'_>, key: &str) -> Result<Option<String>, ProfileError> {
        match table.get(key) {
            None => Ok(None),
            Some(value) => match value.get_ref() {
                DeValue::String(text) => Ok(Some(text.to_string())),
                _ => Err(self.unsuitable(key, value, "text")),
            },
        }
    }

    fn unsuitable(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        wanted: &'static str,
    ) -> ProfileError {
        let given = value.get_ref().type_str().to_owned();
        let key = key.to_owned();
        let instead = None;
        self.wrong(value.span().start, Problem::Unsuitable { key, given, wanted, instead })
    }

    fn wrong(&self, offset: usize, problem: Problem) -> ProfileError {
        let before = self.text.as_bytes().iter().take(offset);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        ProfileError::Wrong { file: self.name.to_owned(), line, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Lanes;

    fn disks(text: &str) -> Result<Vec<Given>, String> {
        parse("x.toml", text).map_err(|error| error.to_string())
    }

    fn wrong(text: &str) -> String {
        disks(text).err().expect("the text should be refused")
    }

    #[test]
    fn each_disk_has_options_of_its_own_and_those_of_all() {
        let text = r#"
            nbd = ["unix:/tmp/x", "127.0.0.1:0"]
            lanes = 2
            [[disk]]
            source = "memory:1m"
            design = "mq-deadline"
            depth = 7
            [[disk]]
            name = "second"
            source = "null:4k"
            readonly = true
            buffered = false
        "#;
        let disks = disks(text).expect("the text should be accepted");
        let [first, second] = &*disks else { panic!("there are two") };
        assert_eq!((&*first.name, &*second.name), ("", "second"));
        assert_eq!((first.args.lanes, second.args.nbd.len()), (Lanes::Exactly(2), 2));
        assert_eq!((first.args.depth, second.args.depth), (Some(7), None));
        assert_eq!((first.args.readonly, second.args.readonly), (false, true));
        assert!(!second.args.buffered);
        assert_eq!(&*first.args.design, "mq-deadline");
    }

    #[test]
    fn the_example_is_understood() {
        let disks = disks(include_str!("../../../../examples/systemd/blockyard.toml"));
        let names: Vec<_> =
            disks.expect("the text should be accepted").into_iter().map(|disk| disk.name).collect();
        assert_eq!(names, ["", "scratch"]);
    }

    #[test]
    fn errors_are_reported_by_line() {
        let near = wrong("lanes = 1\n[[disk]]\nsource = \"null:1k\"\ndept = 3\n");
        assert!(
            near.starts_with("x.toml:4: unknown key `dept` in `[disk]`: did you mean `depth`?")
        );
        assert!(wrong("lane = 1\n").contains(":1: unknown key `lane`: did you mean `lanes`?"));
        assert_eq!(wrong("lanes = 1\n"), "x.toml:1: missing key `disk`");
        assert!(wrong("\ndisk = []\n").starts_with("x.toml:2: `disk` is `array`, not "));
        assert_eq!(wrong("\n[[disk]]\ndepth = 3"), "x.toml:2: missing key `source` in `[disk]`");
        let range = wrong("[[disk]]\nsource = \"null:1k\"\n\ndepth = 0\n");
        assert!(range.starts_with("x.toml:4: invalid value '0' for '--depth <N>'"), "{range}");
        let size = wrong("[[disk]]\n\nsource = \"null:1x\"\n");
        assert!(size.starts_with("x.toml:3: invalid value 'null:1x' for '[DISK]'"), "{size}");
        let lone = wrong("[[disk]]\nsource = [1]\n");
        assert_eq!(lone, "x.toml:2: `source` is `array`, not text");
        assert!(wrong("nbd = \n").starts_with("x.toml:1: "));
    }
}
