//! From a message to its handler.
//!
//! `dispatch_now` runs a synchronous handler and hands back every other message; `dispatch` runs an
//! asynchronous one and leaves the rest to `dispatch_now`. So the code of a handler is reached from
//! one arm only, and an actor without asynchronous handlers never makes a future. Messages that are
//! handled in batches count as asynchronous: they wait in the mailbox, where the rest of the batch
//! is. Concurrent messages are in neither: see `concurrent.rs`.
//!
//! Handlers are called as `Self::name(self, ..)`: a method call would prefer a trait method of the
//! same name that takes `&mut self` to an inherent one that takes `&self`.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt;

use super::{Names, batch};
use crate::model::{ActorDef, Message, Slot};
use crate::{attrs, hygiene};

pub(super) fn expand(actor: &ActorDef, names: &Names) -> TokenStream {
    let exclusive = actor
        .messages
        .iter()
        .filter(|message| !message.is_concurrent);
    let (later, now): (Vec<&Message>, Vec<&Message>) =
        exclusive.partition(|message| message.is_async || message.batch.is_some());
    let now = now.into_iter().map(|message| arm(message, names));
    let later = later.into_iter().map(|message| arm(message, names));
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

        async fn dispatch(&mut self, msg: Self::LocalMsg, ctx: &mut __rt::Ctx<Self>) {
            match msg {
                #(#later)*
                msg => {
                    let _ = <Self as __rt::Actor>::dispatch_now(self, msg, ctx);
                }
            }
        }
    }
}

pub(super) fn arm(message: &Message, names: &Names) -> TokenStream {
    let cfg = attrs::for_every_part(&message.attrs);
    let arguments: Vec<Ident> = (0..message.arguments.len())
        .map(|position| format_ident!("a{position}", span = hygiene::generated()))
        .collect();
    let pattern = pattern(message, &arguments, names);
    if let Some(batch) = message.batch {
        let any = pattern_of_any(message, names);
        let handled = batch::handled(message, batch, &arguments, &pattern, &any);
        return quote_spanned!(hygiene::generated()=> #cfg #pattern => { #handled });
    }
    let unboxed = message
        .is_boxed
        .then(|| quote_spanned!(hygiene::generated()=> let (#(#arguments,)*) = *arguments;));
    let call = call(message, &arguments);
    let answered = answered(message, call);
    quote_spanned!(hygiene::generated()=> #cfg #pattern => { #unboxed #answered; })
}

fn pattern(message: &Message, arguments: &[Ident], names: &Names) -> TokenStream {
    let fields = if message.is_boxed {
        quote_spanned!(hygiene::generated()=> arguments, reply)
    } else {
        quote_spanned!(hygiene::generated()=> #(#arguments,)* reply)
    };
    pattern_with(message, &fields, names)
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
    let name = &message.name;
    if message.is_local {
        quote_spanned!(hygiene::generated()=> #local_message::#name(#fields))
    } else if names.has_local() {
        quote_spanned!(hygiene::generated()=> #local_message::__Shared(#shared::#name(#fields)))
    } else {
        quote_spanned!(hygiene::generated()=> #shared::#name(#fields))
    }
}

/// The call of the handler, awaited if it is asynchronous.
pub(super) fn call(message: &Message, arguments: &[Ident]) -> TokenStream {
    let handler = super::handler(&message.name);
    let mut fields = arguments.iter().map(|field| unwrapped(message, field));
    let slots = message.slots.iter().map(|slot| match slot {
        Slot::Argument => fields.next().unwrap_or_default(),
        Slot::Context(place) => super::context(*place),
        // Only hooks are told news.
        Slot::News(_) => TokenStream::new(),
        Slot::Reply(place) => {
            let reply = Ident::new("reply", hygiene::blamed_on(place.first));
            unwrapped(message, &reply)
        }
        Slot::Batch(place) => {
            Ident::new("batch", hygiene::blamed_on(place.first)).to_token_stream()
        }
    });
    let awaited = message
        .is_async
        .then(|| quote_spanned!(hygiene::generated()=> .await));
    quote_spanned!(hygiene::generated()=> #handler(self, #(#slots),*) #awaited)
}

/// A field of a message that may have crossed shards is wrapped in the proof that it may.
pub(super) fn unwrapped(message: &Message, field: &Ident) -> TokenStream {
    if message.is_local {
        return field.to_token_stream();
    }
    quote_spanned!(field.span()=> #field.get())
}

fn answered(message: &Message, call: TokenStream) -> TokenStream {
    let answer = &message.answer;
    if answer.is_deferred {
        return call;
    }
    let generated = Ident::new("reply", hygiene::generated());
    let reply = unwrapped(message, &generated);
    if answer.is_flat {
        let answer_flat = answer.place.runtime_path(&["answer_flat"]);
        let (name, shower) = (name_of(message), shower());
        quote_spanned! {hygiene::generated()=>
            let answer = #call;
            let show = #shower;
            #answer_flat(#reply, answer, ctx, #name, show)
        }
    } else {
        quote_spanned!(hygiene::generated()=> __rt::answer(#reply, #call))
    }
}

/// The name of a message's method, as callers read it.
pub(super) fn name_of(message: &Message) -> Literal {
    Literal::string(&message.name.unraw().to_string())
}

/// What shows the error of a returned `Result`, if it can be shown.
pub(super) fn shower() -> TokenStream {
    quote_spanned!(hygiene::generated()=> (&&__rt::Show(&answer)).shower())
}
