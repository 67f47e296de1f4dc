//! The rules of style that are counted: sizes, widths, closures and tuples.
//!
//! The visitor judges all code, that of tests included. Macros are tokens to it: a closure in the
//! arguments of `assert!` is not seen, but the use of a name there is.

use crate::tidy::tree;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Block, Expr, ExprCall, ExprPath, ImplItemFn, ItemFn, Local, Macro, Pat, Signature, TraitItemFn,
};

/// The most lines of a function, from `fn` to its last brace.
const FUNCTION_LINES_MAX: usize = 70;
/// The most lines of a file.
const FILE_LINES_MAX: usize = 800;
/// The last column of a comment.
const COMMENT_COLUMNS_MAX: usize = 100;
/// The most characters of a cell in a table of a document.
const CELL_CHARACTERS_MAX: usize = 100;

/// A rule of style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A function of more than 70 lines.
    Functions,
    /// A Rust, Python or shell file of more than 800 lines.
    Files,
    /// A line of a comment that ends beyond column 100.
    Comments,
    /// A cell of a document's table with more than 100 characters.
    Cells,
    /// A `let` that binds a closure whose name is only called, and not passed on.
    Closures,
    /// A `let` that binds a tuple of names to a tuple of values.
    Tuples,
    /// A script whose name has no ending, so that no linter reads it.
    Endings,
}

impl Rule {
    /// Every rule, in the order of the table.
    pub const ALL: [Self; 7] = [
        Self::Functions,
        Self::Files,
        Self::Comments,
        Self::Cells,
        Self::Closures,
        Self::Tuples,
        Self::Endings,
    ];

    /// The name in the head of the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Functions => "functions",
            Self::Files => "files",
            Self::Comments => "comments",
            Self::Cells => "cells",
            Self::Closures => "closures",
            Self::Tuples => "tuples",
            Self::Endings => "endings",
        }
    }
}

/// A place where the source breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The broken rule.
    pub rule: Rule,
    /// The part of the repository: a crate, or a folder at the root, or `root`.
    pub part: String,
    /// The file and the line.
    pub at: String,
    /// The measure, or the name of a closure.
    pub text: String,
}

/// Every violation in the repository, file by file.
#[must_use]
pub fn violations() -> Vec<Violation> {
    tree::text_files().iter().flat_map(|(file, text)| violations_in(file, text)).collect()
}

/// The violations in a file, whose path from the root of the repository decides which rules apply.
///
/// # Panics
///
/// Panics if the file's name ends in `.rs` and it is not Rust.
#[must_use]
pub(crate) fn violations_in(file: &Path, text: &str) -> Vec<Violation> {
    let mut found = Found { file, violations: vec![] };
    let ending = file.extension().unwrap_or_default().to_string_lossy();
    match &*ending {
        "rs" => {
            found.check_lines(text, "//");
            let syntax =
                syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            Judge { found: &mut found }.visit_file(&syntax);
        }
        "py" | "sh" | "bash" => found.check_lines(text, "#"),
        "md" => found.check_cells(text),
        "" if text.starts_with("#!") => {
            found.check_lines(text, "#");
            found.add(Rule::Endings, 1, "a script without an ending");
        }
        _ => {}
    }
    found.violations
}

/// The part of the repository that a file belongs to.
fn part_of(file: &Path) -> String {
    let mut names = file.iter().map(|name| name.to_string_lossy());
    let first = names.next().unwrap_or_default();
    let second = names.next();
    match (&*first, second) {
        ("crates", Some(name)) => name.into_owned(),
        (folder, Some(_)) => folder.to_owned(),
        (_, None) => "root".to_owned(),
    }
}

/// The violations found in a file so far.
struct Found<'a> {
    file: &'a Path,
    violations: Vec<Violation>,
}

impl Found<'_> {
    fn add(&mut self, rule: Rule, line: usize, text: impl Into<String>) {
        let at = format!("{}:{line}", self.file.display());
        self.violations.push(Violation { rule, part: part_of(self.file), at, text: text.into() });
    }

    /// Judges the length of a file and the width of its comments, which begin with `mark`.
    fn check_lines(&mut self, text: &str, mark: &str) {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            self.add(Rule::Files, 1, format!("{lines} lines"));
        }
        for (at, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COMMENT_COLUMNS_MAX && has_comment(line, mark) {
                self.add(Rule::Comments, at + 1, format!("{columns} columns"));
            }
        }
    }

    /// Judges the cells of the tables in a document.
    fn check_cells(&mut self, text: &str) {
        for (at, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
            for cell in line.trim_matches('|').split('|') {
                let characters = cell.trim().chars().count();
                if characters > CELL_CHARACTERS_MAX {
                    self.add(Rule::Cells, at + 1, format!("{characters} characters"));
                }
            }
        }
    }
}

/// Whether a line is a comment or ends with one.
fn has_comment(line: &str, mark: &str) -> bool {
    line.trim_start().starts_with(mark) || line.contains(&format!(" {mark} "))
}

/// The visitor of a file's syntax.
struct Judge<'a, 'b> {
    found: &'a mut Found<'b>,
}

impl Judge<'_, '_> {
    fn check_function(&mut self, signature: &Signature, body: &Block) {
        let first = signature.span().start().line;
        let lines = body.span().end().line + 1 - first;
        if lines > FUNCTION_LINES_MAX {
            self.found.add(Rule::Functions, first, format!("{}: {lines} lines", signature.ident));
        }
    }
}

impl<'ast> Visit<'ast> for Judge<'_, '_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.check_function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.check_function(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.check_function(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        for statement in &block.stmts {
            let syn::Stmt::Local(local) = statement else { continue };
            let line = local.span().start().line;
            if let Some(name) = closure_name(local)
                && !is_passed_on(&name, block)
            {
                self.found.add(Rule::Closures, line, name);
            }
            if binds_tuple_to_tuple(local) {
                self.found.add(Rule::Tuples, line, "a tuple of names for a tuple of values");
            }
        }
        visit::visit_block(self, block);
    }
}

/// The name that a `let` gives to a closure.
fn closure_name(local: &Local) -> Option<String> {
    let init = local.init.as_ref()?;
    if !matches!(*init.expr, Expr::Closure(_)) {
        return None;
    }
    let pattern = match &local.pat {
        Pat::Type(typed) => &*typed.pat,
        pattern => pattern,
    };
    match pattern {
        Pat::Ident(name) => Some(name.ident.to_string()),
        _ => None,
    }
}

fn binds_tuple_to_tuple(local: &Local) -> bool {
    let Some(init) = &local.init else { return false };
    let pattern = match &local.pat {
        Pat::Type(typed) => &*typed.pat,
        pattern => pattern,
    };
    matches!(pattern, Pat::Tuple(_)) && matches!(*init.expr, Expr::Tuple(_))
}

/// Whether the block uses a name otherwise than by calling it.
fn is_passed_on(name: &str, block: &Block) -> bool {
    let mut uses = Uses { name, passed_on: false };
    uses.visit_block(block);
    uses.passed_on
}

/// Finds a use of a name that is no call.
struct Uses<'a> {
    name: &'a str,
    passed_on: bool,
}

impl Uses<'_> {
    fn is_name(&self, path: &ExprPath) -> bool {
        path.path.is_ident(self.name)
    }

    /// In the tokens of a macro, a name is called if parentheses follow.
    fn visit_tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(ident) if ident == self.name => {
                    let is_called = matches!(tokens.peek(), Some(TokenTree::Group(group))
                        if group.delimiter() == Delimiter::Parenthesis);
                    self.passed_on |= !is_called;
                }
                TokenTree::Group(group) => self.visit_tokens(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        match &*call.func {
            Expr::Path(path) if self.is_name(path) => {}
            function => self.visit_expr(function),
        }
        call.args.iter().for_each(|argument| self.visit_expr(argument));
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        self.passed_on |= self.is_name(path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_tokens(call.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_of(file: &str, text: &str) -> Vec<(Rule, String)> {
        let found = violations_in(Path::new(file), text);
        found.into_iter().map(|violation| (violation.rule, violation.at)).collect()
    }

    fn closures_of(body: &str) -> Vec<String> {
        let text = format!("fn f() {{ {body} }}");
        let found = violations_in(Path::new("a.rs"), &text);
        found.into_iter().map(|violation| violation.text).collect()
    }

    #[test]
    fn a_closure_that_is_only_called_should_be_a_function() {
        assert_eq!(closures_of("let g = |a| a + 1; g(1); h(g(2));"), ["g"]);
        assert_eq!(closures_of("let g = |a| a + 1; assert_eq!(g(1), 2);"), ["g"]);
        assert_eq!(closures_of("let mut g = move || {}; loop { g() }"), ["g"]);
        assert_eq!(closures_of("let g: fn() = || {};"), ["g"], "never used");
    }

    #[test]
    fn a_closure_that_is_passed_on_may_have_a_name() {
        assert_eq!(closures_of("let g = |a| a + 1; list.map(g);"), [""; 0]);
        assert_eq!(closures_of("let g = |a| a + 1; g(1); h(&g);"), [""; 0]);
        assert_eq!(closures_of("let g = || {}; assert!(list.all(g));"), [""; 0]);
        assert_eq!(closures_of("let g = || {}; S { g }"), [""; 0]);
    }

    #[test]
    fn a_tuple_may_come_from_a_call_alone() {
        let text = "fn f() {\n let (a, b) = (1, 2);\n let (c, d) = g();\n let e = (1, 2);\n}\n";
        assert_eq!(rules_of("a.rs", text), [(Rule::Tuples, "a.rs:2".into())]);
    }

    #[test]
    fn a_function_may_have_70_lines_without_its_documentation() {
        for (lines, violations) in [(70, 0), (71, 1)] {
            let body = "g();\n".repeat(lines - 2);
            let text = format!("/// Text.\n#[a]\nfn f() {{\n{body}}}\n");
            assert_eq!(rules_of("a.rs", &text).len(), violations, "{lines} lines");
        }
    }

    #[test]
    fn a_file_may_have_800_lines_and_a_comment_100_columns() {
        assert_eq!(rules_of("a.py", &"g = 1\n".repeat(800)), []);
        assert_eq!(rules_of("a.py", &"g = 1\n".repeat(801)), [(Rule::Files, "a.py:1".into())]);
        for (columns, violations) in [(100, 0), (101, 1)] {
            let text = format!("fn f() {{}} // {}\n", "x".repeat(columns - 13));
            assert_eq!(rules_of("a.rs", &text).len(), violations, "{columns} columns");
        }
    }

    #[test]
    fn a_cell_may_have_100_characters() {
        for (characters, violations) in [(100, 0), (101, 1)] {
            let text = format!("# Head\n\n| a | {} |\n", "ü".repeat(characters));
            assert_eq!(rules_of("a.md", &text).len(), violations, "{characters} characters");
        }
    }

    #[test]
    fn a_script_needs_an_ending_and_belongs_to_a_part() {
        let found = violations_in(Path::new("ci/run"), "#!/bin/sh\n");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].rule, found[0].part.as_str()), (Rule::Endings, "ci"));
        assert_eq!(rules_of("ci/run.sh", "#!/bin/sh\n"), []);
        assert_eq!(part_of(Path::new("crates/a/src/lib.rs")), "a");
        assert_eq!(part_of(Path::new("README.md")), "root");
    }
}
