//! `--html`: one file that loads nothing, whatever the answer. `ci/check-page` looks at pages in a browser.

mod folder;

use std::fs;
use std::process::Command;

use folder::Folder;

/// Twelve jobs that read and write, with names that HTML and XML have to escape.
fn many_jobs() -> String {
    let job = |nth: u32| format!("[job<{nth}>&\"'x\"]\nrw=randrw\n");
    "[global]\ndirect=1\nsize=64m\nbs=4k\nnumber_ios=3000\nioengine=libaio\niodepth=8\n".to_owned()
        + &(0..12).map(job).collect::<String>()
}

fn blockyard(args: &[&str]) -> i32 {
    let output = Command::new(env!("CARGO_BIN_EXE_blockyard")).args(args).output().unwrap();
    output.status.code().unwrap()
}

/// Checks that nothing of `page` is loaded from elsewhere, and returns its drawings.
fn drawings(page: &str) -> Vec<&str> {
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "a whole page");
    assert!(page.contains("content=\"default-src 'none'; style-src 'sha256-"), "a policy");
    for loaded in
        ["<script", "<link", "<img", "<iframe", "url(", "src=", "href=", "style=\"", "javascript:"]
    {
        assert!(!page.contains(loaded), "{loaded}");
    }
    let elsewhere = page.matches("http").count();
    let namespaces = page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
    assert_eq!(elsewhere, namespaces + page.matches("http-equiv").count());
    page.split("<svg").skip(1).map(|rest| rest.split("</svg>").next().unwrap()).collect()
}

#[test]
fn a_large_answer_is_a_small_page() {
    let folder = Folder::new("large-page");
    let (job, file) = (folder.path("many.fio"), folder.path("page.html"));
    fs::write(&job, many_jobs()).unwrap();
    let designs = "none,mq-deadline,kyber,legacy-deadline,mq-none-2017,mq-deadline-2017,mq-kyber-2017,mq-none-2017-patched,cqe";
    let args =
        ["whatif", &job, "--device=srp", "--scheduler", designs, "--html", &file, "--readings=0"];
    assert_eq!(blockyard(&args), 0);
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.len() < 300_000, "{} bytes", page.len());
    // A chart of rates and one of latencies for each of eight jobs, two over time, one of stages.
    let drawings = drawings(&page);
    assert_eq!(drawings.len(), 8 + 8 + 2 + 1);
    assert!(page.contains("The first 8 of 24 jobs and directions have charts."));
    assert!(page.contains("job&lt;0&gt;&amp;") && !page.contains("job<0>"), "names are escaped");
    assert!(page.contains("n/a: needs eMMC or SD"));
    for drawing in drawings {
        assert_eq!(drawing.matches("<path").count(), drawing.matches("</path>").count());
        assert!(drawing.contains("role=\"img\"") && drawing.contains("aria-label="));
        assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
    }
}

#[test]
fn a_page_says_how_it_was_made_and_how_far_to_trust_it() {
    let folder = Folder::new("page");
    let (job, file) = (folder.path("a job.fio"), folder.path("page.html"));
    fs::write(&job, "; a comment of the job\n[x]\nrw=randread\nsize=1m\ndirect=1\n").unwrap();
    let args = [
        "whatif",
        &job,
        "--device=emmc-hs400",
        "--design=kyber+hsq,hsq",
        "--html",
        &file,
        "--seed=7",
        "--seeds=2",
        "--goal=read.p99<1s",
    ];
    assert_eq!(blockyard(&args), 0);
    let page = fs::read_to_string(&file).unwrap();
    drawings(&page);
    for words in [
        "on emmc-hs400, seed 7",
        "All 2 designs meet the goal.",
        "--design=kyber+hsq,hsq --html",
        "a job.fio' --device=emmc-hs400",
        "; a comment of the job",
        "<summary>Design: kyber</summary>",
        "<summary>Device: emmc-hs400</summary>",
        " figures of the device: ",
        "with 2 seeds, in intervals of 95 %:",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn runs_replays_and_comparisons_have_pages_too() {
    let folder = Folder::new("pages");
    let path = |name: &str| folder.path(name);
    let job = ["--name=x", "--rw=read", "--size=1m", "--direct=1"];
    let (html, answer, trace) = (path("x.html"), path("x.json"), path("x.iolog"));
    fs::write(
        &trace,
        "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x read 0 4096\n/dev/x close\n",
    )
    .unwrap();
    let save = ["whatif", "--device=null", "--output-format=json", "--output", &answer];
    assert_eq!(blockyard(&[&save[..], &job].concat()), 0);
    for (args, drawn) in [
        ([&["run", "--html", &html], &job[..]].concat(), 5),
        (vec!["replay", &trace, "--html", &html], 5),
        (vec!["replay", &trace, "--design=none,kyber", "--html", &html], 5),
        // Three schedulers, each with a part of its own.
        (vec!["compare", &answer, &answer, "--html", &html], 3 * 4),
    ] {
        assert_eq!(blockyard(&args), 0, "{args:?}");
        assert_eq!(drawings(&fs::read_to_string(&html).unwrap()).len(), drawn, "{args:?}");
        fs::remove_file(&html).unwrap();
    }
    let args = [&["run", "--html", "/no/such/folder/x.html"], &job[..]].concat();
    assert_eq!(blockyard(&args), 2);
}
