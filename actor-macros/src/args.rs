//! The options of `#[actor(..)]`.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, Lit, LitStr, Path, Token};

use crate::errors::Errors;
use crate::{hygiene, messages};

/// What the attribute asked for; an option with a mistake in it counts as not given.
#[derive(Default)]
pub(crate) struct Options {
    /// Room of the mailbox: any constant of type `usize`.
    pub(crate) mailbox: Option<Expr>,
    /// The name of the actor in reports, instead of the name of its type.
    pub(crate) name: Option<String>,
    /// Where the `greenroom` crate is, when it is not at `::greenroom`.
    pub(crate) krate: Option<Path>,
}

/// Every option, in the order in which texts list them.
const KNOWN: &[&str] = &["crate", "mailbox", "name"];

/// Reads the options; goes on after a mistake.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    let mut given = Vec::new();
    let parsed = (|input: ParseStream<'_>| {
        while !input.is_empty() {
            match Ident::parse_any(input) {
                Ok(key) => option(&key, input, &mut given, &mut options, errors),
                Err(_) => errors.at(input.span(), messages::OPTION_NAME_EXPECTED),
            }
            skip_option(input)?;
        }
        Ok(())
    })
    .parse2(tokens);
    if let Err(error) = parsed {
        errors.push(error);
    }
    options
}

/// Reads what follows the name of an option.
fn option(
    key: &Ident,
    input: ParseStream<'_>,
    given: &mut Vec<String>,
    options: &mut Options,
    errors: &mut Errors,
) {
    let name = key.unraw().to_string();
    if !KNOWN.contains(&name.as_str()) {
        let nearest = hygiene::nearest(&name, KNOWN);
        errors.on(key, messages::unknown_option(&name, nearest, KNOWN));
        return;
    }
    if given.contains(&name) {
        errors.on(key, messages::option_given_twice(&name));
        return;
    }
    if !input.peek(Token![=]) || input.peek(Token![==]) {
        errors.on(key, messages::option_without_value(&name));
        return;
    }
    if let Err(error) = input.parse::<Token![=]>() {
        errors.push(error);
        return;
    }
    match name.as_str() {
        "mailbox" => options.mailbox = mailbox(input, errors),
        "name" => options.name = actor_name(input, errors),
        _ => options.krate = krate(input, errors),
    }
    given.push(name);
}

fn mailbox(input: ParseStream<'_>, errors: &mut Errors) -> Option<Expr> {
    let room: Expr = match input.parse() {
        Ok(room) => room,
        Err(error) => {
            errors.push(error);
            return None;
        }
    };
    let text = match ungrouped(&room) {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) if number.base10_digits() == "0" => messages::MAILBOX_ZERO,
            Lit::Int(_) => return Some(room),
            _ => messages::MAILBOX_NOT_A_NUMBER,
        },
        Expr::Path(path) if path.path.is_ident("unbounded") => messages::MAILBOX_UNBOUNDED,
        _ => return Some(room),
    };
    errors.on(&room, text);
    None
}

fn actor_name(input: ParseStream<'_>, errors: &mut Errors) -> Option<String> {
    match input.parse::<LitStr>() {
        Ok(name) if name.value().is_empty() => errors.on(name, messages::NAME_EMPTY),
        Ok(name) => return Some(name.value()),
        Err(_) => errors.at(input.span(), messages::NAME_NOT_A_STRING),
    }
    None
}

fn krate(input: ParseStream<'_>, errors: &mut Errors) -> Option<Path> {
    match input.call(Path::parse_mod_style) {
        Ok(path) => Some(path),
        Err(_) => {
            errors.at(input.span(), messages::CRATE_NOT_A_PATH);
            None
        }
    }
}

/// Takes everything up to the next option; what is left over was reported, or is a mistake now.
fn skip_option(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() {
        if input.parse::<Option<Token![,]>>()?.is_some() {
            break;
        }
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

/// An expression that came through `$e:expr` is wrapped in a group.
fn ungrouped(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => ungrouped(&group.expr),
        Expr::Paren(paren) => ungrouped(&paren.expr),
        expr => expr,
    }
}
