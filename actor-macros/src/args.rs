//! The options of `#[actor(..)]`, and how a list of options is read at all.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, Lit, LitStr, Path, PathArguments, Token, Visibility};

use crate::errors::Errors;
use crate::{hygiene, messages};

/// What the attribute asked for; an option with a mistake in it counts as not given.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) mailbox: Option<Room>,
    pub(crate) overflow: Option<Overflow>,
    /// The name of the actor in reports, instead of the name of its type.
    pub(crate) name: Option<String>,
    /// How many bytes the arguments of a message may take: any constant of type `usize`.
    pub(crate) max_message: Option<Expr>,
    /// How many concurrent messages may be handled at a time: any constant of type `usize`.
    pub(crate) concurrent: Option<Expr>,
    /// The trait of the calls that is to be declared.
    pub(crate) api: Option<Api>,
    /// A trait, declared for another actor, that this one's calls implement.
    pub(crate) implements: Option<Implements>,
    /// Where the `greenroom` crate is, when it is not at `::greenroom`.
    pub(crate) krate: Option<Path>,
}

/// `trait = pub Name`.
pub(crate) struct Api {
    /// What was written before the name; `None` leaves it to the messages.
    pub(crate) vis: Option<Visibility>,
    pub(crate) name: Ident,
}

/// `implements = path::Name(method, ..)`.
pub(crate) struct Implements {
    pub(crate) path: Path,
    /// The messages that belong to the trait; `None` for all of them.
    pub(crate) methods: Option<Vec<Ident>>,
}

/// How many messages the mailbox has room for.
pub(crate) enum Room {
    /// Any constant of type `usize`.
    Number(Box<Expr>),
    Unbounded,
}

/// What becomes of a message that finds the mailbox full.
#[derive(Clone, Copy)]
pub(crate) enum Overflow {
    Wait,
    Reject,
    DropOldest,
    DropNewest,
}

impl Overflow {
    const NAMES: &'static [&'static str] = &["wait", "reject", "drop_oldest", "drop_newest"];

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "wait" => Some(Self::Wait),
            "reject" => Some(Self::Reject),
            "drop_oldest" => Some(Self::DropOldest),
            "drop_newest" => Some(Self::DropNewest),
            _ => None,
        }
    }
}

/// Every option, in the order in which texts list them.
const KNOWN: &Known = &Known {
    names: &[
        "concurrent",
        "crate",
        "implements",
        "mailbox",
        "max_message",
        "name",
        "overflow",
        "trait",
    ],
    elsewhere: &[
        ("key", messages::KEY_IS_NO_OPTION),
        ("per_shard", messages::PER_SHARD_IS_NO_OPTION),
    ],
};

/// The options that a list may have.
pub(crate) struct Known {
    pub(crate) names: &'static [&'static str],
    /// Names that one may look for here, and where what they mean is said.
    pub(crate) elsewhere: &'static [(&'static str, &'static str)],
}

/// The room of a mailbox without a bound.
const UNBOUNDED: &str = "unbounded";

/// Reads the options; goes on after a mistake.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    let mut policy_at = None;
    each_option(tokens, KNOWN, errors, |name, input, errors| match name {
        "concurrent" => options.concurrent = count(input, &messages::CONCURRENT_TEXTS, errors),
        "mailbox" => options.mailbox = mailbox(input, errors),
        "max_message" => options.max_message = count(input, &messages::MAX_MESSAGE_TEXTS, errors),
        "name" => options.name = actor_name(input, errors),
        "overflow" => {
            policy_at = Some(input.span());
            options.overflow = overflow(input, errors);
        }
        "trait" => options.api = api(input, errors),
        "implements" => options.implements = implements(input, errors),
        _ => options.krate = krate(input, errors),
    });
    if let (Some(Room::Unbounded), Some(place)) = (&options.mailbox, policy_at) {
        errors.at(place, messages::OVERFLOW_UNBOUNDED);
    }
    options
}

/// Calls `read` with the name of each option, and with what follows its equals sign.
///
/// An option that is unknown, given before, or without a value is reported, and skipped.
pub(crate) fn each_option(
    tokens: TokenStream,
    known: &Known,
    errors: &mut Errors,
    mut read: impl FnMut(&str, ParseStream<'_>, &mut Errors),
) {
    let mut given = Vec::new();
    let parsed = (|input: ParseStream<'_>| {
        while !input.is_empty() {
            let before = errors.count();
            match Ident::parse_any(input) {
                Ok(key) => {
                    if has_value(&key, input, known, &mut given, errors)? {
                        read(&key.unraw().to_string(), input, errors);
                    }
                }
                Err(_) => errors.at(input.span(), messages::OPTION_NAME_EXPECTED),
            }
            if errors.count() == before && !input.is_empty() && !input.peek(Token![,]) {
                errors.at(input.span(), messages::OPTION_END_EXPECTED);
            }
            skip_option(input)?;
        }
        Ok(())
    })
    .parse2(tokens);
    if let Err(error) = parsed {
        errors.push(error);
    }
}

/// Whether a known option is given for the first time, and a value follows.
fn has_value(
    key: &Ident,
    input: ParseStream<'_>,
    known: &Known,
    given: &mut Vec<String>,
    errors: &mut Errors,
) -> syn::Result<bool> {
    let name = key.unraw().to_string();
    if let Some((_, text)) = known.elsewhere.iter().find(|(other, _)| *other == name) {
        errors.on(key, *text);
        return Ok(false);
    }
    if !known.names.contains(&name.as_str()) {
        let nearest = hygiene::nearest(&name, known.names);
        let text = messages::unknown_option(&name, nearest, known.names);
        errors.unknown(key, known.names, text);
        return Ok(false);
    }
    if given.contains(&name) {
        errors.on(key, messages::option_given_twice(&name));
        return Ok(false);
    }
    if !input.peek(Token![=]) || input.peek(Token![==]) {
        errors.on(key, messages::option_without_value(&name));
        return Ok(false);
    }
    input.parse::<Token![=]>()?;
    if input.is_empty() || input.peek(Token![,]) {
        errors.on(key, messages::option_without_value(&name));
        return Ok(false);
    }
    given.push(name);
    Ok(true)
}

/// What an option that takes a number says about everything else.
pub(crate) struct CountTexts {
    pub(crate) zero: &'static str,
    pub(crate) not_a_number: &'static str,
}

/// Reads a constant of type `usize` that is not zero, as far as spelling tells.
pub(crate) fn count(
    input: ParseStream<'_>,
    texts: &CountTexts,
    errors: &mut Errors,
) -> Option<Expr> {
    let count = expression(input, errors)?;
    match flaw_of_count(&count, texts) {
        None => Some(count),
        Some(text) => {
            errors.on(&count, text);
            None
        }
    }
}

fn expression(input: ParseStream<'_>, errors: &mut Errors) -> Option<Expr> {
    input.parse().map_err(|error| errors.push(error)).ok()
}

fn flaw_of_count(count: &Expr, texts: &CountTexts) -> Option<&'static str> {
    match ungrouped(count) {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) if number.base10_digits() == "0" => Some(texts.zero),
            Lit::Int(_) => None,
            _ => Some(texts.not_a_number),
        },
        Expr::Unary(_) => Some(texts.not_a_number),
        _ => None,
    }
}

fn api(input: ParseStream<'_>, errors: &mut Errors) -> Option<Api> {
    let vis = match input.parse() {
        Ok(Visibility::Inherited) => None,
        Ok(vis) => Some(vis),
        Err(error) => {
            errors.push(error);
            return None;
        }
    };
    match input.parse() {
        Ok(name) if input.is_empty() || input.peek(Token![,]) => Some(Api { vis, name }),
        Ok(_) | Err(_) => {
            errors.at(input.span(), messages::TRAIT_NOT_A_NAME);
            None
        }
    }
}

fn implements(input: ParseStream<'_>, errors: &mut Errors) -> Option<Implements> {
    let Ok(mut path) = input.call(Path::parse_mod_style) else {
        errors.at(input.span(), messages::IMPLEMENTS_NOT_A_TRAIT);
        return None;
    };
    // By hand: a path would take the list of messages for that of an `Fn(..)`.
    if input.peek(Token![<])
        && let Some(last) = path.segments.last_mut()
    {
        match input.parse() {
            Ok(arguments) => last.arguments = PathArguments::AngleBracketed(arguments),
            Err(error) => {
                errors.push(error);
                return None;
            }
        }
    }
    let mut methods = None;
    if input.peek(syn::token::Paren) {
        let listed = |input: ParseStream<'_>| {
            let list;
            syn::parenthesized!(list in input);
            let names = list.parse_terminated(Ident::parse_any, Token![,])?;
            Ok(names.into_iter().collect())
        };
        match listed(input) {
            Ok(names) => methods = Some(names),
            Err(error) => errors.push(error),
        }
    }
    Some(Implements { path, methods })
}

fn mailbox(input: ParseStream<'_>, errors: &mut Errors) -> Option<Room> {
    let room = expression(input, errors)?;
    let flaw = match ungrouped(&room) {
        Expr::Path(path) if path.path.is_ident(UNBOUNDED) => return Some(Room::Unbounded),
        Expr::Path(path) if is_misspelt_unbounded(&path.path) => {
            Some(messages::MAILBOX_TEXTS.not_a_number)
        }
        _ => flaw_of_count(&room, &messages::MAILBOX_TEXTS),
    };
    match flaw {
        None => Some(Room::Number(Box::new(room))),
        Some(text) => {
            errors.on(&room, text);
            None
        }
    }
}

/// Constants are written in capitals, so this is none.
fn is_misspelt_unbounded(path: &Path) -> bool {
    path.get_ident().is_some_and(|name| {
        let name = name.to_string();
        name == name.to_lowercase() && hygiene::nearest(&name, &[UNBOUNDED]).is_some()
    })
}

fn overflow(input: ParseStream<'_>, errors: &mut Errors) -> Option<Overflow> {
    let Ok(policy) = Ident::parse_any(input) else {
        errors.at(input.span(), messages::overflow_form(Overflow::NAMES));
        return None;
    };
    let name = policy.unraw().to_string();
    let known = Overflow::from_name(&name);
    if known.is_none() {
        let nearest = hygiene::nearest(&name, Overflow::NAMES);
        let text = messages::unknown_overflow(&name, nearest, Overflow::NAMES);
        errors.unknown(&policy, Overflow::NAMES, text);
    }
    known
}

fn actor_name(input: ParseStream<'_>, errors: &mut Errors) -> Option<String> {
    let start = input.span();
    match input.parse::<LitStr>() {
        Ok(name) if name.value().is_empty() => errors.on(name, messages::NAME_EMPTY),
        Ok(name) => return Some(name.value()),
        Err(_) => errors.at(start, messages::NAME_NOT_A_STRING),
    }
    None
}

pub(crate) fn krate(input: ParseStream<'_>, errors: &mut Errors) -> Option<Path> {
    match input.call(Path::parse_mod_style) {
        Ok(path) => Some(path),
        Err(_) => {
            errors.at(input.span(), messages::CRATE_NOT_A_PATH);
            None
        }
    }
}

/// Takes everything up to the next option; what is left over was reported.
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
pub(crate) fn ungrouped(expr: &Expr) -> &Expr {
    match expr {
        Expr::Group(group) => ungrouped(&group.expr),
        Expr::Paren(paren) => ungrouped(&paren.expr),
        expr => expr,
    }
}
