//! `--html`: one file that loads nothing, whatever the answer. `ci/check-page.py` looks at pages in
//! a browser.

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
    let job = folder.path("many.fio");
    let file = folder.path("page.html");
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
    let job = folder.path("a job.fio");
    let file = folder.path("page.html");
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
        " device parameters: ",
        "with 2 seeds, in intervals of 95 %:",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn runs_replays_and_comparisons_have_pages_too() {
    let folder = Folder::new("pages");
    let job = ["--name=x", "--rw=read", "--size=1m", "--direct=1"];
    let html = folder.path("x.html");
    let answer = folder.path("x.json");
    let trace = folder.path("x.iolog");
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

/// Returns the texts of `drawing`.
fn texts(drawing: &str) -> Vec<&str> {
    let texts = drawing.split("<text").skip(1).filter_map(|rest| rest.split_once('>'));
    texts.filter_map(|(_, rest)| rest.split("</text>").next()).collect()
}

/// Bars of a job that is held by `rate=` were all equally long, and said nothing.
#[test]
fn a_job_that_keeps_to_its_rate_has_bars_of_its_tail() {
    let folder = Folder::new("rate-page");
    let job = folder.path("rate.fio");
    let file = folder.path("page.html");
    let text = "[global]\ndirect=1\nsize=64m\nruntime=4\ntime_based\nbs=4k\n\
                [log]\nrw=write\nrate_iops=400\n[reader]\nrw=randread\n";
    fs::write(&job, text).unwrap();
    let whatif = ["whatif", &job, "--device=emmc-hs400", "--design=none+blkmq,none+cqe,none+pio"];
    assert_eq!(blockyard(&[&whatif[..], &["--html", &file, "--readings=0"]].concat()), 0);
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.contains("400 IOPS under each design, within 2 %."), "{page}");
    let drawings = drawings(&page);
    assert!(drawings[0].contains("aria-label=\"p99: log write\""), "{}", drawings[0]);
    assert!(texts(drawings[0]).iter().any(|text| text.ends_with(" us") || text.ends_with(" ms")));
    assert!(drawings[1].contains("aria-label=\"IOPS: reader read\""), "{}", drawings[1]);
}

/// The latencies of a paced job on a null device lie within one decade: their axis had no tick but
/// its ends.
#[test]
fn a_narrow_axis_has_ticks() {
    let folder = Folder::new("ticks-page");
    let file = folder.path("page.html");
    let job = ["--name=x", "--rw=randread", "--bs=4k", "--direct=1", "--size=1m"];
    let whatif =
        ["whatif", "--device=null", "--design=none,kyber", "--readings=0", "--html", &file];
    assert_eq!(blockyard(&[&whatif[..], &job].concat()), 0);
    let page = fs::read_to_string(&file).unwrap();
    let drawings = drawings(&page);
    let latency = drawings.iter().find(|of| of.contains("Share of I/Os by latency")).unwrap();
    let ticks =
        texts(latency).into_iter().filter(|text| text.ends_with(" us") || text.ends_with(" ns"));
    let ticks: Vec<_> = ticks.collect();
    assert!(ticks.len() >= 3, "{ticks:?}");
}

/// A design that only one of two answers has was left out of their comparison.
#[test]
fn a_comparison_shows_all_designs() {
    let folder = Folder::new("unpaired-page");
    let job = ["--name=x", "--rw=read", "--size=1m", "--direct=1"];
    let first = folder.path("one.json");
    let second = folder.path("other.json");
    let html = folder.path("x.html");
    for (answer, designs) in
        [(&first, "--design=none,mq-deadline"), (&second, "--design=none,kyber")]
    {
        let save = ["whatif", "--device=null", "--output-format=json", designs, "--output", answer];
        assert_eq!(blockyard(&[&save[..], &job].concat()), 0);
    }
    let args = ["compare", &first, &second, "--html", &html];
    let output = Command::new(env!("CARGO_BIN_EXE_blockyard")).args(args).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let page = fs::read_to_string(&html).unwrap();
    for shown in [&text, &page] {
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentence =
            "mq-deadline of one and kyber of other have no counterpart in the other answer.";
        assert!(words.contains(sentence), "{shown}");
    }
    // One pair with rates, latencies and two over time; the other two without rates.
    assert_eq!(drawings(&page).len(), 4 + 3);
}
