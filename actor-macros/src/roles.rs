//! The markers on methods: `#[message]`, `#[skip]`, `#[on(..)]`.
//!
//! A marker is recognised by its name, written bare or behind the name of the crate. Each one ends
//! here: it is taken out of the user's code, also when there is something wrong with it, so that
//! one mistake gives one text.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Expr, ExprLit, FnArg, Ident, Lit, Meta, PatType, Path, Receiver, Token};

use crate::every::{self, Period};

use crate::args::{self, Options};
use crate::attrs;
use crate::errors::Errors;
use crate::parse::RawItem;
use crate::{hygiene, messages};

/// What a method is for.
pub(crate) enum Role {
    /// Nothing was said: visible methods with a receiver are messages.
    Unmarked,
    Message(MessageOptions),
    Skip,
    On(Event),
    /// A message that the actor sends to itself again and again.
    Every(Box<Period>),
    /// The marker was wrong, so nobody knows: the method is left alone.
    Mistaken,
}

/// The options of `#[message(..)]`.
#[derive(Clone, Copy, Default)]
pub(crate) struct MessageOptions {
    /// Callable only from the actor's own shard, so nothing in it needs to be `Send`.
    pub(crate) is_local: bool,
    /// Its arguments travel in a box, so that they do not make every message bigger.
    pub(crate) is_boxed: bool,
    /// Its handler may run while others of this kind do.
    pub(crate) is_concurrent: bool,
    /// Takes the lane of urgent messages.
    pub(crate) is_urgent: bool,
    /// Its handler takes up to so many of them at once.
    pub(crate) batch: Option<usize>,
    pub(crate) flatten: Flatten,
}

/// Whether the `Result` of a handler becomes the `Result` of the call.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Flatten {
    /// If the type is spelled `Result`.
    #[default]
    BySpelling,
    Never,
    Always,
}

/// A moment in the life of an actor that a method can be called at.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Event {
    Started,
    Stopping,
    Down,
    ChildExit,
    Error,
}

impl Event {
    const ALL: [Self; 5] = [
        Self::Started,
        Self::Stopping,
        Self::Down,
        Self::ChildExit,
        Self::Error,
    ];
    const NAMES: &'static [&'static str] = &["started", "stopping", "down", "child_exit", "error"];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Stopping => "stopping",
            Self::Down => "down",
            Self::ChildExit => "child_exit",
            Self::Error => "error",
        }
    }

    /// What its hook is told, by the name of the type; `None` if nothing.
    pub(crate) fn news(self) -> Option<&'static str> {
        match self {
            Self::Started | Self::Stopping => None,
            Self::Down => Some("Down"),
            Self::ChildExit => Some("ChildExit"),
            Self::Error => Some("ToldError"),
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }
}

const MARKERS: &[&str] = &["every", "message", "skip", "on"];
const MESSAGE_OPTIONS: &[&str] = &[
    "batch",
    "boxed",
    "concurrent",
    "local",
    "plain",
    "result",
    "urgent",
];

/// The messages of a batch if nothing is said: as many as an actor handles before others have their turn.
const BATCH_MAX: usize = 64;

/// The markers on parameters.
const PARAMETER_MARKERS: &[&str] = &["into", "key"];

/// Takes the markers of an item and says which role they give it.
pub(crate) fn take(item: &mut RawItem, options: &Options, errors: &mut Errors) -> Role {
    let mut role = Role::Unmarked;
    let mut is_marked = false;
    for raw in &mut item.attrs {
        if let Some(marker) = marker_in_cfg_attr(&raw.attr, options) {
            raw.taken = true;
            is_marked = true;
            role = Role::Mistaken;
            let name = last_name(&marker);
            errors.on(marker, messages::marker_in_cfg_attr(&name));
            continue;
        }
        if !is_marker(raw.attr.path(), options) {
            continue;
        }
        raw.taken = true;
        if item.method.is_none() {
            let name = last_name(raw.attr.path());
            errors.on(&raw.attr, messages::marker_on_other_item(&name));
        } else if is_marked {
            errors.on(&raw.attr, messages::TWO_ROLES);
        } else {
            is_marked = true;
            role = read(&raw.attr, errors);
        }
    }
    role
}

/// Whether an attribute is almost a marker.
pub(crate) fn has_misspelt_marker(item: &RawItem) -> bool {
    item.attrs.iter().any(|raw| {
        let name = last_name(raw.attr.path());
        !MARKERS.contains(&name.as_str()) && hygiene::nearest(&name, MARKERS).is_some()
    })
}

/// Takes the markers of a method's parameters.
///
/// They are taken whatever the method is; on one that is no message they are a mistake.
pub(crate) fn take_of_parameters(
    item: &mut RawItem,
    is_message: bool,
    options: &Options,
    errors: &mut Errors,
) {
    let is_ours = |attr: &Attribute| is_one_of(PARAMETER_MARKERS, attr.path(), options);
    let Some(method) = &mut item.method else {
        return;
    };
    let mut is_any = false;
    for (position, input) in method.sig.inputs.iter_mut().enumerate() {
        let is_receiver = matches!(input, FnArg::Receiver(_));
        let (FnArg::Typed(PatType { attrs, .. }) | FnArg::Receiver(Receiver { attrs, .. })) = input;
        for marker in attrs.extract_if(.., |attr| is_ours(attr)) {
            is_any = true;
            let name = last_name(marker.path());
            if !is_message {
                errors.on(&marker, messages::parameter_marker_outside(&name));
            } else if is_receiver {
                errors.on(&marker, messages::marker_not_on_an_argument(&name));
            } else if !matches!(marker.meta, Meta::Path(_)) {
                errors.on(&marker, messages::parameter_marker_arguments(&name));
            } else if is_given(&method.marked, position, &name) {
                errors.on(&marker, messages::option_given_twice(&format!("#[{name}]")));
            } else {
                method.marked.push((position, marker));
            }
        }
    }
    if is_any {
        item.take_from_parameters(is_ours);
    }
}

/// Whether a parameter has the marker already.
fn is_given(marked: &[(usize, Attribute)], position: usize, name: &str) -> bool {
    let of_parameter = marked.iter().filter(|(marked, _)| *marked == position);
    of_parameter
        .map(|(_, marker)| last_name(marker.path()))
        .any(|given| given == name)
}

/// Whether `path` is a marker of a method.
fn is_marker(path: &Path, options: &Options) -> bool {
    is_one_of(MARKERS, path, options)
}

/// Whether `path` is one of ours: `message`, `greenroom::message`, or behind the path given as
/// `crate = ..`.
fn is_one_of(markers: &[&str], path: &Path, options: &Options) -> bool {
    if !markers.contains(&last_name(path).as_str()) {
        return false;
    }
    let mut before = path.segments.iter().rev().skip(1);
    let Some(krate) = before.next() else {
        return path.leading_colon.is_none();
    };
    krate.ident == "greenroom"
        || options
            .krate
            .as_ref()
            .and_then(|path| path.segments.last())
            .is_some_and(|last| last.ident == krate.ident)
}

pub(crate) fn last_name(path: &Path) -> String {
    path.segments
        .last()
        .map(|last| last.ident.unraw().to_string())
        .unwrap_or_default()
}

fn marker_in_cfg_attr(attr: &Attribute, options: &Options) -> Option<Path> {
    attrs::inside_cfg_attr(attr)
        .into_iter()
        .find(|path| is_marker(path, options))
}

fn read(marker: &Attribute, errors: &mut Errors) -> Role {
    match last_name(marker.path()).as_str() {
        "message" => message(marker, errors),
        "skip" => skip(marker, errors),
        "every" => match every::read(marker, errors) {
            Some(period) => Role::Every(Box::new(period)),
            None => Role::Mistaken,
        },
        _ => on(marker, errors),
    }
}

fn skip(marker: &Attribute, errors: &mut Errors) -> Role {
    if !matches!(marker.meta, Meta::Path(_)) {
        errors.on(marker, messages::SKIP_ARGUMENTS);
    }
    Role::Skip
}

fn on(marker: &Attribute, errors: &mut Errors) -> Role {
    let Some(name) = arguments(marker).and_then(|tokens| syn::parse2::<Ident>(tokens).ok()) else {
        errors.on(marker, messages::ON_WITHOUT_EVENT);
        return Role::Mistaken;
    };
    let text = name.unraw().to_string();
    match Event::from_name(&text) {
        Some(event) => Role::On(event),
        None => {
            let nearest = hygiene::nearest(&text, Event::NAMES);
            let text = messages::unknown_event(&text, nearest, Event::NAMES);
            errors.unknown(&name, Event::NAMES, text);
            Role::Mistaken
        }
    }
}

fn message(marker: &Attribute, errors: &mut Errors) -> Role {
    let mut options = MessageOptions::default();
    if matches!(marker.meta, Meta::Path(_)) {
        return Role::Message(options);
    }
    let written = arguments(marker).and_then(|tokens| options_and_values.parse2(tokens).ok());
    let Some(written) = written else {
        errors.on(marker, messages::MESSAGE_FORM);
        return Role::Message(options);
    };
    let mut given = Vec::new();
    for (name, value) in written {
        let text = name.unraw().to_string();
        if let Some(value) = value.as_ref().filter(|_| text != "batch") {
            errors.on(value, messages::option_with_value(&text));
            continue;
        }
        if given.contains(&text) {
            errors.on(name, messages::option_given_twice(&text));
            continue;
        }
        match text.as_str() {
            "batch" => options.batch = Some(batch_max(value.as_ref(), errors)),
            "boxed" => options.is_boxed = true,
            "concurrent" => options.is_concurrent = true,
            "local" => options.is_local = true,
            "urgent" => options.is_urgent = true,
            "plain" | "result" if options.flatten != Flatten::BySpelling => {
                errors.on(name, messages::PLAIN_AND_RESULT);
            }
            "plain" => options.flatten = Flatten::Never,
            "result" => options.flatten = Flatten::Always,
            _ => {
                let nearest = hygiene::nearest(&text, MESSAGE_OPTIONS);
                let text = messages::unknown_message_option(nearest, MESSAGE_OPTIONS);
                errors.unknown(&name, MESSAGE_OPTIONS, text);
                continue;
            }
        }
        given.push(text);
    }
    Role::Message(options)
}

/// The tokens of `#[marker(..)]`; `None` for every other form.
pub(crate) fn arguments(marker: &Attribute) -> Option<TokenStream> {
    match &marker.meta {
        Meta::List(list) => Some(list.tokens.clone()),
        _ => None,
    }
}

/// The most messages of a batch.
fn batch_max(value: Option<&Expr>, errors: &mut Errors) -> usize {
    let Some(value) = value else {
        return BATCH_MAX;
    };
    let number = match args::ungrouped(value) {
        Expr::Lit(ExprLit {
            lit: Lit::Int(number),
            ..
        }) => number.base10_parse().ok(),
        _ => None,
    };
    number.filter(|max| *max > 1).unwrap_or_else(|| {
        errors.on(value, messages::BATCH_NOT_A_NUMBER);
        BATCH_MAX
    })
}

fn options_and_values(input: ParseStream<'_>) -> syn::Result<Vec<(Ident, Option<Expr>)>> {
    let one = |input: ParseStream<'_>| {
        let name = Ident::parse_any(input)?;
        let equals: Option<Token![=]> = input.parse()?;
        let value = equals.map(|_| input.parse()).transpose()?;
        Ok((name, value))
    };
    let written = input.parse_terminated(one, Token![,])?;
    Ok(written.into_iter().collect())
}
