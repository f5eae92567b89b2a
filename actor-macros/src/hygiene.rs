//! Names and spans of generated code.
//!
//! Generated bindings resolve at [`Span::mixed_site`], so no parameter of the user can meet them,
//! whatever it is called. Where the compiler may complain about generated code, the *location* is
//! moved to the user's token that is to blame; the way names resolve stays mixed-site, or lints
//! would take the generated path for one that the user wrote.

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};

/// The span of generated code that no user token is to blame for.
pub(crate) fn generated() -> Span {
    Span::mixed_site()
}

/// The span of generated code that the user's token at `place` is to blame for.
pub(crate) fn blamed_on(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

/// Where a node starts and where it ends.
///
/// A stable compiler cannot join two spans, but an expression that starts at one token and ends at
/// another is reported from the first to the last.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) first: Span,
    pub(crate) last: Span,
    /// Whether both are the same token.
    is_one_token: bool,
}

impl Place {
    /// Finds the outer tokens of `node`; an empty node is at the attribute.
    pub(crate) fn of(node: &impl ToTokens) -> Self {
        let tokens = node.to_token_stream();
        Self {
            first: first_span(tokens.clone()).unwrap_or_else(generated),
            last: last_span(tokens.clone()).unwrap_or_else(generated),
            is_one_token: is_one_token(tokens),
        }
    }

    /// `__rt::..`, blamed on the whole node.
    pub(crate) fn runtime_path(self, segments: &[&str]) -> TokenStream {
        let mut path = quote_spanned!(blamed_on(self.first)=> __rt);
        for segment in segments {
            let segment = Ident::new(segment, blamed_on(self.last));
            path.extend(quote_spanned!(blamed_on(self.last)=> ::#segment));
        }
        path
    }

    /// `function(argument)`, blamed on the whole node.
    pub(crate) fn call(self, function: TokenStream, argument: TokenStream) -> TokenStream {
        let mut parentheses = Group::new(Delimiter::Parenthesis, argument);
        parentheses.set_span(blamed_on(self.last));
        let mut tokens = function;
        tokens.extend([TokenTree::Group(parentheses)]);
        tokens
    }

    /// `tuple.field`, blamed on the whole node.
    pub(crate) fn field(self, tuple: &str, field: usize) -> TokenStream {
        let tuple = Ident::new(tuple, blamed_on(self.first));
        let mut field = Literal::usize_unsuffixed(field);
        field.set_span(blamed_on(self.last));
        quote_spanned!(blamed_on(self.first)=> #tuple.#field)
    }

    /// The variable `name`, blamed on the whole node, and what has to be written before it: where that is more than one
    /// token, the variable goes into a tuple.
    pub(crate) fn field_of_tuple(self, name: &str) -> (Option<TokenStream>, TokenStream) {
        let variable = Ident::new(name, blamed_on(self.first));
        if self.is_one_token {
            return (None, variable.into_token_stream());
        }
        let plain = Ident::new(name, generated());
        let wrapped = quote_spanned!(generated()=> let #plain = (#plain,););
        (Some(wrapped), self.field(name, 0))
    }

    /// The place of code that answers to the attribute itself.
    pub(crate) fn nowhere() -> Self {
        Self {
            first: generated(),
            last: generated(),
            is_one_token: true,
        }
    }
}

/// A macro fragment such as `$t:ty` arrives in a group without delimiters; its own span covers the
/// macro's parameter, so what counts are the tokens inside.
fn first_span(tokens: TokenStream) -> Option<Span> {
    match tokens.into_iter().next()? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            first_span(group.stream())
        }
        TokenTree::Group(group) => Some(group.span_open()),
        token => Some(token.span()),
    }
}

fn is_one_token(tokens: TokenStream) -> bool {
    let mut tokens = tokens.into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Group(group)), None) => {
            group.delimiter() == Delimiter::None && is_one_token(group.stream())
        }
        (_, next) => next.is_none(),
    }
}

fn last_span(tokens: TokenStream) -> Option<Span> {
    match tokens.into_iter().last()? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            last_span(group.stream())
        }
        TokenTree::Group(group) => Some(group.span_close()),
        token => Some(token.span()),
    }
}

/// Moves all of `tokens` to `place` without changing what their names refer to.
pub(crate) fn moved_to(place: Span, tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut token| {
            let span = place.resolved_at(token.span());
            if let TokenTree::Group(group) = &token {
                let mut moved = Group::new(group.delimiter(), moved_to(place, group.stream()));
                moved.set_span(span);
                return TokenTree::Group(moved);
            }
            token.set_span(span);
            token
        })
        .collect()
}

/// Methods that an `Addr` has through a trait of the prelude, or through one that is often
/// imported. They are found before a message of the same name, so a message cannot have it.
const RESERVED: &[&str] = &[
    "borrow",
    "borrow_mut",
    "clone",
    "clone_from",
    "clone_into",
    "deref",
    "deref_mut",
    "drop",
    "eq",
    "into",
    "ne",
    "to_owned",
    "try_into",
    "type_id",
];

/// Whether a message called `name` would be hidden by a method of `Addr`.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The known word nearest to `found`, when it is near enough to be what was meant.
pub(crate) fn nearest<'a>(found: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|word| (distance(found, word), *word))
        .min()
        .filter(|(steps, word)| *steps <= word.len().div_ceil(3))
        .map(|(_, word)| word)
}

/// The number of letters to insert, remove or replace between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (j, other) in b.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(usize::MAX - 1);
            let replaced = diagonal + usize::from(letter != *other);
            let steps = replaced.min(left + 1).min(above + 1);
            diagonal = above;
            if let Some(cell) = row.get_mut(j) {
                *cell = left;
            }
            left = steps;
        }
        if let Some(cell) = row.last_mut() {
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_letter_steps() {
        for (a, b, steps) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("mailbx", "mailbox", 1),
            ("mialbox", "mailbox", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), steps, "{a} -> {b}");
        }
    }

    #[test]
    fn only_a_near_word_is_proposed() {
        let known = ["crate", "mailbox", "name"];
        assert_eq!(nearest("mailbx", &known), Some("mailbox"));
        assert_eq!(nearest("nam", &known), Some("name"));
        assert_eq!(nearest("priority", &known), None);
    }
}
