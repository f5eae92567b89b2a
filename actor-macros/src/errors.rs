//! The collector of mistakes found in one actor block.
//!
//! Checks never return early: a user who made five mistakes reads five texts in one build. The
//! collector ends in [`Errors::into_tokens`], the only way to get rid of it without a lint.

use std::fmt::Display;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};

use crate::hygiene;

/// Mistakes in the order they were found.
#[must_use = "mistakes that are not emitted are lost"]
#[derive(Default)]
pub(crate) struct Errors {
    list: Vec<syn::Error>,
    /// What an editor completes unknown words from.
    choices: TokenStream,
    /// Mistakes that the compiler finds in the user's own code, in words as good as ours.
    left: usize,
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

    /// Reports a word that is none of `known`.
    ///
    /// While it is being typed an editor asks what it may become, and looks where it stands in the expansion: where a
    /// field is asked for that has the name of a known word. The word itself is one too, so the compiler has nothing
    /// to add to the text.
    pub(crate) fn unknown(&mut self, word: &Ident, known: &[&str], text: impl Display) {
        self.on(word, text);
        let is_free = |word: &str| syn::parse_str::<Ident>(word).is_ok();
        let mut found = word.clone();
        found.set_span(hygiene::generated());
        if !is_free(&found.to_string()) {
            return;
        }
        let known = known.iter().filter(|word| is_free(word));
        let known = known.map(|word| Ident::new(word, hygiene::generated()));
        self.choices.extend(quote_spanned! {hygiene::generated()=>
            const _: () = {
                fn chosen(known: __Known) {
                    known.#word
                }
                struct __Known {
                    #(#known: (),)*
                    #found: (),
                }
            };
        });
    }

    /// Reports a mistake that the parser has described already.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.list.push(error);
    }

    /// Notes a mistake that the compiler reports in any case: a second text would only repeat it.
    pub(crate) fn leave_to_the_compiler(&mut self) {
        self.left += 1;
    }

    /// Counts the mistakes so far; a rule applied between two equal counts found nothing.
    pub(crate) fn count(&self) -> usize {
        self.list.len() + self.left
    }

    /// How many mistakes are ours to report.
    pub(crate) fn reported(&self) -> usize {
        self.list.len()
    }

    /// Takes out one of those that were reported since there were `reported`, for another place. It still counts.
    pub(crate) fn take_since(&mut self, reported: usize) -> Option<syn::Error> {
        if self.list.len() <= reported {
            return None;
        }
        self.left += 1;
        self.list.pop()
    }

    /// Turns every mistake into a `compile_error!` at its place.
    pub(crate) fn into_tokens(self) -> TokenStream {
        // An editor compares two expansions up to the word, so no text that quotes it may stand before.
        let mut tokens = self.choices;
        tokens.extend(self.list.iter().map(syn::Error::to_compile_error));
        tokens
    }
}
