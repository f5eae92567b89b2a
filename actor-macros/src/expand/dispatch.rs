//! From a message to its handler.
//!
//! `dispatch_now` runs a synchronous handler and hands back every other message; `dispatch`, of actors that have some, makes
//! the future of an asynchronous one (see `later.rs`). So the code of a handler is reached from one arm only. Messages that
//! are handled in batches count as asynchronous: they wait in the mailbox, where the rest of the batch is. Concurrent messages
//! are in neither: see `concurrent.rs`.
//!
//! Handlers are called as `Self::name(self, ..)`: a method call would prefer a trait method of the
//! same name that takes `&mut self` to an inherent one that takes `&self`.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt;

use super::{Names, later};
use crate::model::{ActorDef, Message, Slot};
use crate::{attrs, hygiene};

pub(super) fn expand(actor: &ActorDef, names: &Names) -> TokenStream {
    let exclusive = actor
        .messages
        .iter()
        .filter(|message| !message.is_concurrent);
    let (awaited, now): (Vec<&Message>, Vec<&Message>) =
        exclusive.partition(|message| message.is_async || message.batch.is_some());
    let now = now.into_iter().map(|message| arm(message, names));
    let dispatch = later::arms(&awaited, names).map(|arms| {
        quote_spanned! {hygiene::generated()=>
            fn dispatch(
                &mut self,
                msg: Self::LocalMsg,
                ctx: &mut __rt::Ctx<Self>,
            ) -> impl __rt::Future<Output = ()> {
                match msg { #arms }
            }
        }
    });
    quote_spanned! {hygiene::generated()=>
        #[inline]
        fn dispatch_now(
            &mut self,
            msg: Self::LocalMsg,
            ctx: &mut __rt::Ctx<Self>,
        ) -> __rt::Option<Self::LocalMsg> {
            match msg {
                #(#now)*
                msg => return __rt::Some(msg),
            }
            __rt::None
        }

        #dispatch
    }
}

/// What a synchronous handler is called by.
fn arm(message: &Message, names: &Names) -> TokenStream {
    let cfg = attrs::for_every_part(&message.attrs);
    let arguments = bindings(message);
    let pattern = pattern(message, &arguments, names);
    let unboxed = unboxed(message, &arguments);
    let call = call(message, &arguments);
    let answer = &message.answer;
    let reply = reply(message);
    let answered = if answer.is_deferred {
        quote_spanned!(hygiene::generated()=> #call;)
    } else if answer.is_flat {
        let answer_flat = answer.place.runtime_path(&["answer_flat"]);
        let (show, name) = (show(), name_of(message));
        quote_spanned! {hygiene::generated()=>
            let answer = #call;
            #answer_flat(#show, #reply, answer, ctx, #name);
        }
    } else {
        quote_spanned!(hygiene::generated()=> __answer(#reply, #call))
    };
    if unboxed.is_none() && !answer.is_deferred && !answer.is_flat {
        return quote_spanned!(hygiene::generated()=> #cfg #pattern => #answered,);
    }
    quote_spanned!(hygiene::generated()=> #cfg #pattern => { #unboxed #answered })
}

/// What the arguments of a message are called in its arm.
pub(super) fn bindings(message: &Message) -> Vec<Ident> {
    (0..message.arguments.len())
        .map(|position| format_ident!("a{position}", span = hygiene::generated()))
        .collect()
}

pub(super) fn pattern(message: &Message, arguments: &[Ident], names: &Names) -> TokenStream {
    let fields = if message.is_boxed {
        quote_spanned!(hygiene::generated()=> arguments, reply)
    } else {
        quote_spanned!(hygiene::generated()=> #(#arguments,)* reply)
    };
    pattern_with(message, &fields, names)
}

/// Takes the arguments out of their box.
pub(super) fn unboxed(message: &Message, arguments: &[Ident]) -> Option<TokenStream> {
    message
        .is_boxed
        .then(|| quote_spanned!(hygiene::generated()=> let (#(#arguments,)*) = *arguments;))
}

/// The pattern of a message whatever is in it.
pub(super) fn pattern_of_any(message: &Message, names: &Names) -> TokenStream {
    pattern_with(message, &quote_spanned!(hygiene::generated()=> ..), names)
}

fn pattern_with(message: &Message, fields: &TokenStream, names: &Names) -> TokenStream {
    let Names {
        message: shared,
        local_message,
        ..
    } = names;
    let name = super::silent(&message.name);
    if message.is_local {
        quote_spanned!(hygiene::generated()=> #local_message::#name(#fields))
    } else if names.has_local() {
        quote_spanned!(hygiene::generated()=> #local_message::__Shared(#shared::#name(#fields)))
    } else {
        quote_spanned!(hygiene::generated()=> #shared::#name(#fields))
    }
}

/// The call of the handler.
pub(super) fn call(message: &Message, arguments: &[Ident]) -> TokenStream {
    let handler = super::handler(message.keyword, &message.name);
    let mut fields = message.arguments.iter().zip(arguments);
    let slots = message.slots.iter().map(|slot| match slot {
        Slot::Argument => fields
            .next()
            .map(|(argument, field)| unwrapped(argument.is_proved, field))
            .unwrap_or_default(),
        Slot::Context(place) => super::context(*place),
        // Only hooks are told news.
        Slot::News(_) => TokenStream::new(),
        Slot::Reply(place) => {
            let reply = Ident::new("reply", hygiene::blamed_on(place.first));
            unwrapped(message.answer.is_proved, &reply)
        }
        Slot::Batch(place) => {
            Ident::new("batch", hygiene::blamed_on(place.first)).to_token_stream()
        }
    });
    quote_spanned!(hygiene::generated()=> #handler(self, #(#slots),*))
}

/// The reply of a message, in its arm.
pub(super) fn reply(message: &Message) -> TokenStream {
    let reply = Ident::new("reply", hygiene::generated());
    unwrapped(message.answer.is_proved, &reply)
}

/// A field of a message, out of the proof that it may cross shards.
pub(super) fn unwrapped(is_proved: bool, field: &Ident) -> TokenStream {
    if is_proved {
        quote_spanned!(field.span()=> #field.get())
    } else {
        field.to_token_stream()
    }
}

/// What shows the error of a returned `Result`, if it can be shown.
pub(super) fn show() -> TokenStream {
    quote_spanned!(hygiene::generated()=> (&&__rt::Show::of(&answer)).shower())
}

/// The name of a message's method, as callers read it.
pub(super) fn name_of(message: &Message) -> Literal {
    Literal::string(&message.name.unraw().to_string())
}
