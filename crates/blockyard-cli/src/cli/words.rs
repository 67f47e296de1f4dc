//! The words of a command line that has a job: those of the command, those of the job, and fio's
//! own switches.

use blockyard_fio::job::{find, option_word};
use clap::{Command, CommandFactory};

use super::{Cli, JOB_OPTIONS};

/// A switch of fio's that is no option of a job.
struct Switch {
    name: &'static str,
    /// Whether the next word is its value.
    takes_value: bool,
    /// Why it is not supported; `None` if it changes no answer.
    refused: Option<&'static str>,
}

const fn ignored(name: &'static str, takes_value: bool) -> Switch {
    Switch { name, takes_value, refused: None }
}

const fn refused(name: &'static str, reason: &'static str) -> Switch {
    Switch { name, takes_value: false, refused: Some(reason) }
}

const NO_NETWORK: &str = "jobs run here, and are sent nowhere";
const NO_TRIGGER: &str = "nothing is run along with a job";
const NO_TEST: &str = "it tests a part of fio";

/// The switches that `run` and `whatif` do not have as options of their own.
const SWITCHES: &[Switch] = &[
    ignored("eta", true),
    ignored("eta-interval", true),
    ignored("eta-newline", true),
    ignored("status-interval", true),
    ignored("alloc-size", true),
    ignored("max-jobs", true),
    ignored("aux-path", true),
    ignored("warnings-fatal", false),
    refused("latency-log", "use --lat-log PREFIX, or the job's write_lat_log"),
    refused("bandwidth-log", "each job has a log of its own: use --bw-log PREFIX"),
    refused("minimal", "only `run` prints the terse format"),
    refused("append-terse", "only `run` prints the terse format"),
    refused("terse-version", "only `run` prints the terse format"),
    refused("cmdhelp", "see `blockyard list options`"),
    refused("enghelp", "see `blockyard list options`"),
    refused("showcmd", "a job is not printed as a command line"),
    refused("debug", "--trace FILE shows what happened to each request"),
    refused("idle-prof", "whatif --details shows the load of the processors"),
    refused("inflate-log", "logs are never compressed"),
    refused("merge-blktrace-only", "use `blockyard replay` for traces"),
    refused("server", NO_NETWORK),
    refused("daemonize", NO_NETWORK),
    refused("client", NO_NETWORK),
    refused("remote-config", NO_NETWORK),
    refused("trigger", NO_TRIGGER),
    refused("trigger-file", NO_TRIGGER),
    refused("trigger-timeout", NO_TRIGGER),
    refused("trigger-remote", NO_TRIGGER),
    refused("cpuclock-test", NO_TEST),
    refused("crctest", NO_TEST),
    refused("memcpytest", NO_TEST),
];

/// Whether `word` begins a job: `--name=x`, `-name=x` or `--name`.
pub(super) fn is_name(word: &str) -> bool {
    option_word(word).is_some_and(|word| word == "name" || word.starts_with("name="))
}

/// Returns the command line with the options of a job moved behind a `--`, and without fio's
/// switches that change no answer. Options are read as fio reads them: `-rw=read`, `--rw read`.
///
/// Where there is a `--name`, every option that is not the command's own belongs to the job, and so
/// does every word after the first of them. Without one, only the options that jobs have do: they
/// precede those of a job file.
pub(super) fn job_options_last(argv: Vec<String>) -> Result<Vec<String>, String> {
    let mut cli = Cli::command();
    cli.build();
    let command = argv.get(1).and_then(|name| cli.find_subcommand(name));
    let has_job = |command: &&Command| command.get_arguments().any(|a| a.get_id() == JOB_OPTIONS);
    let Some(command) = command.filter(has_job).filter(|_| !argv.iter().any(|arg| arg == "--"))
    else {
        return Ok(argv);
    };
    let is_named = argv.iter().any(|arg| is_name(arg));
    let mut ours = Vec::new();
    let mut job = Vec::new();
    let mut args = argv.into_iter().peekable();
    ours.extend(args.by_ref().take(2));
    while let Some(arg) = args.next() {
        let value_follows = args.peek().is_some_and(|next| option_word(next).is_none());
        // `-h` is the command's.
        let Some(word) = option_word(&arg).filter(|word| arg.starts_with("--") || word.len() > 1)
        else {
            let words = if is_named && !job.is_empty() { &mut job } else { &mut ours };
            words.push(arg);
            continue;
        };
        let name = word.split('=').next().unwrap_or(word);
        let is_whole = name != word;
        let of_job = is_named && is_of_job(name, is_whole || value_follows);
        if let Some(takes_value) = own(command, name).filter(|_| !of_job) {
            ours.push(format!("--{word}"));
            ours.extend(args.next_if(|_| takes_value && !is_whole));
        } else if let Some(switch) = SWITCHES.iter().find(|switch| switch.name == name) {
            if let Some(reason) = switch.refused {
                return Err(format!("fio's --{name} is not supported: {reason}"));
            }
            args.next_if(|_| switch.takes_value && !is_whole);
        } else if is_named || find(name).is_some() {
            let takes_value = find(name).is_some_and(|option| !option.is_flag());
            job.push(arg);
            job.extend(args.next_if(|_| takes_value && !is_whole && value_follows));
        } else {
            ours.push(arg);
        }
    }
    if !job.is_empty() {
        ours.push("--".to_owned());
        ours.extend(job);
    }
    Ok(ours)
}

/// Whether an option that `run` and `whatif` have, too, is the job's in a job given by options:
/// `--verify=crc32c` is, and `--verify` alone is the command's.
fn is_of_job(name: &str, has_value: bool) -> bool {
    match name {
        "runtime" => true,
        "verify" => has_value,
        _ => false,
    }
}

/// Whether the next word is the value of the option `name` of `command`; `None` if the command has
/// no such option.
fn own(command: &Command, name: &str) -> Option<bool> {
    let is_it = |own: &&clap::Arg| {
        let alias = own.get_all_aliases().is_some_and(|all| all.contains(&name));
        own.get_long() == Some(name) || alias
    };
    let own = command.get_arguments().find(is_it)?;
    Some(own.get_action().takes_values() && !own.is_require_equals_set())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> String {
        let words = job_options_last(line.split(' ').map(str::to_owned).collect());
        words.map_or_else(|error| error, |words| words.join(" "))
    }

    #[test]
    fn options_of_a_job_go_behind_those_of_the_command() {
        assert_eq!(
            split("blockyard run --direct=1 --name=x --device srp --runtime=3 --seed=3 --name=y"),
            "blockyard run --device srp --seed=3 -- --direct=1 --name=x --runtime=3 --name=y"
        );
        assert_eq!(
            split("blockyard whatif --name=x --rw read --design a,b --output-format json"),
            "blockyard whatif --design a,b --output-format json -- --name=x --rw read"
        );
    }

    /// As fio 3.33 and 3.42 read them with `getopt_long_only`.
    #[test]
    fn one_dash_is_as_good_as_two_and_values_follow_a_blank() {
        assert_eq!(
            split("blockyard run -thread -iodepth 32 -rw=read -name=x -device srp -flow -1"),
            "blockyard run --device srp -- -thread -iodepth 32 -rw=read -name=x -flow -1"
        );
        assert_eq!(
            split("blockyard run --verify --name x --fault f.toml --verify md5 --runtime 3"),
            "blockyard run --verify --fault f.toml -- --name x --verify md5 --runtime 3"
        );
        assert_eq!(
            split("blockyard run -bs 8k job.fio --runtime 3s --output-format=json"),
            "blockyard run job.fio --runtime 3s --output-format=json -- -bs 8k"
        );
    }

    #[test]
    fn switches_of_fio_are_dropped_or_refused() {
        assert_eq!(
            split(
                "blockyard run --eta=never --eta-newline 1 job.fio --append-terse --warnings-fatal"
            ),
            "blockyard run job.fio --append-terse"
        );
        assert_eq!(
            split("blockyard run job.fio --client=host"),
            "fio's --client is not supported: jobs run here, and are sent nowhere"
        );
        assert!(split("blockyard whatif job.fio --minimal").contains("only `run` prints"));
    }

    #[test]
    fn a_command_line_without_job_options_is_left_alone() {
        for line in [
            "blockyard run job.fio --devise srp",
            "blockyard run --device srp -- --name=x --seed=3",
            "blockyard show --name=x",
            "blockyard --name=x",
            "blockyard run -h",
        ] {
            assert_eq!(split(line), line);
        }
    }
}
