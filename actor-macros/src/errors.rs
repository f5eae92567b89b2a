//! The collector of mistakes found in one actor block.
//!
//! Checks never return early: a user who made five mistakes reads five texts in one build. The
//! collector ends in [`Errors::into_tokens`], the only way to get rid of it without a lint.

use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// Mistakes in the order they were found.
#[must_use = "mistakes that are not emitted are lost"]
#[derive(Default)]
pub(crate) struct Errors {
    list: Vec<syn::Error>,
}

impl Errors {
    /// Reports `text` on all of `tokens`.
    ///
    /// `syn` remembers the first and the last token, which underlines the whole node on stable
    /// and nightly alike; a span taken from the node itself would differ between the two.
    pub(crate) fn on(&mut self, tokens: impl ToTokens, text: impl Display) {
        self.push(syn::Error::new_spanned(tokens, text));
    }

    /// Reports `text` at one token.
    pub(crate) fn at(&mut self, span: Span, text: impl Display) {
        self.push(syn::Error::new(span, text));
    }

    /// Reports a mistake that the parser has described already.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.list.push(error);
    }

    /// Counts the mistakes so far; a rule applied between two equal counts found nothing.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// Turns every mistake into a `compile_error!` at its place.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.list.iter().map(syn::Error::to_compile_error).collect()
    }
}
