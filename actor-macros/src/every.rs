//! The marker of a method that is called again and again: `#[every(PERIOD)]`, `#[every(PERIOD, missed = POLICY)]`.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Expr, Ident, Lit, LitInt, Token};

use crate::errors::Errors;
use crate::{args, hygiene, messages, roles};

/// What the marker says.
pub(crate) struct Period {
    /// An expression of type `Duration`.
    pub(crate) length: TokenStream,
    pub(crate) missed: Missed,
}

/// What becomes of calls whose time passes while one waits in the mailbox.
#[derive(Clone, Copy, Default)]
pub(crate) enum Missed {
    #[default]
    Skip,
    Burst,
    Delay,
}

impl Missed {
    const NAMES: &'static [&'static str] = &["skip", "burst", "delay"];

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "skip" => Some(Self::Skip),
            "burst" => Some(Self::Burst),
            "delay" => Some(Self::Delay),
            _ => None,
        }
    }

    /// The variant of `MissedTicks`.
    pub(crate) fn variant(self) -> Ident {
        let name = match self {
            Self::Skip => "Skip",
            Self::Burst => "Burst",
            Self::Delay => "Delay",
        };
        Ident::new(name, hygiene::generated())
    }
}

/// Units of a length of time, as suffixes of a number, in nanoseconds.
const UNITS: &[(&str, u64)] = &[
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The shortest period of a timer.
const SHORTEST_NS: u64 = 1_000_000;

/// Reads the marker; `None` if there is something wrong with it, which was reported.
pub(crate) fn read(marker: &Attribute, errors: &mut Errors) -> Option<Period> {
    let Some(tokens) = roles::arguments(marker).filter(|tokens| !tokens.is_empty()) else {
        errors.on(marker, messages::EVERY_WITHOUT_PERIOD);
        return None;
    };
    let before = errors.count();
    let parsed = (|input: ParseStream<'_>| {
        let length: Expr = input.parse()?;
        let mut missed = Missed::default();
        if matches!(length, Expr::Assign(_)) {
            // Whatever follows: the period comes first.
            input.parse::<TokenStream>()?;
        }
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
            if !input.is_empty() {
                missed = option(input, errors)?;
            }
        }
        Ok((length, missed))
    })
    .parse2(tokens);
    match parsed {
        Ok((length, missed)) => {
            let length = duration(&length, errors);
            (errors.count() == before).then_some(Period { length, missed })
        }
        Err(error) => {
            errors.push(error);
            None
        }
    }
}

/// `missed = POLICY`, and nothing after it.
fn option(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Missed> {
    let key = input.call(Ident::parse_any)?;
    if key.unraw() != "missed" || !input.peek(Token![=]) {
        errors.on(&key, messages::EVERY_OPTION);
        input.parse::<TokenStream>()?;
        return Ok(Missed::default());
    }
    input.parse::<Token![=]>()?;
    let name = input.call(Ident::parse_any)?;
    input.parse::<Option<Token![,]>>()?;
    if !input.is_empty() {
        return Err(input.error("nothing follows the policy for missed ticks"));
    }
    let text = name.unraw().to_string();
    Ok(Missed::from_name(&text).unwrap_or_else(|| {
        let nearest = hygiene::nearest(&text, Missed::NAMES);
        errors.on(
            &name,
            messages::unknown_missed(&text, nearest, Missed::NAMES),
        );
        Missed::default()
    }))
}

/// The length as an expression of type `Duration`: a number with a unit is one, everything else stays as it is.
fn duration(length: &Expr, errors: &mut Errors) -> TokenStream {
    if let Some(place) = receiver_in(length.to_token_stream()) {
        errors.at(place, messages::EVERY_WITH_SELF);
    }
    match args::ungrouped(length) {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => return number_of_units(number, errors),
            _ => errors.on(length, messages::EVERY_NOT_A_PERIOD),
        },
        // The compiler knows no numbers with a unit.
        other if has_a_unit(other.to_token_stream()) => {
            errors.on(length, messages::EVERY_NOT_A_PERIOD);
        }
        Expr::Path(path) if path.path.is_ident("missed") => {
            errors.on(length, messages::EVERY_WITHOUT_PERIOD);
        }
        Expr::Assign(_) => errors.on(length, messages::EVERY_WITHOUT_PERIOD),
        _ => {}
    }
    length.to_token_stream()
}

fn number_of_units(number: &LitInt, errors: &mut Errors) -> TokenStream {
    let unit = UNITS.iter().find(|(name, _)| *name == number.suffix());
    let Some((_, unit)) = unit else {
        errors.on(number, messages::every_without_unit(number.base10_digits()));
        return TokenStream::new();
    };
    let Some(nanos) = number
        .base10_parse::<u64>()
        .ok()
        .and_then(|count| count.checked_mul(*unit))
    else {
        errors.on(number, messages::EVERY_TOO_LONG);
        return TokenStream::new();
    };
    if nanos < SHORTEST_NS {
        errors.on(number, messages::EVERY_TOO_SHORT);
    }
    quote_spanned!(hygiene::blamed_on(number.span())=>
        __rt::core::time::Duration::from_nanos(#nanos)
    )
}

/// Whether there is a number with a unit among other things.
fn has_a_unit(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Literal(literal) => match Lit::new(literal) {
            Lit::Int(number) => UNITS.iter().any(|(name, _)| *name == number.suffix()),
            _ => false,
        },
        TokenTree::Group(group) => has_a_unit(group.stream()),
        _ => false,
    })
}

/// Where `self` is named, which there is none of.
fn receiver_in(tokens: TokenStream) -> Option<Span> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) if ident == "self" => Some(ident.span()),
        TokenTree::Group(group) => receiver_in(group.stream()),
        _ => None,
    })
}
