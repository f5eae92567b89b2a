//! The limit on the size of a message.
//!
//! A message of the mailbox is as big as the biggest of its kind, so one big message makes all of
//! them slow. `max_message` turns that into an error at the method that did it. The size of a type
//! is known to the compiler only; it is compared in a constant, whose panic is a compile error.

use proc_macro2::{Literal, TokenStream};
use quote::quote_spanned;
use syn::Expr;
use syn::ext::IdentExt;

use crate::args::{self, Room};
use crate::attrs;
use crate::hygiene::{self, Place};
use crate::messages::{CONCURRENT_TEXTS, MAILBOX_TEXTS};
use crate::model::{ActorDef, Message};

/// The limit, and the comparisons that need no parameters of the actor.
pub(super) fn expand(actor: &ActorDef) -> Option<TokenStream> {
    let limit = actor.options.max_message.as_ref()?;
    let comparisons = actor
        .messages
        .iter()
        .filter(|message| is_limited(message) && !is_generic(actor))
        .map(|message| {
            let cfg = attrs::for_every_part(&message.attrs);
            let comparison = comparison(message, actor);
            quote_spanned!(hygiene::generated()=> #cfg const _: () = #comparison;)
        });
    Some(quote_spanned! {hygiene::generated()=>
        const __MAX_MESSAGE: __rt::usize = #limit;
        #(#comparisons)*
    })
}

/// Whether the numbers that the user gave by name are enough for anything to happen; those that are spelled out were
/// looked at. An actor with parameters is asked when it begins to be one.
pub(super) fn numbers_are_enough(actor: &ActorDef) -> TokenStream {
    if is_generic(actor) {
        return TokenStream::new();
    }
    let ty = &actor.ty;
    let room = match &actor.options.mailbox {
        Some(Room::Number(number)) => Some(number),
        _ => None,
    };
    let room = room.map(|number| {
        let constant = quote_spanned!(hygiene::generated()=> <#ty as __rt::Actor>::MAILBOX);
        is_enough(number, &constant, MAILBOX_TEXTS.zero)
    });
    let readers = actor.options.concurrent.as_ref().map(|number| {
        let constant = quote_spanned!(hygiene::generated()=> <#ty as __rt::Concurrent>::CONCURRENT);
        is_enough(number, &constant, CONCURRENT_TEXTS.zero)
    });
    quote_spanned!(hygiene::generated()=> #room #readers)
}

fn is_enough(number: &Expr, constant: &TokenStream, text: &str) -> Option<TokenStream> {
    if let Expr::Lit(_) = args::ungrouped(number) {
        return None;
    }
    let place = Place::of(number);
    let check = place.call(
        place.runtime_path(&["is_enough"]),
        quote_spanned!(hygiene::generated()=> #constant, #text),
    );
    Some(quote_spanned!(hygiene::generated()=> const _: () = #check;))
}

/// The comparison for the message of a generic actor: made for every set of parameters that a
/// program uses, when it is built.
pub(super) fn in_generic_code(message: &Message, actor: &ActorDef) -> Option<TokenStream> {
    actor.options.max_message.as_ref()?;
    if !is_limited(message) || !is_generic(actor) {
        return None;
    }
    let comparison = comparison(message, actor);
    Some(quote_spanned!(hygiene::generated()=> const { #comparison }))
}

fn is_limited(message: &Message) -> bool {
    !message.is_boxed && !message.arguments.is_empty()
}

fn is_generic(actor: &ActorDef) -> bool {
    !actor.generics.params.is_empty()
}

fn comparison(message: &Message, actor: &ActorDef) -> TokenStream {
    let blamed = hygiene::blamed_on(message.name.span());
    let name = Literal::string(&format!("{}::{}", actor.name, message.name.unraw()));
    let types = message.arguments.iter().map(|argument| &argument.ty);
    quote_spanned! {blamed=>
        __rt::message_fits(#name, __rt::core::mem::size_of::<(#(#types,)*)>(), __MAX_MESSAGE)
    }
}
