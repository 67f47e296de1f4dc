//! `reproduce` prints our figures beside the published ones as JSON: those from before a change,
//! and its outcomes, beside what was predicted of them.

use std::process::Command;

use serde_json::Value;

#[test]
fn reproduce_sets_figures_beside_figures() {
    let output = Command::new(env!("CARGO_BIN_EXE_blockyard"))
        .args(["reproduce", "mmc-mq", "--output-format=json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answered: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = answered["cells"].as_array().unwrap();
    let cell = |workload: &str, design: &str| {
        let is_it = |cell: &&Value| cell["workload"] == workload && cell["design"] == design;
        cells.iter().find(is_it).unwrap()
    };
    let before = cell("read 16384k", "mmc-double-buffer-full");
    assert_eq!((&before["published"], &before["basis"]), (&23070.0.into(), &"fitted".into()));
    assert!(before["difference_percent"].as_f64().unwrap().abs() < 2.0, "{before}");
    assert_eq!((&before["ratio"], &before["unit"]), (&Value::Null, &"KiB/s".into()));
    // Without unmapping nothing is lost; the larger the share of unmapping, the larger the loss.
    let after = cell("read 16384k", "mmc-mq-step4");
    assert_eq!((&after["published"], &after["basis"]), (&21225.0.into(), &"blind".into()));
    assert_eq!(after["published_before"], 23070.0);
    let predicted = serde_json::json!({"ours": 20860.0, "least": 19904.0, "most": 23075.0});
    assert_eq!((&after["predicted"], &after["predicted_verdict"]), (&predicted, &"hit".into()));
    assert_eq!(after["tolerance"], serde_json::json!({"percent": 5.0}));
    let short = cell("write 4k", "mmc-mq-step15");
    assert_eq!(
        (&short["published"], &short["predicted_verdict"]),
        (&1709.0.into(), &"miss".into())
    );
    let ratios = ["least", "ours", "most"].map(|key| after["ratio"][key].as_f64().unwrap());
    assert!(ratios[0] < ratios[1] && ratios[1] < ratios[2], "{after}");
    assert!(ratios[2] > 0.99, "{after}");
    assert_eq!(after["on_variants"].as_object().unwrap().len(), 4);
}
