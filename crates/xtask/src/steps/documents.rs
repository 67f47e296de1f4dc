//! Steps that run what the documents show: commands, jobs, pages and examples.

use crate::command::Run;
use crate::console::{Outcome, fail, lacks, report_unchecked};
use crate::install::{environment_of_python, install_packages, pip_install, want};
use crate::project::{glob, program, target};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The Python packages that look at pages in a browser.
const PAGE_CHECKERS: [&str; 2] = ["playwright==1.65.2", "axe-playwright-python==0.1.8"];
/// The build of the program.
const BUILD: &str = "cargo build --locked --release -p blockyard-cli";

/// `embed`
pub(super) fn embed(_: &[String]) -> Outcome {
    Run::new("cargo test --locked --manifest-path examples/embed/Cargo.toml").check()
}

/// `readme`
pub(super) fn readme(_: &[String]) -> Outcome {
    let readme = fs::read_to_string("README.md").expect("README");
    let commands: Vec<&str> = readme.lines().filter_map(whatif_command).collect();
    if commands.is_empty() {
        return fail("the README has no what-if command");
    }
    Run::new(BUILD).check()?;
    for command in commands {
        // After the build, each command must end within a minute.
        let output = Run::new("timeout 60 bash -c").arg(command).output()?;
        if output.is_empty() {
            return fail(format!("it printed nothing: {command}"));
        }
        print!("{output}");
    }
    for job in glob("examples/*.fio").into_iter().chain(glob("examples/mmc/*.fio")) {
        let whatif = blockyard("whatif").arg(job);
        whatif.words("--device srp --design mq-none,mq-deadline").without_output().check()?;
    }
    run_posted_jobs()?;
    run_firmware()?;
    for ending in ["", ".blkparse", ".v2.iolog", ".v3.iolog", ".csv"] {
        let replay = blockyard("replay");
        let replay = replay.arg(format!("examples/traces/database{ending}"));
        replay.words("--design mq-none,mq-deadline").without_output().check()?;
    }
    run_fio_examples()
}

/// Returns the command in a line of the README that asks what if.
fn whatif_command(line: &str) -> Option<&str> {
    let command = line.strip_prefix("$ ").unwrap_or(line);
    let arguments = command.strip_prefix("cargo run --release ")?;
    arguments.contains(" whatif ").then_some(command)
}

/// Runs the command that each job in examples/posted states. It must end with an answer.
fn run_posted_jobs() -> Outcome {
    for job in glob("examples/posted/*.fio") {
        let text = fs::read_to_string(&job).expect("job in UTF-8");
        let commands = text.lines().filter_map(|line| line.strip_prefix("# blockyard "));
        let run = Run::new("timeout 30").arg(program());
        let (code, words) = run.args(commands.flat_map(str::split_whitespace)).collect();
        if code != 0 {
            return fail(format!("{}: exit code {code}: {words}", job.display()));
        }
    }
    Ok(())
}

/// Runs the example of a firmware, which must read back its data from both cards.
fn run_firmware() -> Outcome {
    let run = "cargo run -q --locked --profile swift -p blockyard-mmc --example firmware";
    let output = Run::new(run).output()?;
    print!("{output}");
    let intact = output.lines().filter(|line| line.contains("all intact")).count();
    if intact == 2 { Ok(()) } else { fail("the firmware did not read back its data") }
}

/// Runs fio's example jobs, of Debian's package or of `BLOCKYARD_FIO`, a folder with fio's sources.
fn run_fio_examples() -> Outcome {
    let fio = env::var_os("BLOCKYARD_FIO").filter(|folder| !folder.is_empty());
    let fio = fio.map_or_else(|| PathBuf::from("/usr/share/doc/fio"), PathBuf::from);
    let folder = fio.join("examples");
    if !folder.is_dir() {
        install_packages("fio's example jobs", &["fio-examples"]);
    }
    if !folder.is_dir() {
        report_unchecked(
            "fio's example jobs: neither Debian's fio-examples nor BLOCKYARD_FIO, a folder with fio's sources",
        );
        return Ok(());
    }
    want("python3", &["python3"])?;
    Run::new("ci/fio-examples.py").arg(program()).arg(folder).check()
}

/// `walkthroughs`
pub(super) fn walkthroughs(_: &[String]) -> Outcome {
    want("python3", &["python3"])?;
    Run::new(BUILD).check()?;
    let documents = glob("docs/walkthroughs/*.md");
    let run = Run::new("ci/walkthroughs.py").arg(program()).args(["README.md", "docs/ANSWERS.md"]);
    run.args(documents).check()
}

/// `page`: pages of several answers, as a browser sees them.
pub(super) fn page(_: &[String]) -> Outcome {
    want("chromium", &["chromium"])?;
    want("xmllint", &["libxml2-utils"])?;
    want("python3", &["python3", "python3-venv"])?;
    let environment = target().join("page");
    let _ = environment_of_python("page");
    if !pip_install(&environment).args(PAGE_CHECKERS).succeeds() {
        let packages = PAGE_CHECKERS.join(" ");
        return lacks(&format!("the Python packages {packages}"), "pages, in a browser");
    }
    Run::new(BUILD).check()?;
    let pages = target().join("pages");
    fs::create_dir_all(&pages).expect("folder of pages");
    write_pages(&pages)?;
    Run::program(environment.join("bin/python"))
        .arg("ci/check-page.py")
        .arg(pages.join("pictures"))
        .args(glob(pages.join("*.html")))
        .check()
}

/// A command of the program.
fn blockyard(line: &str) -> Run {
    Run::program(program()).words(line)
}

/// Writes a page of each kind of answer into `folder`.
fn write_pages(folder: &Path) -> Outcome {
    let grid = "whatif examples/walkthroughs/card.fio --device sd-a2 --scheduler none,mq-deadline,kyber \
                --host blkmq,cqe --readings 0 --html";
    blockyard(grid).arg(folder.join("grid.html")).without_output().check()?;
    let scsi = "whatif examples/scsi-seqread.fio --device srp \
                --design legacy-deadline,mq-none,mq-deadline,cqe --goal iops>500k --html";
    blockyard(scsi).arg(folder.join("scsi.html")).without_output().check()?;
    let run = "run examples/fsync.fio --device examples/cached-disk.toml --html";
    blockyard(run).arg(folder.join("run.html")).without_output().check()?;
    let answer = folder.join("a.json");
    let whatif = "whatif examples/pmem.fio --device pmem-dram --output-format json --output";
    blockyard(whatif).arg(&answer).check()?;
    let compare = blockyard("compare").arg(&answer).arg(&answer).arg("--html");
    compare.arg(folder.join("compare.html")).without_output().check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_the_readme_is_built_in_release_and_asks_what_if() {
        let command = "cargo run --release -p blockyard-cli -- whatif a.fio --device srp";
        assert_eq!(whatif_command(command), Some(command));
        assert_eq!(whatif_command(&format!("$ {command}")), Some(command));
        assert_eq!(whatif_command("cargo run --release -p blockyard-cli -- run a.fio"), None);
        assert_eq!(whatif_command("`cargo run --release -- whatif a.fio`"), None);
    }
}
