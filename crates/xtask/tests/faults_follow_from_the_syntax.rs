//! The faults of a small source, and its text with them.

use xtask::mutants::equivalent::Equivalents;
use xtask::mutants::fault::{Fault, faults};
use xtask::mutants::plant::plant;

fn short(found: &[Fault]) -> Vec<(&str, &str, &str)> {
    found.iter().map(|f| (f.function.as_str(), f.before.as_str(), f.after.as_str())).collect()
}

#[test]
fn each_operator_literal_condition_and_statement_has_its_fault() {
    let text = "impl Tag { fn take(&mut self, a: u8) -> Option<u8> {
        if a < 4 && !self.free { return None; }
        self.used.push(a); // kept
        match a { 5 if self.free => Some(a), _ => None }
    } }";
    assert_eq!(
        short(&faults("tag.rs", text)),
        [
            ("Tag::take", "a < 4", "a <= 4"),
            ("Tag::take", "a < 4 && !self.free", "!(a < 4 && !self.free)"),
            ("Tag::take", "a < 4 && !self.free", "a < 4 || !self.free"),
            ("Tag::take", "4", "5"),
            ("Tag::take", "!self.free", "self.free"),
            ("Tag::take", "return None;", ""),
            ("Tag::take", "self.used.push(a);", ""),
            ("Tag::take", "self.free", "true"),
            ("Tag::take", "self.free", "false"),
            ("Tag::take", "Some(a)", "None"),
        ]
    );
}

#[test]
fn constants_tests_debug_and_macros_have_none() {
    let text = "const A: u8 = 1 + 2;
        const fn b() -> u8 { 3 }
        fn c() -> [u8; 4] { assert!(1 < 2); [b(); 4] }
        impl Debug for D { fn fmt(&self) -> bool { 1 < 2 } }
        #[cfg(test)] mod tests { fn e() -> bool { true } }
        #[cfg(loom)] fn f() -> bool { true }
        fn g(x: Option<u8>) -> bool { if let Some(1) = x && h() { i() } else { j() } }";
    assert_eq!(short(&faults("a.rs", text)), []);
}

/// The switch of a fault.
fn on(number: usize) -> String {
    format!("crate::blockyard_fault::on({number})")
}

#[test]
fn a_planted_file_keeps_its_lines_and_nests_its_faults() {
    let text = "fn f(a: u8) -> bool {\n    a < 4\n        && g()\n}\nfn h() {\n    f(5);\n}\n";
    let found = faults("f.rs", text);
    let numbered: Vec<_> = found.iter().enumerate().collect();
    assert_eq!(found.len(), 5);
    let (planted, places) = plant(text, &numbered);
    let expected = format!(
        "fn f(a: u8) -> bool {{\n    (if {} {{ (a < 4 || g()) }} else {{ (if {} {{ (a <= 4) }} else {{ \
         a < (if {} {{ (5) }} else {{ 4 }}) }})\n        && g() }})\n}}\nfn h() {{\n    if !{} {{ \
         f((if {} {{ (6) }} else {{ 5 }})); }}\n}}\n",
        on(1),
        on(0),
        on(2),
        on(3),
        on(4),
    );
    assert_eq!(planted, expected);
    assert_eq!(&planted[places[2].whole.clone()], format!("(if {} {{ (5) }} else {{ 4 }})", on(2)));
    syn::parse_file(&planted).expect("still Rust");
}

#[test]
fn equal_faults_of_a_function_are_told_apart_and_listed_as_equivalent() {
    let text = "fn f(a: u8) { g(); h(); g(); }";
    let found = faults("f.rs", text);
    let names: Vec<_> = found.iter().map(|fault| fault.function.as_str()).collect();
    assert_eq!(names, ["f", "f", "f 2"]);
    let list =
        "# a comment\nf.rs f 2\n- g();\n+\nno one asks for the second\n\nf.rs f\n- i();\n+\nold\n";
    let list = Equivalents::parse(list).expect("valid");
    let known: Vec<_> = found.iter().map(|fault| list.contains(fault)).collect();
    assert_eq!(known, [false, false, true]);
    assert_eq!(list.stale(found.iter()), ["f.rs f\n- i();\n+\n"]);
    assert!(Equivalents::parse("f.rs f\n- i();\n+\n").is_err(), "without a reason");
}
