//! The `#[actor]` attribute of greenroom.
//!
//! This crate is used through `greenroom`, which exports everything in it.
//!
//! The attribute works in three steps, in reading order: `parse.rs` takes the user's block apart,
//! `model.rs` and `check.rs` make a typed model of it and report what is wrong, `expand/` turns the
//! model into code. The user's block is always in the output, first and unchanged but for our
//! markers; whatever could be understood of it is expanded, whatever else is wrong.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]

mod args;
mod attrs;
mod check;
mod errors;
mod expand;
mod hygiene;
mod messages;
mod model;
mod parse;
mod roles;
mod types;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as TokenStream2;
use syn::Visibility;
use syn::ext::IdentExt;

use crate::args::Options;
use crate::errors::Errors;
use crate::model::{ActorDef, Method};
use crate::parse::{RawImpl, RawItem};
use crate::roles::Role;
use crate::types::NameSelf;

/// Makes an actor of a type: the methods of the `impl` block become its messages.
#[proc_macro_attribute]
pub fn actor(args: TokenStream, item: TokenStream) -> TokenStream {
    expand_actor(args.into(), item.into()).into()
}

/// Makes a message of a method, or says more about one.
#[proc_macro_attribute]
pub fn message(args: TokenStream, item: TokenStream) -> TokenStream {
    outside("message", args.into(), item.into()).into()
}

/// Keeps a visible method from being a message.
#[proc_macro_attribute]
pub fn skip(args: TokenStream, item: TokenStream) -> TokenStream {
    outside("skip", args.into(), item.into()).into()
}

/// Calls a method at a moment in the life of the actor.
#[proc_macro_attribute]
pub fn on(args: TokenStream, item: TokenStream) -> TokenStream {
    outside("on", args.into(), item.into()).into()
}

/// `#[actor]` takes the markers of its own block away, so a marker that is expanded is misplaced.
fn outside(marker: &str, _: TokenStream2, item: TokenStream2) -> TokenStream2 {
    let mut errors = Errors::default();
    errors.at(
        proc_macro2::Span::call_site(),
        messages::marker_outside(marker),
    );
    let mut tokens = item;
    tokens.extend(errors.into_tokens());
    tokens
}

/// The whole of `#[actor]`.
fn expand_actor(args: TokenStream2, item: TokenStream2) -> TokenStream2 {
    let mut errors = Errors::default();
    let options = args::parse(args, &mut errors);
    let (mut tokens, expansion) = match parse::parse(item.clone(), &mut errors) {
        None => (item, None),
        Some(mut raw) => {
            let actor = model(options, &mut raw, &mut errors);
            let expansion = actor.map(|actor| expand::actor(&actor));
            (raw.to_user_tokens(), expansion)
        }
    };
    tokens.extend(errors.into_tokens());
    tokens.extend(expansion);
    tokens
}

/// Reads the block; `None` when its head is such that nothing can be generated for it.
fn model(options: Options, raw: &mut RawImpl, errors: &mut Errors) -> Option<ActorDef> {
    let roles: Vec<Role> = raw
        .items
        .iter_mut()
        .map(|item| roles::take(item, &options, errors))
        .collect();

    let before = errors.count();
    check::no_lifetime_parameters(&raw.generics, errors);
    check::has_a_name(&raw.self_ty, errors);
    let is_sound = errors.count() == before;

    let ty = types::bare(&raw.self_ty).clone();
    let name = types::last_segment(&ty)?.ident.unraw();
    let mut actor = ActorDef {
        options,
        cfg: attrs::for_every_part(&raw.attrs),
        generics: NameSelf { actor: &ty }.in_generics(&raw.generics),
        ty,
        name,
        messages: Vec::new(),
        hooks: Vec::new(),
        refused: Vec::new(),
    };
    for (item, role) in raw.items.iter().zip(roles) {
        add_method(item, role, &mut actor, errors);
    }
    check::does_something(&actor, errors);
    is_sound.then_some(actor)
}

/// Adds a method to the model in its role, if it obeys the rules of that role.
fn add_method(item: &RawItem, role: Role, actor: &mut ActorDef, errors: &mut Errors) {
    let Some(raw) = &item.method else {
        return;
    };
    match role {
        Role::Skip | Role::Mistaken => {}
        Role::Message(options) => {
            add_message(&Method::new(item, raw, Some(options)), actor, errors)
        }
        Role::Unmarked => {
            let is_visible = !matches!(raw.vis, Visibility::Inherited);
            if is_visible && raw.sig.receiver().is_some() {
                add_message(&Method::new(item, raw, None), actor, errors);
            }
        }
        Role::On(event) => {
            let method = Method::new(item, raw, None);
            let before = errors.count();
            check::hook(event, &method, &actor.hooks, errors);
            if errors.count() == before {
                actor.hooks.push(method.to_hook(event));
            }
        }
    }
}

fn add_message(method: &Method<'_>, actor: &mut ActorDef, errors: &mut Errors) {
    let before = errors.count();
    check::message_call(method, errors);
    let is_callable = errors.count() == before;
    check::message_handler(method, errors);
    let is_sound = errors.count() == before;

    if is_defined_twice(method, actor) {
        return;
    }
    if is_sound {
        actor.messages.push(method.to_message(&actor.ty));
    } else if is_callable {
        actor.refused.push(method.to_refused(&actor.ty));
    }
}

/// The compiler reports two methods of one name; two variants of one name would repeat it.
///
/// Where `cfg` picks one of the methods, it picks the same variant.
fn is_defined_twice(method: &Method<'_>, actor: &ActorDef) -> bool {
    !attrs::has_cfg(&method.attrs)
        && actor
            .messages
            .iter()
            .any(|earlier| earlier.name == method.sig.ident && !attrs::has_cfg(&earlier.attrs))
}
