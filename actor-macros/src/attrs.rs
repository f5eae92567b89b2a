//! Which of a method's attributes its generated parts carry.
//!
//! A part that exists only because of the method must vanish together with it, so `cfg` goes to
//! the variant, the arm and the call alike. What a reader of the call wants to know, its
//! documentation and deprecation, goes to the call as well. Every other attribute may have a
//! meaning for the handler (`#[inline]`, `#[instrument]`, ..) and stays where it was written.
//!
//! Generated code repeats the types of signatures, at their places, so a lint that is allowed or
//! expected there is allowed in all of it: whatever it finds, it finds in the user's own code too.

use std::borrow::Borrow;

use proc_macro2::{Group, Ident, Spacing, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::Parser;
use syn::{Attribute, Meta, Path};

const FOR_EVERY_PART: &[&str] = &["cfg"];
const FOR_THE_CALL: &[&str] = &["cfg", "doc", "deprecated"];
const LINTS: &[&str] = &["allow", "expect"];

/// What decides whether a method exists.
pub(crate) fn for_every_part(attrs: &[impl Borrow<Attribute>]) -> TokenStream {
    filtered(attrs, FOR_EVERY_PART)
}

/// The same, and what callers see.
pub(crate) fn for_the_call(attrs: &[impl Borrow<Attribute>]) -> TokenStream {
    filtered(attrs, FOR_THE_CALL)
}

/// Where a part of the method is missing: `cfg` of the opposite; nothing for a method that is always there.
pub(crate) fn where_absent(attrs: &[impl Borrow<Attribute>]) -> Option<TokenStream> {
    let conditions: Vec<TokenStream> = attrs
        .iter()
        .flat_map(|attr| conditions(attr.borrow().meta.to_token_stream()))
        .collect();
    (!conditions.is_empty()).then(|| quote!(#[cfg(not(all(#(#conditions),*)))]))
}

/// What an attribute asks for; `cfg_attr(p, cfg(q))` asks for `q` where `p` holds.
fn conditions(meta: TokenStream) -> Vec<TokenStream> {
    if let Some(arguments) = cfg_attr_arguments(meta.clone()) {
        let mut parts = split_at_commas(arguments).into_iter();
        let Some(predicate) = parts.next() else {
            return Vec::new();
        };
        return parts
            .flat_map(conditions)
            .map(|condition| quote!(any(not(#predicate), #condition)))
            .collect();
    }
    match syn::parse2::<Meta>(meta) {
        Ok(Meta::List(list)) if list.path.is_ident("cfg") => {
            split_at_commas(list.tokens).into_iter().take(1).collect()
        }
        _ => Vec::new(),
    }
}

/// The lints that find nothing in the user's code. An expectation is fulfilled there, if it is.
pub(crate) fn lints(attrs: &[impl Borrow<Attribute>]) -> TokenStream {
    allowing(filtered(attrs, LINTS))
}

fn allowing(tokens: TokenStream) -> TokenStream {
    let allow = |token| match token {
        TokenTree::Ident(name) if name == "expect" => Ident::new("allow", name.span()).into(),
        TokenTree::Group(group) => {
            let mut inside = Group::new(group.delimiter(), allowing(group.stream()));
            inside.set_span(group.span());
            inside.into()
        }
        token => token,
    };
    tokens.into_iter().map(allow).collect()
}

/// Whether one of the attributes is a `cfg`, also behind `cfg_attr`.
pub(crate) fn has_cfg(attrs: &[impl Borrow<Attribute>]) -> bool {
    !for_every_part(attrs).is_empty()
}

/// The paths of the attributes behind a `cfg_attr`, at every depth.
pub(crate) fn inside_cfg_attr(attr: &Attribute) -> Vec<Path> {
    let mut found = Vec::new();
    if let Some(tokens) = cfg_attr_arguments(attr.meta.to_token_stream()) {
        collect_paths(tokens, &mut found);
    }
    found
}

fn collect_paths(arguments: TokenStream, found: &mut Vec<Path>) {
    for inner in split_at_commas(arguments).into_iter().skip(1) {
        if let Some(nested) = cfg_attr_arguments(inner.clone()) {
            collect_paths(nested, found);
        } else if let Some(path) = path_of(inner) {
            found.push(path);
        }
    }
}

fn filtered(attrs: &[impl Borrow<Attribute>], kept: &[&str]) -> TokenStream {
    let mut tokens = TokenStream::new();
    for attr in attrs.iter().map(Borrow::borrow) {
        if let Some(arguments) = cfg_attr_arguments(attr.meta.to_token_stream()) {
            if let Some(meta) = filtered_cfg_attr(arguments, kept) {
                let (path, pound) = (attr.path(), attr.pound_token);
                tokens.extend(quote!(#pound[#path #meta]));
            }
        } else if is_kept(attr.path(), kept) {
            let (meta, pound) = (&attr.meta, attr.pound_token);
            tokens.extend(quote!(#pound[#meta]));
        }
    }
    tokens
}

/// Reduces `(predicate, attributes..)` to what is kept; `None` when nothing is.
fn filtered_cfg_attr(arguments: TokenStream, kept: &[&str]) -> Option<TokenStream> {
    let mut parts = split_at_commas(arguments).into_iter();
    let predicate = parts.next()?;
    let attrs: Vec<TokenStream> = parts
        .filter_map(|inner| match cfg_attr_arguments(inner.clone()) {
            Some(nested) => {
                let path = path_of(inner)?;
                let meta = filtered_cfg_attr(nested, kept)?;
                Some(quote!(#path #meta))
            }
            None => path_of(inner.clone())
                .is_some_and(|path| is_kept(&path, kept))
                .then_some(inner),
        })
        .collect();
    (!attrs.is_empty()).then(|| quote!((#predicate, #(#attrs),*)))
}

fn is_kept(path: &Path, kept: &[&str]) -> bool {
    kept.iter().any(|name| path.is_ident(name))
}

/// The arguments of `cfg_attr(..)`; `None` for everything else.
fn cfg_attr_arguments(meta: TokenStream) -> Option<TokenStream> {
    match syn::parse2::<Meta>(meta).ok()? {
        Meta::List(list) if list.path.is_ident("cfg_attr") => Some(list.tokens),
        _ => None,
    }
}

fn path_of(meta: TokenStream) -> Option<Path> {
    let path_and_rest = |input: syn::parse::ParseStream<'_>| {
        let path = input.call(Path::parse_mod_style)?;
        input.parse::<TokenStream>()?;
        Ok(path)
    };
    path_and_rest.parse2(meta).ok()
}

fn split_at_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let mut parts = Vec::new();
    let mut part = TokenStream::new();
    for token in tokens {
        match &token {
            TokenTree::Punct(punct)
                if punct.as_char() == ',' && punct.spacing() == Spacing::Alone =>
            {
                parts.push(std::mem::take(&mut part));
            }
            _ => part.extend([token]),
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(attrs: TokenStream, every_part: &TokenStream, call: &TokenStream) {
        let attrs = Attribute::parse_outer.parse2(attrs).expect("attributes");
        assert_eq!(for_every_part(&attrs).to_string(), every_part.to_string());
        assert_eq!(for_the_call(&attrs).to_string(), call.to_string());
    }

    #[test]
    fn cfg_goes_to_every_part_and_docs_to_the_call() {
        check(
            quote!(#[doc = "Adds."] #[cfg(unix)] #[inline] #[must_use]),
            &quote!(#[cfg(unix)]),
            &quote!(#[doc = "Adds."] #[cfg(unix)]),
        );
    }

    #[test]
    fn cfg_inside_cfg_attr_is_kept_at_every_depth() {
        check(
            quote!(#[cfg_attr(feature = "a", inline, cfg_attr(unix, cfg(test), doc = "x"))]),
            &quote!(#[cfg_attr(feature = "a", cfg_attr(unix, cfg(test)))]),
            &quote!(#[cfg_attr(feature = "a", cfg_attr(unix, cfg(test), doc = "x"))]),
        );
    }

    #[test]
    fn a_method_is_absent_where_one_of_its_conditions_fails() {
        let absent = |attrs| {
            let attrs = Attribute::parse_outer.parse2(attrs).expect("attributes");
            where_absent(&attrs).map(|tokens| tokens.to_string())
        };
        let same =
            |attrs, expected: TokenStream| assert_eq!(absent(attrs), Some(expected.to_string()));
        same(
            quote!(#[cfg(unix)] #[inline] #[cfg(test,)]),
            quote!(#[cfg(not(all(unix, test)))]),
        );
        same(
            quote!(#[cfg_attr(a, inline, cfg_attr(b, cfg(c)), cfg(d))]),
            quote!(#[cfg(not(all(any(not(a), any(not(b), c)), any(not(a), d))))]),
        );
        assert_eq!(absent(quote!(#[doc = "x"] #[cfg_attr(a, inline)])), None);
    }

    #[test]
    fn lints_are_allowed_wherever_they_are_allowed_or_expected() {
        let attrs = quote! {
            #[allow(a, reason = "expect")] #[expect(b)] #[inline] #[warn(c)]
            #[cfg_attr(unix, cold, expect(clippy::expect_used), cfg_attr(test, allow(d)))]
        };
        let attrs = Attribute::parse_outer.parse2(attrs).expect("attributes");
        let allowed = quote! {
            #[allow(a, reason = "expect")] #[allow(b)]
            #[cfg_attr(unix, allow(clippy::expect_used), cfg_attr(test, allow(d)))]
        };
        assert_eq!(lints(&attrs).to_string(), allowed.to_string());
    }

    #[test]
    fn cfg_attr_without_anything_to_keep_vanishes() {
        check(quote!(#[cfg_attr(unix, inline)]), &quote!(), &quote!());
    }
}
