//! Lines, functions and assertions, without code for tests.

use crate::tidy::tree::{Module, is_test};
use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{ImplItemFn, Item, ItemFn, Macro, Signature, TraitItemFn};

/// The counts of a crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines, comments and blank lines included.
    pub lines: usize,
    /// Functions with a body, closures excluded.
    pub functions: usize,
    /// Uses of `assert!` and `debug_assert!` and their forms.
    pub assertions: usize,
}

/// Counts the modules of a crate.
#[must_use]
pub fn count(modules: &[Module]) -> Counts {
    let mut counts = Counts::default();
    for module in modules {
        counts.lines += lines(module);
        let mut counter = Counter { counts: &mut counts };
        counter.visit_file(&module.syntax);
    }
    counts
}

/// The lines of a file up to its last item that is not for tests.
fn lines(module: &Module) -> usize {
    let item = |item: &&Item| match item {
        Item::Mod(module) => !is_test(&module.attrs),
        _ => true,
    };
    module.syntax.items.iter().filter(item).map(|item| item.span().end().line).max().unwrap_or(0)
}

struct Counter<'a> {
    counts: &'a mut Counts,
}

/// Whether a macro's name is that of an assertion.
fn asserts(name: &str) -> bool {
    matches!(
        name,
        "assert"
            | "assert_eq"
            | "assert_ne"
            | "debug_assert"
            | "debug_assert_eq"
            | "debug_assert_ne"
    )
}

impl Counter<'_> {
    /// Assertions within the arguments of another macro, such as `matches!` in a `macro_rules!`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut name = String::new();
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => name = ident.to_string(),
                TokenTree::Punct(punct) if punct.as_char() == '!' => {
                    self.counts.assertions += usize::from(asserts(&name));
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                _ => name.clear(),
            }
        }
    }
}

impl<'ast> Visit<'ast> for Counter<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let test = match item {
            Item::Mod(module) => is_test(&module.attrs),
            Item::Fn(function) => is_test(&function.attrs),
            Item::Impl(block) => is_test(&block.attrs),
            _ => false,
        };
        if !test {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.counts.functions += 1;
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test(&function.attrs) {
            self.counts.functions += 1;
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        self.counts.functions += usize::from(function.default.is_some());
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_signature(&mut self, _: &'ast Signature) {}

    fn visit_macro(&mut self, call: &'ast Macro) {
        let name = call.path.segments.last().map(|segment| segment.ident.to_string());
        self.counts.assertions += usize::from(name.is_some_and(|name| asserts(&name)));
        self.tokens(call.tokens.clone());
    }
}
