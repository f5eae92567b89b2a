//! A lenient parser for the block under `#[actor]`.
//!
//! Only heads are parsed: the attributes and the signature of each method. A body stays one token
//! tree that nobody looks into, so a half-typed body neither fails here nor changes on its way
//! through, and an item that is no method is copied token for token. What cannot be parsed is
//! reported and copied as well: the user's code is always in the output.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::buffer::Cursor;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Generics, Ident, Lifetime, LitStr, Signature, Token, Type, Visibility};

use crate::errors::Errors;
use crate::messages;

/// The block, taken apart as far as needed.
pub(crate) struct RawImpl {
    /// Attributes before the block and at the start of its body.
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) generics: Generics,
    pub(crate) self_ty: Type,
    pub(crate) items: Vec<RawItem>,
    /// Every token before the braces.
    head: TokenStream,
    /// The braces as they were written.
    body: Group,
    /// The tokens of the inner attributes.
    inner: TokenStream,
}

/// One item of the block.
pub(crate) struct RawItem {
    pub(crate) attrs: Vec<RawAttr>,
    /// The head of a method; `None` for every other item, and for a method that did not parse.
    pub(crate) method: Option<RawFn>,
    /// Every token after the attributes.
    tokens: TokenStream,
    /// Whether something was taken out of the tokens.
    has_changed: bool,
}

impl RawItem {
    /// Takes attributes of the method's parameters out of the user's code.
    pub(crate) fn take_from_parameters(&mut self, is_taken: impl Fn(&Attribute) -> bool) {
        let Some(method) = &self.method else {
            return;
        };
        let position = method.parameters_at;
        self.has_changed = true;
        let parameters = |(index, token)| match token {
            TokenTree::Group(group) if index == position => {
                let kept = without_attributes(group.stream(), &is_taken);
                let mut parameters = Group::new(group.delimiter(), kept);
                parameters.set_span(group.span());
                TokenTree::Group(parameters)
            }
            token => token,
        };
        let tokens = std::mem::take(&mut self.tokens);
        self.tokens = tokens.into_iter().enumerate().map(parameters).collect();
    }
}

/// An attribute and whether it stays in the user's code.
pub(crate) struct RawAttr {
    pub(crate) attr: Attribute,
    /// Whether it is one of our markers, which end here.
    pub(crate) taken: bool,
    tokens: TokenStream,
}

/// The head of a method.
pub(crate) struct RawFn {
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    /// Parameters marked `#[into]` or `#[key]`, by their position, and the markers.
    pub(crate) marked: Vec<(usize, Attribute)>,
    /// How many tokens of the item stand before the parentheses of the parameters.
    parameters_at: usize,
}

/// Takes the block apart, or says why it is none.
pub(crate) fn parse(item: TokenStream, errors: &mut Errors) -> Option<RawImpl> {
    let block_and_end = |input: ParseStream<'_>| {
        let raw = parse_impl(input, errors)?;
        if raw.is_some() && !input.is_empty() {
            return Err(input.error("unexpected token after the block of the actor"));
        }
        input.parse::<TokenStream>()?;
        Ok(raw)
    };
    match block_and_end.parse2(ungrouped(item)) {
        Ok(raw) => raw,
        Err(error) => {
            errors.push(error);
            None
        }
    }
}

impl RawImpl {
    /// The user's block without the attributes that were taken.
    ///
    /// A block without any is handed back as it came, with the spans of its own braces.
    pub(crate) fn to_user_tokens(&self) -> TokenStream {
        let mut tokens = self.head.clone();
        let taken = |item: &RawItem| item.has_changed || item.attrs.iter().any(|attr| attr.taken);
        if self.items.iter().any(taken) {
            let mut inside = self.inner.clone();
            for item in &self.items {
                let kept = item.attrs.iter().filter(|attr| !attr.taken);
                inside.extend(kept.map(|attr| attr.tokens.clone()));
                inside.extend(item.tokens.clone());
            }
            let mut body = Group::new(Delimiter::Brace, inside);
            body.set_span(self.body.span());
            tokens.extend([TokenTree::Group(body)]);
        } else {
            tokens.extend([TokenTree::Group(self.body.clone())]);
        }
        tokens
    }
}

/// An item that reaches us through `$item:item` is wrapped in a group without delimiters.
fn ungrouped(item: TokenStream) -> TokenStream {
    let mut tokens = item.clone().into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::None => {
            ungrouped(group.stream())
        }
        _ => item,
    }
}

fn parse_impl(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Option<RawImpl>> {
    let start = input.cursor();
    let mut attrs = input.call(Attribute::parse_outer)?;
    input.parse::<Visibility>()?;
    if !is_impl(input, errors)? {
        return Ok(None);
    }
    // A mistake that the compiler has reported before the attribute was asked.
    input.parse::<Option<Token![unsafe]>>()?;
    input.parse::<Token![impl]>()?;
    let mut generics: Generics = if has_generics(input) {
        input.parse()?
    } else {
        Generics::default()
    };
    input.parse::<Option<Token![!]>>()?;
    let self_ty: Type = input.parse()?;
    if let Some(for_token) = input.parse::<Option<Token![for]>>()? {
        errors.at(for_token.span, messages::TRAIT_IMPL);
        return Ok(None);
    }
    generics.where_clause = input.parse()?;
    let head = tokens_between(start, input.cursor());
    let Some(body) = input.step(|cursor| Ok(braces(*cursor)))? else {
        return Err(input.error("expected the methods of the actor in braces"));
    };

    let mut inner = TokenStream::new();
    let mut items = Vec::new();
    (|input: ParseStream<'_>| {
        let start = input.cursor();
        attrs.extend(input.call(Attribute::parse_inner)?);
        inner = tokens_between(start, input.cursor());
        while !input.is_empty() {
            items.push(parse_item(input, errors)?);
        }
        Ok(())
    })
    .parse2(body.stream())?;

    Ok(Some(RawImpl {
        attrs,
        generics,
        self_ty,
        items,
        head,
        body,
        inner,
    }))
}

/// Whether an impl follows; if not, says where the attribute belongs.
fn is_impl(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<bool> {
    let ahead = input.fork();
    skip_qualifiers(&ahead)?;
    if ahead.peek(Token![impl]) {
        return Ok(true);
    }
    let is_type = ahead.peek(Token![struct])
        || ahead.peek(Token![enum])
        || ahead.peek(Token![union])
        || ahead.peek(Token![type]);
    let text = if is_type {
        messages::ON_TYPE
    } else {
        messages::ON_OTHER_ITEM
    };
    errors.at(ahead.span(), text);
    input.parse::<TokenStream>()?;
    Ok(false)
}

/// Skips `const`, `async`, `unsafe` and `extern "..".`
fn skip_qualifiers(input: ParseStream<'_>) -> syn::Result<()> {
    loop {
        if input.peek(Token![const]) || input.peek(Token![async]) || input.peek(Token![unsafe]) {
            input.call(Ident::parse_any)?;
        } else if input.peek(Token![extern]) {
            input.call(Ident::parse_any)?;
            input.parse::<Option<LitStr>>()?;
        } else {
            return Ok(());
        }
    }
}

/// Tells the parameters of `impl<T> Cache<T>` from the type of `impl <T as Tr>::Out`.
fn has_generics(input: ParseStream<'_>) -> bool {
    input.peek(Token![<])
        && (input.peek2(Token![>])
            || input.peek2(Token![#])
            || input.peek2(Token![const])
            || (input.peek2(Ident) || input.peek2(Lifetime))
                && (input.peek3(Token![:])
                    || input.peek3(Token![,])
                    || input.peek3(Token![>])
                    || input.peek3(Token![=])))
}

/// Parses one item of the block. An `Err` cannot be recovered from.
fn parse_item(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<RawItem> {
    let start = input.cursor();
    let ahead = input.fork();
    let attrs = match ahead.call(Attribute::parse_outer) {
        Ok(parsed) => {
            input.advance_to(&ahead);
            with_tokens(parsed, tokens_between(start, input.cursor()))
        }
        Err(error) => {
            errors.push(error);
            skip_item(input)?;
            let tokens = tokens_between(start, input.cursor());
            return Ok(RawItem {
                attrs: Vec::new(),
                method: None,
                tokens,
                has_changed: false,
            });
        }
    };

    let start = input.cursor();
    let mut method = None;
    let mut is_past_head = false;
    if is_method(input) {
        let ahead = input.fork();
        match parse_fn(&ahead) {
            Ok(parsed) => {
                method = Some(parsed);
                input.advance_to(&ahead);
                is_past_head = true;
            }
            // The compiler, who reads the same tokens, has said why.
            Err(_) => errors.leave_to_the_compiler(),
        }
    }
    if is_past_head {
        skip_body(input)?;
    } else {
        skip_item(input)?;
    }
    Ok(RawItem {
        attrs,
        method,
        tokens: tokens_between(start, input.cursor()),
        has_changed: false,
    })
}

/// Pairs parsed attributes with their tokens, `#` and `[..]` each.
fn with_tokens(attrs: Vec<Attribute>, tokens: TokenStream) -> Vec<RawAttr> {
    let mut tokens = tokens.into_iter();
    attrs
        .into_iter()
        .map(|attr| RawAttr {
            attr,
            taken: false,
            tokens: tokens.by_ref().take(2).collect(),
        })
        .collect()
}

fn is_method(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    ahead.parse::<Visibility>().is_ok() && skip_qualifiers(&ahead).is_ok() && ahead.peek(Token![fn])
}

fn parse_fn(input: ParseStream<'_>) -> syn::Result<RawFn> {
    let start = input.cursor();
    let vis = input.parse()?;
    let parameters_at = {
        let ahead = input.fork();
        skip_qualifiers(&ahead)?;
        ahead.parse::<Token![fn]>()?;
        ahead.call(Ident::parse_any)?;
        ahead.parse::<Generics>()?;
        tokens_between(start, ahead.cursor()).into_iter().count()
    };
    Ok(RawFn {
        vis,
        sig: input.parse()?,
        marked: Vec::new(),
        parameters_at,
    })
}

/// The tokens of a list of parameters, without attributes that are taken. Only those of the list
/// itself: a pattern has none, and a type is left alone.
fn without_attributes(
    parameters: TokenStream,
    is_taken: impl Fn(&Attribute) -> bool,
) -> TokenStream {
    let mut kept = TokenStream::new();
    let mut tokens = parameters.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if let (TokenTree::Punct(pound), Some(attribute)) = (&token, tokens.peek())
            && pound.as_char() == '#'
        {
            let pair = [token.clone(), attribute.clone()].into_iter().collect();
            let parsed = Attribute::parse_outer.parse2(pair);
            if parsed.is_ok_and(|attrs| attrs.first().is_some_and(&is_taken)) {
                tokens.next();
                continue;
            }
        }
        kept.extend([token]);
    }
    kept
}

/// Takes an item that is no method, or whose head did not parse.
fn skip_item(input: ParseStream<'_>) -> syn::Result<()> {
    let ahead = input.fork();
    let has_value = ahead.parse::<Visibility>().is_ok()
        && (ahead.peek(Token![type]) || ahead.peek(Token![const]) && !is_method(input));
    if has_value {
        // There may be braces before the semicolon.
        while !input.is_empty() && !is_semicolon(&input.parse()?) {}
        return Ok(());
    }
    if is_method(input) {
        input.parse::<Visibility>()?;
        skip_qualifiers(input)?;
    }
    if input.is_empty() || is_semicolon(&input.parse()?) {
        return Ok(());
    }
    skip_body(input)
}

/// Takes tokens up to the end of the item: a semicolon or a body in braces.
///
/// While a method is typed it has neither; it ends where the next item begins, which stays a message then.
fn skip_body(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !is_item(input) {
        let body = input.fork();
        if body.step(|cursor| Ok(braces(*cursor)))?.is_some() {
            input.advance_to(&body);
            return Ok(());
        }
        if is_semicolon(&input.parse()?) {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether an item begins that cannot be part of another one: its attribute, its visibility, or a named function.
fn is_item(input: ParseStream<'_>) -> bool {
    if input.peek(Token![#]) && input.peek2(syn::token::Bracket) || input.peek(Token![pub]) {
        return true;
    }
    let ahead = input.fork();
    skip_qualifiers(&ahead).is_ok()
        && ahead.parse::<Token![fn]>().is_ok()
        && ahead.call(Ident::parse_any).is_ok()
}

fn is_semicolon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';')
}

/// Takes a group in braces, also one that a `$body:block` wraps.
fn braces(cursor: Cursor<'_>) -> (Option<Group>, Cursor<'_>) {
    let Some((TokenTree::Group(group), rest)) = cursor.token_tree() else {
        return (None, cursor);
    };
    match group.delimiter() {
        Delimiter::Brace => (Some(group), rest),
        Delimiter::None => {
            let mut inside = ungrouped(group.to_token_stream()).into_iter();
            match (inside.next(), inside.next()) {
                (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Brace => {
                    (Some(group), rest)
                }
                _ => (None, cursor),
            }
        }
        _ => (None, cursor),
    }
}

/// The token trees between two places of one level.
fn tokens_between(mut start: Cursor<'_>, end: Cursor<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    while start != end {
        let Some((token, rest)) = start.token_tree() else {
            break;
        };
        tokens.extend([token]);
        start = rest;
    }
    tokens
}
