//! From a message to the future of its handler.
//!
//! Each asynchronous handler has a future type of its own, and `dispatch` returns one type: a choice between them, out of
//! which each arm makes its own. There are choices between two and eight; more handlers are a choice between choices.

use proc_macro2::TokenStream;
use quote::{format_ident, quote_spanned};

use super::dispatch::{bindings, call, name_of, pattern, pattern_of_any, reply, unboxed};
use super::{Names, batch};
use crate::model::Message;
use crate::{attrs, hygiene};

/// As many handlers as one choice is between.
const WIDEST: usize = 8;

/// The arms of a `match` on a message that is one of these; nothing, if there are none.
pub(super) fn arms(messages: &[&Message], names: &Names) -> Option<TokenStream> {
    if messages.is_empty() {
        return None;
    }
    let count = messages.len();
    let arms = messages.iter().enumerate().map(|(position, message)| {
        let cfg = attrs::for_every_part(&message.attrs);
        let arguments = bindings(message);
        let pattern = pattern(message, &arguments, names);
        let (before, future) = future(message, &arguments, &pattern, names);
        let chosen = chosen(position, count, future);
        let absent = attrs::where_absent(&message.attrs).map(|cfg| {
            // The choice has a place for it all the same, whose type something must tell.
            let never = quote_spanned!(hygiene::generated()=> __rt::pending::<()>());
            let chosen = self::chosen(position, count, never);
            quote_spanned!(hygiene::generated()=> #cfg _ if false => #chosen,)
        });
        quote_spanned!(hygiene::generated()=> #cfg #pattern => { #before #chosen } #absent)
    });
    Some(quote_spanned! {hygiene::generated()=>
        #(#arms)*
        _ => __rt::unexpected(),
    })
}

/// The future at one position of a choice.
fn chosen(position: usize, count: usize, future: TokenStream) -> TokenStream {
    if count == 1 {
        return future;
    }
    if count > WIDEST {
        let group = position / WIDEST;
        let rest = (count - group * WIDEST).min(WIDEST);
        let inner = chosen(position % WIDEST, rest, future);
        return chosen(group, count.div_ceil(WIDEST), inner);
    }
    let letter = b'A' + u8::try_from(position).unwrap_or_default();
    let choice = format_ident!("OneOf{count}", span = hygiene::generated());
    let variant = format_ident!("{}", char::from(letter), span = hygiene::generated());
    quote_spanned!(hygiene::generated()=> __rt::#choice::#variant { of: #future })
}

/// The future that handles a message and answers it, and what has to be written before it.
fn future(
    message: &Message,
    arguments: &[syn::Ident],
    pattern: &TokenStream,
    names: &Names,
) -> (TokenStream, TokenStream) {
    if let Some(batch) = message.batch {
        let any = pattern_of_any(message, names);
        let handled = batch::handled(message, batch, arguments, pattern, &any);
        let future = quote_spanned!(hygiene::generated()=> async move { #handled });
        return (TokenStream::new(), future);
    }
    let unboxed = unboxed(message, arguments);
    let call = call(message, arguments);
    let answer = &message.answer;
    if answer.is_deferred {
        return (quote_spanned!(hygiene::generated()=> #unboxed), call);
    }
    let reply = reply(message);
    if answer.is_flat {
        let answering = answer.place.runtime_path(&["answering_flat"]);
        let name = name_of(message);
        let (wrapped, handler) = answer.place.field_of_tuple("handler");
        let before = quote_spanned! {hygiene::generated()=>
            #unboxed
            let actor = __rt::resident(ctx);
            let handler = #call;
            let show = (&&__rt::Show::of_future(&handler)).shower();
            #wrapped
        };
        let values = quote_spanned!(hygiene::generated()=> show, #reply, #handler, actor, #name);
        return (before, answer.place.call(answering, values));
    }
    (
        quote_spanned!(hygiene::generated()=> #unboxed),
        quote_spanned!(hygiene::generated()=> __rt::answering(#reply, #call)),
    )
}
